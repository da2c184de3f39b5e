"""Visits by time: blocks of them become the workload's tables, a file each, with the subscription changes that they cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.ordering import lex_order
from sim.files.directories import Directory
from sim.files.parquet import arrow, write_tables
from sim.workloads.format.parts import part_name
from sim.workloads.models.location import Visits, cell_keys
from sim.workloads.traces.exchange import SharedArrays, SortedRows, block_limits
from sim.workloads.traces.spark_tasks import TaskResult

_CHANGING = 1 << 17  # visits whose changes are in memory at once


@dataclass(frozen=True)
class VisitGrid(SharedArrays):
    """What is known of all parts: the cells that anybody visits, by their keys, of a side in degrees, and the parts' users.

    `users-PART` in the folder are the numbers of a part's users, and `cells` the keys.
    """

    side: float

    def cells_at(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.int32]:
        """The numbers of the cells at these positions."""
        return np.searchsorted(self.read("cells"), cell_keys(latitude, longitude, self.side)).astype(np.int32)


@dataclass(frozen=True)
class Whereabouts:
    """Finds in which cell each user of a part is when each block begins; before the first, where the user is first seen.

    They go to `here-PART`, block by block.
    """

    grid: VisitGrid
    blocks: NDArray[np.int64]

    def __call__(self, part: int) -> tuple[int, TaskResult]:
        """Nothing but the file."""
        users = len(self.grid.read(f"users-{part}"))
        rows = self.grid.rows(f"visits-{part}")
        user, cell = rows["user"], self.grid.cells_at(rows["latitude"], rows["longitude"])
        here = np.empty((len(self.blocks) + 1, users), np.int32)
        here[0][user[::-1]] = cell[::-1]  # the earliest is written last
        ends = np.searchsorted(rows["micros"], self.blocks)
        for block, (start, stop) in enumerate(zip([0, *ends], ends, strict=False), 1):
            here[block] = here[block - 1]
            here[block][user[start:stop]] = cell[start:stop]  # the latest is written last
        self.grid.keep(f"here-{part}", *here)
        return len(user), {}


ChangesKernel = Callable[..., int]
"""`subscription_changes` before it is compiled: executors get it by value, and need only Numba."""


@dataclass(frozen=True)
class BlockWriter:
    """Writes the tables of a block of time to a folder `tables`, as parts of the workload.

    `files` are those of each part, `visits` and perhaps `each`; times count from `origin` (µs since 1970). The arrays
    `friends`, of this shape, and `followers` with `followed_from`, as CSR, are in the grid's folder. Publications have `size` bytes;
    `changes` is the kernel that finds subscription changes, and what it fills.
    """

    grid: VisitGrid
    tables: Directory
    blocks: NDArray[np.int64]
    files: Mapping[str, Sequence[SortedRows]]
    origin: int
    friends: tuple[int, int]
    size: int
    changes: tuple[ChangesKernel, type]

    def __call__(self, block: int) -> tuple[int, TaskResult]:
        """How many rows each table got, the SHA-256 of each file, and how often something was published in which cells."""
        visits = self._visits("visits", block)
        moved = {name: getattr(visits, name) for name in ("time", "user", "latitude", "longitude")}
        rows = {"movements": len(visits)}
        sums = self._put("movements", block, [moved])
        each = self._visits("each", block) if "each" in self.files else visits
        published = {
            "time": each.time, "topic": each.cell, "publisher": each.user, "size": np.full(len(each), self.size, np.int32)
        }  # fmt: skip
        cells, counts = np.unique(each.cell, return_counts=True)
        rows["publications"] = len(each)
        sums |= self._put("publications", block, [published])
        del each, published, moved
        rows["subscription_events"] = 0

        def counted() -> Iterator[Columns]:
            for changes in self._changes(visits, block):
                rows["subscription_events"] += len(changes["time"])
                yield changes

        sums |= self._put("subscription_events", block, counted())
        return len(visits), {"rows": rows, "sums": sums, "cells": cells, "counts": counts}

    def _put(self, table: str, block: int, parts: Iterable[Columns]) -> dict[str, str]:
        name = part_name(table, block)
        with self.tables.output(name) as file:
            write_tables(file, (pa.table({key: arrow(values) for key, values in some.items()}) for some in parts))
        return {name: self.tables.sha256(name)}

    def _visits(self, kind: str, block: int) -> Visits:
        """The rows of a file of each part in a block, by (time, user, cell)."""
        found = list[tuple[NDArray[np.generic], ...]]()
        for part, sorted_rows in enumerate(self.files[kind]):
            rows = self.grid.between(sorted_rows, *block_limits(self.blocks, block))
            if rows is None:
                continue
            micros, user, latitude, longitude = rows.values()
            number = self.grid.read(f"users-{part}")[user]
            found.append(((micros - self.origin) / 1e6, number, latitude, longitude))
        kinds = (np.float64, np.int32, np.float64, np.float64)
        time, user, *place = (
            np.concatenate([np.zeros(0, kind), *(one[place] for one in found)]) for place, kind in enumerate(kinds)
        )
        visits = Visits(time, user, self.grid.cells_at(*place), *place)
        return visits.rows(lex_order(visits.time, visits.user, visits.cell))

    def _changes(self, visits: Visits, block: int) -> Iterator[Columns]:
        here = np.empty(self.friends[0], np.int32)
        for part in range(len(self.files["visits"])):
            users = self.grid.read(f"users-{part}")
            here[users] = self.grid.read(f"here-{part}", block)
        friends = self.grid.read("friends").reshape(self.friends)
        followed_from, followers = (self.grid.read(name) for name in ("followed_from", "followers"))
        compiled, out_type = self.changes
        for start in range(0, max(len(visits), 1), _CHANGING):
            steps = tuple(getattr(visits, name)[start : start + _CHANGING] for name in ("time", "user", "cell"))
            room = 2 * int((1 + np.diff(followed_from))[steps[1]].sum())
            out = out_type(np.empty(room), *(np.empty(room, kind) for kind in (np.int32, np.int32, np.int8)))
            n = compiled(steps, here, friends, (followed_from, followers), out)
            yield {name: values[:n] for name, values in zip(out._fields, out, strict=True)}
