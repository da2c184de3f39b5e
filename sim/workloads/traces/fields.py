"""The fields of lines as columns of text: cut from the bytes by Arrow, or by Python where they are quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import places
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.ranges import Lines

_LF = 10


class RawRows(Protocol):
    """Rows as they are in a file."""

    def texts(self, wanted: NDArray[np.bool_]) -> pa.StringArray:
        """The rows that are wanted, which are valid; null for the others."""
        ...

    def text(self, line: int) -> str:
        """A row for display."""
        ...


@dataclass(frozen=True)
class Fields:
    """The fields of lines: a text for each, null in rows that are not `parsed`, or that lack it."""

    lines: RawRows
    parsed: NDArray[np.bool_]
    columns: Mapping[str, pa.StringArray]


def field_pattern(layout: Layout) -> str:
    """A regular expression, for Java and Python, for a delimiter and a possibly quoted field, without backtracking.

    Other fields have no quotes, as otherwise the second line of a field that spans two would be taken for a row.
    """
    delimiter = re.escape(layout.delimiter)
    plain = rf'[^"{delimiter}]*+' if len(layout.delimiter) == 1 else rf'(?:(?!{delimiter})[^"])*+'
    return rf'{delimiter}("(?:[^"]++|"")*+"|{plain})'


def text_fields(lines: Lines, layout: Layout, names: Sequence[str], used: Mapping[str, str]) -> Fields:
    """The fields of a text whose lines have `names` in order; `used` are those that are wanted, by the pipeline's names.

    A line with another number of fields, or not in UTF-8, is not parsed.
    """
    at, first, counts = _cut(lines, layout)
    parsed = lines.valid & (counts == len(names))
    extra = b""
    if odd := _odd(lines, layout):
        take_apart = partial(_take_apart, layout=layout, count=len(names))
        for line in odd:
            parsed[line] = False
        found = {line: fields for line in odd if lines.valid[line] and (fields := take_apart(_text(lines, line)))}
        where = np.fromiter(found, np.int64, len(found))
        parsed[where] = True
        texts = [field.encode() for fields in found.values() for field in fields]
        first[where] = len(at) // 2 + len(names) * np.arange(len(found))
        ends = len(lines.data) + np.cumsum([0, *map(len, texts)])
        at = np.concatenate([at, np.column_stack([ends[:-1], ends[1:]]).ravel()])
        extra = b"".join(texts)
    pieces = _pieces(lines.data + extra if extra else lines.data, at)
    chosen = np.where(parsed, first, 0)
    columns = {field: pieces.take(places(2 * (chosen + names.index(name)), parsed)) for field, name in used.items()}
    return Fields(lines, parsed, columns)


def _cut(lines: Lines, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each field begins and ends, one after the other; the number of each line's first field; how many it has."""
    delimiter = layout.delimiter.encode()
    if len(delimiter) > 1:
        return np.zeros(2, np.int64), np.zeros(len(lines), np.int64), np.zeros(len(lines), np.int64)
    found = lines.bytes == delimiter[0]
    found |= lines.bytes == _LF
    stops = np.flatnonzero(found)
    if not lines.data.endswith(b"\n"):
        stops = np.append(stops, len(lines.data))
        last = np.append(np.flatnonzero(lines.bytes[stops[:-1]] == _LF), len(stops) - 1)
    else:
        last = np.flatnonzero(lines.bytes[stops] == _LF)
    first = np.zeros(len(lines), np.int64)
    first[1:] = last[:-1] + 1
    at = np.empty((len(stops), 2), np.int64)
    at[0, 0] = 0
    at[1:, 0] = stops[:-1] + 1
    at[:, 1] = stops
    at[first, 0] = lines.start
    at[last, 1] = lines.end
    return at.ravel(), first, last - first + 1


def _pieces(data: bytes, at: NDArray[np.int64]) -> pa.StringArray:
    """The text between each two of these places, one after the other: fields, and between them what separates them."""
    return pa.StringArray.from_buffers(len(at) - 1, pa.py_buffer(at.astype(np.int32)), pa.py_buffer(data))


def _odd(lines: Lines, layout: Layout) -> Sequence[int]:
    """The lines that Python splits: those with quotes if these have a meaning, or all if the delimiter has several bytes."""
    if len(layout.delimiter.encode()) > 1:
        return range(len(lines))
    if not (layout.quote and b'"' in lines.data):
        return ()
    found = np.searchsorted(lines.end, np.flatnonzero(lines.bytes == ord('"')), side="right")
    return np.unique(found).tolist()  # type: ignore[no-any-return]


def _text(lines: Lines, line: int) -> str:
    return lines.data[lines.start[line] : lines.end[line]].decode()


def _take_apart(text: str, layout: Layout, count: int) -> list[str] | None:
    """The fields of a line where there are as many as that."""
    if not (layout.quote and '"' in text):
        fields = text.split(layout.delimiter, count)
    else:
        whole, one = layout.delimiter + text, field_pattern(layout)
        if not re.fullmatch(rf"(?:{one}){{{count}}}", whole):
            return None
        fields = [unquoted(field) for field in re.findall(one, whole)]
    return fields if len(fields) == count else None


def unquoted(field: str) -> str:
    """A field without its quotes."""
    return field[1:-1].replace('""', '"') if field.startswith('"') else field
