"""Names as they stand in files: of keys in nested tables, and of users, topics and hosts in the order that people expect."""

from __future__ import annotations

Keys = tuple[str | int, ...]
"""The way to a value through nested tables and lists: names, and positions from 0."""


def name_key(name: str) -> tuple[bool, int, str, str]:
    """Orders names: whole numbers by value, however long, then the others by code points."""
    whole = name.isascii() and name.isdecimal()
    digits = name.lstrip("0") if whole else ""  # their number is compared first: Python refuses to read very many
    return not whole, len(digits), digits, name
