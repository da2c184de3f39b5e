"""Rows in files by time whose names are numbers: each file has an owner that numbers names as it meets them, the workload its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.naming import Raw
from sim.files.columns import values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow, strings
from sim.workloads.traces.exchange import PART_ROWS, SharedArrays, SortedRows, some_values, write_sorted

NAMES = pa.schema({"of": pa.int8(), "number": pa.int32(), "name": pa.string(), "kind": pa.string(), "used": pa.int8()})
"""What the numbers of an owner stand for: users (`of` is -1) or topics of one of the kinds that tables name.

`kind` is the first that rows name, "" where they name none. `used` is 1 where something is published, 2 where somebody follows, 0 where
neither is left.
"""
USERS = -1


class TimedRuns:
    """Writes rows of an owner to files `KIND-OWNER-RUN`, each sorted by time (`micros`)."""

    def __init__(self, folder: Directory, kind: str, owner: str) -> None:
        self._folder, self._kind, self._owner = folder, kind, owner
        self._waiting, self._rows = list[Columns](), 0
        self._runs, self._some, self._count = list[SortedRows](), [np.zeros(0, np.int64)], 0
        self._ends = list[int]()

    def add(self, columns: Columns, row: NDArray[np.int64]) -> None:
        """Add rows with these columns, `micros` among them, and these numbers of rows."""
        if not len(row):
            return
        self._waiting.append(columns)
        self._ends += [int(columns["micros"].min()), int(columns["micros"].max())]
        self._rows += len(row)
        self._count += len(row)
        self._some.append(some_values(columns["micros"], row))
        if self._rows >= PART_ROWS:
            self._write()

    def _write(self) -> None:
        columns = {name: np.concatenate([some[name] for some in self._waiting]) for name in self._waiting[0]}
        order = np.argsort(columns["micros"], kind="stable")
        rows = {"micros": columns["micros"][order], **{name: values[order] for name, values in columns.items()}}
        name = f"{self._kind}-{self._owner}-{len(self._runs)}"
        self._runs.append(write_sorted(self._folder, name, rows, self._owner))
        self._waiting, self._rows = [], 0

    def close(self) -> Raw:
        """The files, how many rows they have, some of the times, and the first and the last."""
        if self._rows:
            self._write()
        return {
            "runs": [vars(run) for run in self._runs],
            "count": self._count,
            "some": np.concatenate(self._some),
            "times": (min(self._ends), max(self._ends)) if self._ends else None,
        }


def write_names(folder: Directory, owner: str, found: Sequence[tuple[int, int, str, str, int]]) -> None:
    """Write what the numbers of an owner stand for, by the columns of `NAMES`."""
    of, number, names, kinds, used = zip(*found, strict=True) if found else ((),) * 5
    columns = [arrow(np.array(of, np.int8)), arrow(np.array(number, np.int32)), strings(names), strings(kinds)]
    rows = pa.record_batch([*columns, arrow(np.array(used, np.int8))], NAMES)
    with folder.output(f"names-{owner}") as file, pa.ipc.new_file(file, NAMES) as writer:
        writer.write_batch(rows)


def read_names(folder: Directory, owner: str) -> pa.Table:
    """What the numbers of an owner stand for."""
    with folder.input(f"names-{owner}") as file, pa.ipc.open_file(file) as stored:
        return pa.table(stored.get_batch(0))


def keep_numbers(shared: SharedArrays, owners: Sequence[str], names: Sequence[pa.StringArray]) -> None:
    """Write to `users-OWNER` and `topics-OWNER` the numbers that the workload has for those of owners, -1 at the end, for nobody.

    `names` are those of the users, then those of the topics of each kind, in order.
    """
    firsts = [0, 0, *np.cumsum([len(some) for some in names[1:]]).tolist()]
    for owner in owners:
        own = read_names(shared.folder, owner)
        of, number = (values_of(own[name].combine_chunks()) for name in ("of", "number"))
        for what, which in (("users", of == USERS), ("topics", of != USERS)):
            place = np.full(1 + (int(number[which].max()) + 1 if which.any() else 0), -1, np.int32)
            for kind in np.unique(of[which]).tolist():
                here = np.flatnonzero(of == kind)
                texts = own["name"].combine_chunks().take(arrow(here))
                at = pc.index_in(texts, value_set=names[kind + 1]).fill_null(-1)
                found = values_of(at).astype(np.int32)
                place[number[here]] = np.where(found < 0, found, found + firsts[kind + 1])
            shared.keep(f"{what}-{owner}", place)


def renumbered(
    shared: SharedArrays, file: SortedRows, limits: tuple[int, int], ids: Mapping[str, str]
) -> Columns | None:
    """The rows of a file between limits, with the numbers of the workload; `ids` are their columns that are users or topics."""
    rows = shared.between(file, *limits)
    if rows is None:
        return None
    known: dict[str, Integers] = {what: shared.read(f"{what}-{file.owner}") for what in set(ids.values())}
    return {name: known[ids[name]][values] if name in ids else values for name, values in rows.items()}
