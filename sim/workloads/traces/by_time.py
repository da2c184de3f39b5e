"""Visits by time: blocks of them become the workload's tables, a file each, with the subscription changes that they cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# Any: PyArrow has no types for its columns.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.ordering import lex_order
from sim.files.columns import values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow, write_tables
from sim.workloads.format.parts import part_name
from sim.workloads.models.location import Visits, cell_keys
from sim.workloads.traces.spark_tasks import TaskResult

BLOCK_ROWS = 1 << 20
"""Visits, or published check-ins, of a block, unless there are more users."""
_CHANGING = 1 << 17  # visits whose changes are in memory at once

BatchStarts = Sequence[NDArray[np.int64]]
"""When each batch of each part's file begins (µs since 1970)."""


def cut_blocks(starts: BatchStarts, rows: int, most: int) -> NDArray[np.int64]:
    """When blocks begin that have about `most` rows of `rows`, none for the first; few rows are of one instant."""
    every = np.sort(np.concatenate(starts))
    blocks = max(1, -(-rows // most))
    return np.unique(every[np.arange(1, blocks) * len(every) // blocks])


@dataclass(frozen=True)
class SharedArrays:
    """What is known of all parts: the cells that anybody visits, by their keys, of a side in degrees, and the parts' users.

    `users-PART` in the folder are the numbers of a part's users, and `cells` the keys.
    """

    folder: Directory
    side: float

    def keep(self, name: str, *arrays: Integers) -> None:
        """Write arrays of one type for tasks to map."""
        schema = pa.schema({"": pa.from_numpy_dtype(arrays[0].dtype)})
        with self.folder.output(name) as file, pa.ipc.new_file(file, schema) as writer:
            for values in arrays:
                writer.write_batch(pa.record_batch({"": arrow(values)}))

    def read(self, name: str, number: int = 0) -> Integers:
        """One of the arrays that `keep` has written."""
        with self.folder.input(name) as file, pa.ipc.open_file(file) as stored:
            found: Integers = _values(stored.get_batch(number)[0])
        return found

    def rows(self, name: str, first: int = 0, stop: int | None = None) -> Columns:
        """The columns of check-ins in a file of `UserPart`, from one of its batches to another."""
        with self.folder.input(name) as file, pa.ipc.open_file(file) as stored:
            batches = range(first, stored.num_record_batches if stop is None else stop)
            rows = pa.Table.from_batches([stored.get_batch(n) for n in batches], stored.schema).combine_chunks()
        return {column: _values(rows[column].chunk(0)) for column in rows.column_names}

    def cells_at(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.int32]:
        """The numbers of the cells at these positions."""
        return np.searchsorted(self.read("cells"), cell_keys(latitude, longitude, self.side)).astype(np.int32)


def _values(column: pa.Array) -> Any:
    return values_of(column) if len(column) else np.empty(0, column.type.to_pandas_dtype())


@dataclass(frozen=True)
class Whereabouts:
    """Finds in which cell each user of a part is when each block begins; before the first, where the user is first seen.

    They go to `here-PART`, block by block.
    """

    grid: SharedArrays
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

    `starts` tell by file, `visits` and perhaps `each`, when its batches begin; times count from `origin` (µs since 1970). The arrays
    `friends`, of this shape, and `followers` with `followed_from`, as CSR, are in the grid's folder. Publications have `size` bytes;
    `changes` is the kernel that finds subscription changes, and what it fills.
    """

    grid: SharedArrays
    tables: Directory
    blocks: NDArray[np.int64]
    starts: Mapping[str, BatchStarts]
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
        each = self._visits("each", block) if "each" in self.starts else visits
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
        first = self.blocks[block - 1] if block else np.iinfo(np.int64).min
        stop = self.blocks[block] if block < len(self.blocks) else np.iinfo(np.int64).max
        found = list[tuple[NDArray[np.generic], ...]]()
        for part, starts in enumerate(self.starts[kind]):
            begin = max(int(np.searchsorted(starts, first, side="left")) - 1, 0)
            end = int(np.searchsorted(starts, stop, side="left"))
            if begin >= end:
                continue
            rows = self.grid.rows(f"{kind}-{part}", begin, end)
            here = slice(*np.searchsorted(rows["micros"], (first, stop)).tolist())
            micros, user, latitude, longitude = (column[here] for column in rows.values())
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
        for part in range(len(self.starts["visits"])):
            users = self.grid.read(f"users-{part}")
            here[users] = self.grid.read(f"here-{part}", block)
        friends = self.grid.read("friends").reshape(self.friends)
        followed_from, followers = (self.grid.read(name) for name in ("followed_from", "followers"))
        compiled, out_type = _compiled_once(*self.changes)
        for start in range(0, max(len(visits), 1), _CHANGING):
            steps = tuple(getattr(visits, name)[start : start + _CHANGING] for name in ("time", "user", "cell"))
            room = 2 * int((1 + np.diff(followed_from))[steps[1]].sum())
            out = out_type(np.empty(room), *(np.empty(room, kind) for kind in (np.int32, np.int32, np.int8)))
            n = compiled(steps, here, friends, (followed_from, followers), out)
            yield {name: values[:n] for name, values in zip(out._fields, out, strict=True)}


def _compiled_once(function: ChangesKernel, out: type) -> tuple[ChangesKernel, type]:
    """A kernel, compiled once in a process; each task has a function and a type of its own, which are the same but for that."""
    if hasattr(function, "py_func"):
        return function, out
    import numba  # which executors have, as they perform runs

    known: dict[str, tuple[ChangesKernel, type]] = numba.__dict__.setdefault("_compiled_once", {})
    if function.__name__ not in known:
        compiled: Any = numba.njit(function)
        known[function.__name__] = compiled, out
    return known[function.__name__]
