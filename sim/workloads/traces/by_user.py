"""Check-ins by user: split into parts that have all rows of their users, in which tasks find duplicates and visits on their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.ordering import lex_order
from sim.base.randomness import Streams
from sim.files.columns import codes, int64_values, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow
from sim.workloads.models.location import cell_keys, number_cells, visits_among
from sim.workloads.traces.checkins import CHECKIN_TYPES, Checkins, ordered_checkins
from sim.workloads.traces.quarantine import row_number
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.typed import Names
from sim.workloads.traces.user_filters import UserFilters, select_users

PART_ROWS = 1 << 20
"""Rows that a task has in memory at once, unless a single user has more."""
BATCH_ROWS = 1 << 16
_SPLIT = pa.schema({"row": pa.int64(), **CHECKIN_TYPES})


@dataclass(frozen=True)
class PieceSplitter:
    """Splits the usable rows of pieces on a shelf, given with the shifts of their lines, by the names of users into `parts`.

    A batch of rows for each part in turn goes to the file `split-PIECE` of the folder.
    """

    shelf: Shelf
    parts: int
    folder: Directory

    def __call__(self, item: tuple[Piece, int]) -> tuple[int, TaskResult]:
        """The file's name, and the first and the last time in it (µs since 1970), None where it has no rows."""
        piece, shift = item
        name, times = f"split-{piece.name}", list[int]()
        with self.folder.output(name) as file, pa.ipc.new_file(file, _SPLIT) as writer:
            waiting, rows = list[pa.RecordBatch](), 0
            for batch in self.shelf.batches(piece, "usable"):
                micros = int64_values(batch["micros"])
                times += [int(micros.min()), int(micros.max())]
                row = row_number(piece.source, int64_values(batch["row"]) + shift)
                waiting.append(batch.set_column(0, "row", arrow(row)))
                rows += len(batch)
                if rows >= PART_ROWS:
                    self._write(writer, waiting)
                    waiting, rows = [], 0
            if waiting:
                self._write(writer, waiting)
        return piece.faults[None, None], {"file": name, "times": (min(times), max(times)) if times else None}

    def _write(self, writer: pa.ipc.RecordBatchWriter, batches: Sequence[pa.RecordBatch]) -> None:
        part = np.concatenate([self._part(batch["user"]) for batch in batches])
        order = np.argsort(part, kind="stable")
        columns = {}
        for name in _SPLIT.names:
            column = pa.concat_arrays([batch[name].cast(_SPLIT.field(name).type) for batch in batches])
            columns[name] = column.take(arrow(order))
        rows = pa.record_batch(columns)
        ends = np.searchsorted(part[order], np.arange(self.parts), side="right").tolist()
        for start, stop in zip([0, *ends], ends, strict=False):
            writer.write_batch(rows.slice(start, stop - start))

    def _part(self, users: pa.Array) -> Integers:
        users = users.dictionary_encode()
        names = users.dictionary.cast(pa.binary()).to_pylist()
        found: Integers = np.array([crc32(name) % self.parts for name in names], np.min_scalar_type(self.parts))
        return found[codes(users)]


