"""Check-ins by user: split into parts that have all rows of their users, in which tasks find duplicates and visits on their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.ordering import lex_order
from sim.base.randomness import Streams
from sim.files.columns import int64_values, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow
from sim.workloads.models.location import cell_keys, number_cells, visits_among
from sim.workloads.traces.checkins import CHECKIN_TYPES, Checkins, ordered_checkins
from sim.workloads.traces.exchange import SortedRows, SplitWriter, split_rows, write_sorted
from sim.workloads.traces.quarantine import REASONS, row_number
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.typed import Names
from sim.workloads.traces.user_filters import UserFilters, select_users

_SPLIT = pa.schema({**CHECKIN_TYPES, "row": pa.int64()})


@dataclass(frozen=True)
class PieceSplitter:
    """Splits the usable rows of pieces on a shelf, given with the shifts of their lines, by the names of users into `parts`.

    The rows of a piece go to the file `split-PIECE` of the folder.
    """

    shelf: Shelf
    parts: int
    folder: Directory

    def __call__(self, item: tuple[Piece, int]) -> tuple[int, TaskResult]:
        """The file's name, and the first and the last time in it (µs since 1970), None where it has no rows."""
        piece, shift = item
        name, times = f"split-{piece.name}", list[int]()
        with SplitWriter(self.folder, name, _SPLIT, self.parts) as split:
            for batch in self.shelf.batches(piece, "usable"):
                micros = int64_values(batch["micros"])
                times += [int(micros.min()), int(micros.max())]
                row = row_number(piece.source, int64_values(batch["row"]) + shift)
                split.add({**{column: batch[column] for column in CHECKIN_TYPES}, "row": row})
        return piece.faults[None, None], {"file": name, "times": (min(times), max(times)) if times else None}


@dataclass(frozen=True)
class UserPart:
    """Finds what becomes of the check-ins of a part: duplicates and users left out, visits and, if each is published, all of them.

    `splits` are the files of `PieceSplitter`. Three files are left in the folder: `dropped-PART` has the numbers of rows
    with their reason, sorted; `visits-PART` and `each-PART` have times, users, as numbered in the part, and positions,
    sorted by time, user and cell.
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
        """What is left: names, homes, cells and days, and the files (`SortedRows`)."""
        checkins = self._load(part)
        rows = len(checkins)
        left, dropped = select_users(checkins, self.filters, months=self.months, side=self.side, streams=self.streams)
        del checkins
        write_dropped(self.folder, f"dropped-{part}", dropped)
        _, cell = number_cells(left.latitude, left.longitude, self.side)
        begins = visits_among(left.user, left.micros, cell)
        first = begins[np.diff(left.user[begins], prepend=-1) != 0]  # of each user, as they are sorted by user and time
        order = begins[lex_order(left.micros[begins], left.user[begins], cell[begins])]
        files = {"visits": self._write("visits", part, left, order)}
        if self.each:
            files["each"] = self._write("each", part, left, lex_order(left.micros, left.user, cell))
        return rows, {
            "names": left.names,
            "home": np.stack([left.latitude[first], left.longitude[first]]),
            "cells": np.unique(cell_keys(left.latitude[begins], left.longitude[begins], self.side)),
            "days": rows_per_day([left.micros]),
            "files": {kind: vars(rows) for kind, rows in files.items()},
            "rows": {"visits": len(order), "each": len(left)},
            "dropped": {reason: len(numbers) for reason, numbers in dropped.items()},
        }

    def _load(self, part: int) -> Checkins:
        users, batches = Names(), list(split_rows(self.folder, self.splits, part, self.parts))
        number = [users.number(batch["user"]) for batch in batches]
        loaded = {
            field.name: np.concatenate(
                [np.zeros(0, field.type.to_pandas_dtype()), *(values_of(batch[field.name]) for batch in batches)]
            )
            for field in _SPLIT
            if field.name != "user"
        }
        return ordered_checkins(users, {"user": np.concatenate([np.zeros(0, np.int32), *number]), **loaded})

    def _write(self, kind: str, part: int, checkins: Checkins, order: NDArray[np.int64]) -> SortedRows:
        columns = {name: getattr(checkins, name)[order] for name in ("micros", "user", "latitude", "longitude")}
        return write_sorted(self.folder, f"{kind}-{part}", columns, str(part))


def write_dropped(folder: Directory, name: str, dropped: dict[str, NDArray[np.int64]]) -> None:
    """Write the numbers of rows with their reasons, for `DroppedRows`."""
    row = np.concatenate([np.zeros(0, np.int64), *dropped.values()])
    codes = np.array([REASONS.index(reason) for reason in dropped], np.int8)
    reason = np.repeat(codes, [len(numbers) for numbers in dropped.values()])
    order = np.argsort(row)
    rows = pa.record_batch({"row": arrow(row[order]), "reason": arrow(reason[order])})
    with folder.output(name) as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_batch(rows)


@dataclass(frozen=True)
class DroppedRows:
    """The rows that parts have dropped."""

    folder: Directory
    parts: int

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
        return {reason: row[code == place] for place, reason in enumerate(REASONS)}
