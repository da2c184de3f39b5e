"""Validated rows on disk, usable and bad ones, in a piece per range of a file, as written by one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

# Any: PyArrow has no types for what it writes with.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import int64_values
from sim.files.directories import Directory

RowFault = tuple[str | None, str | None]
"""Why a row is of no use, None where it is, and which field that speaks of, None for the whole row."""


@dataclass
class Piece:
    """What a task found in a range of a source: how many lines and rows by their faults, the first of each, and where they are.

    `start` is where the range begins, in bytes, or, in Parquet (`numbered`) and in logs of brokers, the number of its first row or
    line. Rows are numbered from 0. A first row is its number, what stands there, and the text of the field that is wrong.
    """

    source: int
    start: int
    numbered: bool = False
    lines: int = 0
    faults: Counter[RowFault] = field(default_factory=Counter)
    firsts: dict[RowFault, tuple[int, str, str | None]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its files, which sort like the pieces of a source."""
        return f"{self.source:06}-{self.start:015}"

    def count(self, fault: RowFault, rows: int, first: tuple[int, str, str | None] | None = None) -> None:
        """Count rows with a fault, of which this is the first."""
        self.faults[fault] += rows
        if first is not None:
            self.firsts.setdefault(fault, first)


class PieceWriter:
    """Writes the rows of a piece, which appear in the folder once it is closed; a task done twice does no harm."""

    def __init__(self, folder: Directory, piece: Piece) -> None:
        self.folder, self.piece = folder, piece
        self._files = ExitStack()
        self._writers: dict[str, Any] = {}

    def write(self, usable: pa.RecordBatch, bad: pa.RecordBatch) -> None:
        """Write typed usable rows and bad rows (row, raw, reason), both with ascending row numbers."""
        for kind, batch in (("usable", usable), ("bad", bad)):
            if len(batch):
                if kind not in self._writers:
                    file = self._files.enter_context(self.folder.output(f"{self.piece.name}.{kind}"))
                    self._writers[kind] = pa.ipc.new_stream(file, batch.schema)
                self._writers[kind].write_batch(batch)

    def close(self) -> None:
        """Put the rows in place."""
        for writer in self._writers.values():
            writer.close()
        self._files.close()


@dataclass(frozen=True)
class Shelf:
    """The rows of a table's files: their pieces by source and start, in a folder."""

    folder: Directory
    pieces: Sequence[Piece]

    def shifts(self) -> list[int]:
        """How much is added to the row numbers of each piece for the numbers of lines, from 1 in each source."""
        shifts, lines = list[int](), Counter[int]()
        for piece in self.pieces:
            shifts.append(1 + (piece.start if piece.numbered else lines[piece.source]))
            lines[piece.source] += piece.lines
        return shifts

    def batches(self, piece: Piece, kind: str) -> Iterator[pa.RecordBatch]:
        """The rows of a kind, `usable` or `bad`, in a piece."""
        return self.folder.batches(f"{piece.name}.{kind}")

    def usable(self) -> Iterator[tuple[int, NDArray[np.int64], pa.RecordBatch]]:
        """The usable rows by source and line: their source, lines and columns."""
        for piece, shift in zip(self.pieces, self.shifts(), strict=True):
            for batch in self.batches(piece, "usable"):
                yield piece.source, int64_values(batch["row"]) + shift, batch

    @property
    def rows(self) -> int:
        """The number of usable rows."""
        return self.faults[None, None]

    @property
    def faults(self) -> Counter[RowFault]:
        """The number of rows with each fault."""
        return sum((piece.faults for piece in self.pieces), Counter())

    def first(self, fault: RowFault) -> tuple[int, int, str, str | None]:
        """The source and the line of the first row with a fault, what stands there, and the text of the field that is wrong."""
        piece, shift = next(pair for pair in zip(self.pieces, self.shifts(), strict=True) if fault in pair[0].firsts)
        row, raw, found = piece.firsts[fault]
        return piece.source, row + shift, raw, found
