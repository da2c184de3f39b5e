"""Names and values in files: paths of keys in nested tables, and the natural order of users, topics and hosts."""

from __future__ import annotations

# Any: values of files are of any type until a model or a check has read them.
from typing import Any

Keys = tuple[str | int, ...]
"""The way to a value through nested tables and lists: names, and positions from 0."""
RawValue = Any
"""A value of any TOML or JSON type, as read from files or written for other programs."""
Raw = dict[str, RawValue]
"""A table of these values."""
JSON_TYPES = {
    dict: "an object",
    list: "an array",
    str: "text",
    int: "an integer",
    float: "a number",
    type(None): "null",
}
"""What messages call the types of JSON values."""


def name_key(name: str) -> tuple[bool, int, str, str]:
    """Sort key for names: whole numbers by value, however long, then all others by code points."""
    whole = name.isascii() and name.isdecimal()
    # Compared by length first, as Python refuses to parse very long integers
    digits = name.lstrip("0") if whole else ""
    return not whole, len(digits), digits, name
