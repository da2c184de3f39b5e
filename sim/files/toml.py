"""Read TOML with the line number of every key, so that messages can point at mistakes.

`tomllib` reads the values without their positions, so the scanner here walks the same text again once it is known to be valid.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, time
from functools import cache
from pathlib import Path

from sim.base.errors import ScenarioError
from sim.base.naming import Keys, Raw, RawValue

_DEEPEST = 50
"""The deepest nesting of tables and lists: far more than any scenario has, and within recursion limits."""

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}\n#]+")
_DIGITS = re.compile(r"\d[\d_]{4000,}")  # more digits than Python converts to an integer


def read(path: Path) -> tuple[Raw, dict[Keys, int]]:
    """Read the values of a TOML file and the line of each key path. Raises ScenarioError where it is missing or not TOML."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors write a byte order mark
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}:{error.object[: error.start].count(10) + 1}: not UTF-8 text") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(place[2] or text.count("\n") + 1) if place else 1
        reason = place[1] if place else str(error)
        raise ScenarioError(f"{path}:{line}: not valid TOML: {reason[0].lower()}{reason[1:]}") from None
    except RecursionError:
        raise ScenarioError(f"{path}: values are nested too deeply") from None
    except ValueError as error:
        digits = _DIGITS.search(text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        reason = "expected a 64-bit integer, found one of thousands of digits" if digits else str(error)
        raise ScenarioError(f"{path}:{line}: not valid TOML: {reason}") from None
    odd = next(_odd(values), None)
    if odd is None:
        known = lines(text)
        return plain(values), known
    keys, reason = odd
    at = f"{path}" if len(keys) > _DEEPEST else f"{path}:{lines(text)[keys]}"
    raise ScenarioError(f"{at}: {_shown(keys)}: {reason}")


def value(text: str) -> RawValue:
    """Parse TOML text such as `5`, `true` or `[1, 2]`; text that is not a TOML value is returned as a string."""
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    if len(values) == 1 and (isinstance(values["value"], int) or next(_odd(values), None) is None):
        return plain(values["value"])
    return text


def plain(value: RawValue) -> RawValue:
    """A copy of a value with dates and times as text."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else value


def checked(values: Raw, what: str) -> Raw:
    """A plain copy of values given in code. Raises ScenarioError where TOML cannot represent them."""
    if odd := next(_odd(values), None):
        raise ScenarioError(f"{what}: {_shown(odd[0])}: {odd[1]}")
    return {key: plain(inner) for key, inner in values.items()}


def _odd(value: RawValue, keys: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """Yield the path and the mistake of each integer beyond TOML's range and each value nested too deeply."""
    if len(keys) > _DEEPEST:
        yield keys, f"nested too deeply (allowed: {_DEEPEST} levels)"
    elif isinstance(value, Mapping | list | tuple):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _odd(inner, (*keys, key))
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        digits = value.bit_length() * 30103 // 100000
        yield keys, f"expected a 64-bit integer, found {value if digits < 40 else f'one of about {digits:,} digits'}"


def _shown(keys: Keys) -> str:
    """A key path as text, shortened if long."""
    text = ".".join(str(key) if isinstance(key, str) else f"[{key}]" for key in keys[:5]).replace(".[", "[")
    return f"{text}…" if len(keys) > 5 else text


def text(value: RawValue) -> str:
    """A value as TOML on one line, without what is None; a single string is returned without quotes."""
    return value if isinstance(value, str) else _text(value)


def document(values: Raw) -> str:
    """Values as a TOML file: first those that are not tables, then a section for each table, and for each of a list of tables."""

    def section(head: str, table: Raw) -> str:
        return "".join(
            [head, *(f"{_key(key)} = {_text(inner)}\n" for key, inner in table.items() if inner is not None)]
        )

    plain_ones = {key: value for key, value in values.items() if not isinstance(value, dict) and not _are_tables(value)}
    sections = [section("", plain_ones)] if plain_ones else []
    for key, value in values.items():
        if isinstance(value, dict):
            sections.append(section(f"[{_key(key)}]\n", value))
        elif _are_tables(value):
            sections += [section(f"[[{_key(key)}]]\n", each) for each in value]
    return "\n".join(sections)


def _are_tables(value: RawValue) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(each, dict) for each in value)


def _text(value: RawValue) -> str:
    if isinstance(value, dict):
        said = (f"{_key(key)} = {_text(inner)}" for key, inner in value.items() if inner is not None)
        return f"{{ {', '.join(said)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


def split(path: str) -> Keys:
    """Split a dotted path into its keys; parts may be quoted. Raises ValueError where it is not a path."""
    scanner = _Scanner(path)
    keys = scanner.key()
    if scanner.at != len(path):
        raise ValueError(path)
    return keys


@cache
def join(keys: Keys) -> str:
    """Join keys to a dotted path, with parts quoted where necessary."""
    return ".".join(_key(str(key)) for key in keys)


def flat(values: Raw, prefix: str = "") -> Raw:
    """The values of nested tables by dotted keys, without those that are None."""
    found: Raw = {}
    for key, value in values.items():
        if value is not None:
            found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def at(values: RawValue, keys: Keys) -> RawValue:
    """The value at a key path of nested tables; None where there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def lines(text: str) -> dict[Keys, int]:
    """The line (from 1) of each key path in valid TOML; elements of arrays are numbered from 0."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Keys, int] = {}
        self.tables: dict[Keys, int] = {}  # arrays of tables: the index of the current element

    def document(self) -> None:
        prefix: Keys = ()
        while self.skip() < len(self.text):
            if self.text[self.at] == "[":
                prefix = self.header()
            else:
                self.pair(prefix)

    def header(self) -> Keys:
        double = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if double else 1
        keys = self.key()
        self.at += 2 if double else 1
        path: Keys = ()
        for i, part in enumerate(keys):
            path = (*path, part)
            self.note(path, start)
            if double and i == len(keys) - 1:
                self.tables[path] = self.tables.get(path, -1) + 1
            if path in self.tables:
                path = (*path, self.tables[path])
                self.note(path, start)
        return path

    def pair(self, prefix: Keys) -> None:
        start = self.at
        path = prefix
        for part in self.key():
            path = (*path, part)
            self.note(path, start)
        self.at += 1  # the equals sign
        self.skip()
        self.value(path)

    def value(self, path: Keys) -> None:
        opening = self.text[self.at]
        if opening in "[{":
            self.at += 1
            index = 0
            while self.text[self.skip()] not in "]}":
                if opening == "{":
                    self.pair(path)
                else:
                    self.note((*path, index), self.at)
                    self.value((*path, index))
                index += 1
                if self.text[self.skip()] == ",":
                    self.at += 1
            self.at += 1
        else:
            self.take(_STRING if opening in "\"'" else _SCALAR)

    def key(self) -> Keys:
        parts = [self.part()]
        while self.text.startswith(".", self.at):
            self.at += 1
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        match = _KEY.match(self.text, self.at)
        if match is None:
            raise ValueError(self.text)
        self.at = match.end()
        return str(value(match[1])) if match[1][0] in "\"'" else match[1]

    def note(self, path: Keys, at: int) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, at) + 1)

    def skip(self) -> int:
        return self.take(_SPACE)

    def take(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.at
