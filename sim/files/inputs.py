"""Files named by parameters: read and parsed when a scenario is validated, and identified by their content."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from sim.base.errors import cut, nearest, suggestion
from sim.base.naming import Raw
from sim.files.compression import Damaged, pieces
from sim.files.hashing import sha256_of

_T = TypeVar("_T")


class NoSuchFile(ValueError):
    """There is no file at a path."""


@dataclass(frozen=True)
class File(Generic[_T]):
    """A file that was read: its name, SHA-256 and parsed content. Its location is not part of it."""

    name: str
    sha256: str
    content: _T = field(compare=False, repr=False)

    def dump(self) -> dict[str, str]:
        """The file's entry in a resolved scenario."""
        return {"name": self.name, "sha256": self.sha256}


@dataclass(frozen=True)
class InputFile(Generic[_T]):
    """Makes a model's field the path of a text file, plain or compressed, that is read when the model is validated.

    `links: Annotated[File[Links], InputFile(parse)]`, where `parse` turns the text into Links, or raises ValueError with a sentence
    such as "line 3: …". A scenario's keys named `file` or ending in `_file` are relative to the scenario file.
    """

    parse: Callable[[str], _T]

    def read(self, path: object) -> File[_T]:
        """Read the file at a path. Raises NoSuchFile, or ValueError where it cannot be read or parsed."""
        if isinstance(path, File):
            return path
        if not isinstance(path, str):
            raise ValueError(f"expected the path of a file, found {cut(repr(path))}")
        data = _bytes(Path(path))
        try:
            content = _parsed(self.parse, _text(data))
        except ValueError as error:
            raise ValueError(f"{path}, {error}") from None
        return File(Path(path).name, sha256_of(data), content)

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(File.dump)
        return core_schema.no_info_plain_validator_function(self.read, serialization=dump)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: GetJsonSchemaHandler) -> Raw:
        return {"type": "string", "format": "path"}


@dataclass(frozen=True)
class CsvRow:
    """One row of a CSV file: the line on which it ends, and its fields by column, without space around them."""

    line: int
    fields: Mapping[str, str]

    def wrong(self, column: str, what: str) -> ValueError:
        """The error to raise for a mistake in a column."""
        return ValueError(f"line {self.line}: {column}: {what}")

    def text(self, column: str) -> str:
        """A field that must not be empty."""
        if not self.fields[column]:
            raise self.wrong(column, "missing")
        return self.fields[column]

    def number(self, column: str, least: float = -math.inf, most: float = math.inf, above: float = -math.inf) -> float:
        """A field that is a finite number, from `least` to `most` and greater than `above`."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and least <= value <= most and value > above):
            limits = {"from": least, "to": most, "above": above}
            allowed = "".join(f" {word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit))
            raise self.wrong(column, f"expected a number{allowed}, found {cut(repr(text))}")
        return value


def csv_rows(
    text: str, required: Sequence[str], optional: Sequence[str] = (), others: bool = False
) -> Iterator[CsvRow]:
    """Parse the rows of a CSV text with a header; empty lines are skipped, and other columns are allowed only with `others`.

    Raises ValueError where a column is missing, unknown or appears twice, where a row has not as many fields as the header, and
    where there are no rows.
    """
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    rows = 0
    try:
        for fields in lines:
            if not any(map(str.strip, fields)):
                continue
            if not header:
                header = [name.strip() for name in fields]
                _check_header(header, lines.line_num, required, optional, others)
                continue
            if len(fields) != len(header):
                raise ValueError(f"line {lines.line_num}: expected {len(header)} fields, found {len(fields)}")
            named = zip(header, fields, strict=True)
            yield CsvRow(
                lines.line_num, {name: value.strip() for name, value in named if name in (*required, *optional)}
            )
            rows += 1
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num}: not valid CSV: {error}") from None
    if not rows:
        raise ValueError(f"no rows (expected a header with {', '.join(required)}, and rows below it)")


def _check_header(header: list[str], line: int, required: Sequence[str], optional: Sequence[str], others: bool) -> None:
    known = [*required, *optional]
    allowed = f"(allowed: {', '.join(known)})"
    for name in required:
        if name not in header:
            near = suggestion(name, [other for other in header if other not in known])
            raise ValueError(f"line {line}: no column '{name}'{near} (columns found: {', '.join(header)})")
    for name in header:
        if name in known and header.count(name) > 1:
            raise ValueError(f"line {line}: column '{name}' appears twice")
        if name not in known and not others:
            raise ValueError(f"line {line}: unknown column '{name}'{suggestion(name, known)} {allowed}")


def _bytes(path: Path) -> bytes:
    if not os.path.exists(path):
        folder = path.parent
        near = nearest(path.name, sorted(entry.name for entry in folder.iterdir())) if os.path.isdir(folder) else None
        hint = f", did you mean '{folder / near}'?" if near else ""
        raise NoSuchFile(f"no such file{hint} (found '{path}')")
    if not path.is_file():
        raise ValueError(f"expected a file, '{path}' is {'a folder' if path.is_dir() else 'a pipe or a device'}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"'{path}' cannot be read ({error.strerror})") from None


def _text(data: bytes) -> str:
    try:
        data = b"".join(pieces(io.BytesIO(data)))
    except Damaged as error:
        raise ValueError(f"not a whole {error.codec} file: {error.reason}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"line {error.object[: error.start].count(10) + 1}: not UTF-8 text") from None


@lru_cache(maxsize=16)
def _parsed(parse: Callable[[str], _T], text: str) -> _T:
    """Parse a text once for all variants that name the file."""
    return parse(text)
