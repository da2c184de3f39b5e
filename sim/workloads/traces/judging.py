"""Validation of raw rows: ranges of files become typed columns, usable rows and bad rows, in one pass.

It needs no Spark, but runs in Spark's tasks as well as in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Any: PyArrow has no types for its arrays.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.directories import Directory
from sim.files.parquet import arrow, strings
from sim.workloads.traces.fields import Fields, text_fields
from sim.workloads.traces.json_fields import json_fields
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.parquet_fields import parquet_rows
from sim.workloads.traces.ranges import Range, lines_of, recoded
from sim.workloads.traces.shelves import Piece, PieceWriter, RowFault
from sim.workloads.traces.time_kernels import uncovered
from sim.workloads.traces.times import Window


@dataclass(frozen=True)
class Judged:
    """What rows are `typed` as, and which of them have which fault; of several, the first counts.

    Of those without any, some may be put into quarantine later, and are kept as they are read: all, or those `recalled`.
    """

    typed: Mapping[str, Any]
    faults: Mapping[RowFault, NDArray[np.bool_]]
    recalled: NDArray[np.bool_] | bool = True


Rules = Callable[[Fields], Judged]


def beyond_kernels(layout: Layout) -> str | None:
    """The part of a layout that only Spark can read; None where kernels can read all of it."""
    if pattern := uncovered(layout):
        return f"times in the format '{pattern}' are not read by Arrow kernels"
    return None


@dataclass(frozen=True)
class RangeJudge:
    """Validates ranges of files in a layout by rules, which need the fields `used`; writes a piece per range to the folder."""

    layout: Layout
    used: tuple[str, ...]
    rules: Rules
    folder: Directory

    def __call__(self, part: Range) -> Piece:
        """The piece of a range. Raises Damaged where its file cannot be unpacked."""
        columns = self.layout.columns
        wanted = {
            field: columns[field] if isinstance(columns, Mapping) else field for field in self.used if field in columns
        }
        writer = PieceWriter(self.folder, Piece(part.source, part.start, numbered=self.layout.kind == "parquet"))
        if self.layout.kind == "parquet":
            for fields in parquet_rows(part.path, part.groups, wanted):
                self._judge(fields, False, writer)
            writer.close()
            return writer.piece
        for data in part.chunks():
            beginning = part.start + writer.piece.lines == 0
            lines = lines_of(recoded(data, self.layout.encoding), beginning=beginning)
            if self.layout.kind == "jsonl":
                fields = json_fields(lines, self.layout, wanted)
            else:
                fields = text_fields(lines, self.layout, part.names, wanted)
            self._judge(fields, beginning and self.layout.header, writer)
        writer.close()
        return writer.piece

    def _judge(self, fields: Fields, header: bool, writer: PieceWriter) -> None:
        piece, rows = writer.piece, len(fields.parsed)
        row = np.arange(piece.lines, piece.lines + rows)
        write_judged(self.rules(fields), fields, row, writer, first=int(header))
        piece.lines += rows


def write_judged(judged: Judged, fields: Fields, row: NDArray[np.int64], writer: PieceWriter, first: int = 0) -> None:
    """Write rows with these numbers, except those before the `first`."""
    lines, piece = fields.lines, writer.piece
    fault = np.full(len(row), -1, np.int8)
    for number, mask in reversed([*enumerate(judged.faults.values())]):
        fault[mask] = number
    keep = fault < 0
    keep[:first] = False
    where = first + np.flatnonzero(fault[first:] >= 0)
    raw = [lines.text(line) for line in where.tolist()]
    piece.count((None, None), int(keep.sum()))
    names_of = list(judged.faults)
    for number in np.unique(fault[where]):
        at = np.flatnonzero(fault[where] == number)
        reason, column = names_of[number]
        text = fields.columns[column][int(where[at[0]])].as_py() if column else None
        piece.count((reason, column), len(at), (int(row[where[at[0]]]), raw[at[0]], text))
    usable = {"row": row, "raw": lines.texts(keep & judged.recalled), **judged.typed}
    usable = {name: arrow(column) for name, column in usable.items()}
    if not keep.all():
        usable = {name: column.filter(arrow(keep)) for name, column in usable.items()}
    reasons = strings(reason or "" for reason, _ in names_of).take(arrow(fault[where]))
    writer.write(
        pa.record_batch(usable), pa.record_batch({"row": arrow(row[where]), "raw": strings(raw), "reason": reasons})
    )


def beyond(micros: NDArray[np.int64], window: Window) -> NDArray[np.bool_]:
    """Whether times (µs since 1970) are before or after a window."""
    first, end = window
    found = np.zeros(len(micros), np.bool_)
    if first is not None:
        found |= micros < first
    if end is not None:
        found |= micros >= end
    return found
