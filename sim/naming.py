"""Names of users, topics and hosts as they stand in files, in the order that people expect of them."""

from __future__ import annotations


def name_key(name: str) -> tuple[bool, int, str, str]:
    """Orders names: whole numbers by value, however long, then the others by code points."""
    whole = name.isascii() and name.isdecimal()
    digits = name.lstrip("0") if whole else ""  # their number is compared first: Python refuses to read very many
    return not whole, len(digits), digits, name