@dataclass(frozen=True)
class UserPart:
    """Finds what becomes of the check-ins of a part: duplicates and users left out, visits and, if each is published, all of them.

    `splits` are the files of `PieceSplitter`. Three files are left in the folder: `dropped-PART` has the numbers of rows
    with the reason that they got, sorted; `visits-PART` and `each-PART` have times, users, as numbered in the part, and positions,
    sorted by time, user and cell, in batches of `BATCH_ROWS`.
    """

    splits: Sequence[str]
    parts: int
    folder: Directory
    filters: UserFilters
    months: NDArray[np.int64]
    side: float
    streams: Streams
    each: bool

    def __call__(self, part: int) -> tuple[int, TaskResult]:
        """What is left: names, homes, cells and days, and when each batch in the files begins."""
        checkins = self._load(part)
        rows = len(checkins)
        left, dropped = select_users(checkins, self.filters, months=self.months, side=self.side, streams=self.streams)
        del checkins
        _write_dropped(self.folder, f"dropped-{part}", dropped)
        _, cell = number_cells(left.latitude, left.longitude, self.side)
        begins = visits_among(left.user, left.micros, cell)
        first = begins[np.diff(left.user[begins], prepend=-1) != 0]  # of each user, as they are sorted by user and time
        order = begins[lex_order(left.micros[begins], left.user[begins], cell[begins])]
        starts = {"visits": self._write(f"visits-{part}", left, order)}
        if self.each:
            starts["each"] = self._write(f"each-{part}", left, lex_order(left.micros, left.user, cell))
        return rows, {
            "names": left.names,
            "home": np.stack([left.latitude[first], left.longitude[first]]),
            "cells": np.unique(cell_keys(left.latitude[begins], left.longitude[begins], self.side)),
            "days": rows_per_day([left.micros]),
            "starts": starts,
            "rows": {"visits": len(order), "each": len(left)},
            "dropped": {reason: len(numbers) for reason, numbers in dropped.items()},
        }

    def _load(self, part: int) -> Checkins:
        users, batches = Names(), list[pa.RecordBatch]()
        for name in self.splits:
            with self.folder.input(name) as file, pa.ipc.open_file(file) as split:
                batches += [split.get_batch(n) for n in range(part, split.num_record_batches, self.parts)]
        number = [users.number(batch["user"]) for batch in batches]
        loaded = {
            field.name: np.concatenate(
                [np.zeros(0, field.type.to_pandas_dtype()), *(values_of(batch[field.name]) for batch in batches)]
            )
            for field in _SPLIT
            if field.name != "user"
        }
        return ordered_checkins(users, {"user": np.concatenate([np.zeros(0, np.int32), *number]), **loaded})

    def _write(self, name: str, checkins: Checkins, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Write check-ins in this order, and return the time of the first in each batch."""
        columns = ("micros", "user", "latitude", "longitude")
        rows = pa.record_batch({column: arrow(getattr(checkins, column)[order]) for column in columns})
        with self.folder.output(name) as file, pa.ipc.new_file(file, rows.schema) as writer:
            for start in range(0, max(len(rows), 1), BATCH_ROWS):
                writer.write_batch(rows.slice(start, BATCH_ROWS))
        return checkins.micros[order[::BATCH_ROWS]]


def _write_dropped(folder: Directory, name: str, dropped: dict[str, NDArray[np.int64]]) -> None:
    row = np.concatenate([np.zeros(0, np.int64), *dropped.values()])
    reason = np.repeat(np.arange(len(dropped), dtype=np.int8), [len(numbers) for numbers in dropped.values()])
    order = np.argsort(row)
    rows = pa.record_batch({"row": arrow(row[order]), "reason": arrow(reason[order])})
    with folder.output(name) as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_batch(rows)


@dataclass(frozen=True)
class DroppedRows:
    """The rows that parts have dropped, for these reasons."""

    folder: Directory
    parts: int
    reasons: Sequence[str]

    def __call__(self, first: int, stop: int) -> dict[str, NDArray[np.int64]]:
        """The numbers of the rows in [first, stop), by reason."""
        numbers, reasons = [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
        for part in range(self.parts):
            with self.folder.input(f"dropped-{part}") as file, pa.ipc.open_file(file) as stored:
                rows = stored.get_batch(0)
            number = int64_values(rows["row"])
            found = slice(*np.searchsorted(number, (first, stop)).tolist())
            numbers.append(number[found])
            reasons.append(values_of(rows["reason"])[found].view(np.int8))
        row, code = np.concatenate(numbers), np.concatenate(reasons)
        return {reason: row[code == place] for place, reason in enumerate(self.reasons)}
