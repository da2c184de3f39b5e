"""Escape names and other text from files for where they are shown: terminals, pages and charts, XML, spreadsheets."""

from __future__ import annotations

import re

from sim.base.naming import RawValue

# Of control characters, only tab and newline are allowed: no escape sequences, no marks that reverse the order of
# letters, and no lone surrogates, which cannot be encoded.
_CONTROL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# A carriage return is allowed, but read as the end of a line.
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = ("=", "+", "-", "@")


def printable(text: str) -> str:
    r"""Escape control characters as JSON does, such as \u001b; JSON text is left unchanged."""
    return _CONTROL.sub(_escape, text)


def all_printable(value: RawValue) -> RawValue:
    """Escape all text in lists and dicts, including keys, as `printable` does."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {all_printable(key): all_printable(item) for key, item in value.items()}
    return [all_printable(item) for item in value] if isinstance(value, list) else value


def xml_text(text: str) -> str:
    r"""Escape characters that XML 1.0 cannot hold as JSON does, such as \u001b."""
    return _NOT_XML.sub(_escape, text)


def csv_cell(value: RawValue) -> RawValue:
    """A cell for spreadsheets: text that would be evaluated as a formula is prefixed with an apostrophe; numbers are unchanged."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
