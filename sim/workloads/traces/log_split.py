"""Logs too long for one process, divided by tasks: publications and deliveries by time, what controls sessions by client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.files.columns import int64_values, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow, strings
from sim.workloads.models.log_tables import SECOND
from sim.workloads.traces.by_user import write_dropped
from sim.workloads.traces.events import ACTIONS, DELIVER, PUBLISH, count_flags
from sim.workloads.traces.exchange import SharedArrays, SortedRows, SplitWriter, write_sorted
from sim.workloads.traces.numbered import USERS, TimedRuns, read_names, write_names
from sim.workloads.traces.quarantine import row_number
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.typed import Names

ON_PUBLISHED, ON_DELIVERED, ON_RETAINED = 1, 2, 4
"""What happens on a topic of a log, as bits."""
CONTROL_ROWS = pa.schema(
    {
        **dict.fromkeys(("client", "topic"), pa.string()),
        **dict.fromkeys(("micros", "place", "row", "expiry"), pa.int64()),
        **dict.fromkeys(("action", "clean", "qos"), pa.int8()),
    }
)
TIMED_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("micros", "place", "row", "expiry"), np.int64),
    **dict.fromkeys(("topic", "publisher", "subscriber", "size"), np.int32),
    **dict.fromkeys(("action", "clean", "qos", "retain"), np.int8),
}
_TIMED = {
    "publications": ("micros", "place", "topic", "publisher", "size", "retain", "qos"),
    "deliveries": ("micros", "place", "topic", "publisher", "subscriber"),
    "recalled": ("micros", "place", "topic", "publisher", "subscriber", "row"),
}


def joined(found: Sequence[Columns], names: Sequence[str]) -> Columns:
    """These columns of rows in several parts."""
    return {name: np.concatenate([np.zeros(0, TIMED_TYPES[name]), *(rows[name] for rows in found)]) for name in names}


def _times(shelf: Shelf, piece: Piece) -> NDArray[np.int64]:
    return np.concatenate(
        [np.zeros(0, np.int64), *(int64_values(batch["micros"]) for batch in shelf.batches(piece, "usable"))]
    )


@dataclass(frozen=True)
class SecondCounter:
    """Counts the usable rows of pieces in each second, to `seconds-PIECE` in the folder, as `EventSplitter` needs them."""

    shelf: Shelf
    folder: Directory

    def __call__(self, piece: Piece) -> tuple[int, TaskResult]:
        """Whether all times are whole seconds, and the first and the last (s)."""
        micros = _times(self.shelf, piece)
        seconds, rows = np.unique(micros // SECOND, return_counts=True)
        write_sorted(self.folder, f"seconds-{piece.name}", {"second": seconds, "rows": rows})
        ends = (int(seconds[0]), int(seconds[-1])) if len(seconds) else None
        return len(micros), {"whole": not (micros % SECOND).any(), "ends": ends}


@dataclass(frozen=True)
class EventSplitter:
    """Divides the usable rows of pieces of a log.

    A piece is given with the shift of its lines and the `place` of its first usable row among all. Publications, deliveries and, as
    `recalled`, deliveries of retained messages go to files of `TimedRuns` in the folder, other rows to `split-PIECE`, by the names of
    clients in `parts`; names of the former to `names-PIECE`. With the `seconds` in which pieces begin and end, in their order, rows are
    spread over them (`spread`).
    """

    shelf: Shelf
    flags: Sequence[str]
    parts: int
    folder: Directory
    seconds: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)

    def __call__(self, item: tuple[Piece, int, int]) -> tuple[int, TaskResult]:
        """The files, how many rows of control there are, how many rows on each day, how often flags have which value.

        And, as `retained`, the topics that retain something, with the first time.
        """
        piece, shift, place = item
        clients, topics = Names(), Names()
        runs = {table: TimedRuns(self.folder, table, piece.name) for table in _TIMED}
        used: dict[bool, dict[int, int]] = {True: {}, False: {}}  # of users, of topics
        counts, retains, control = np.zeros((len(ACTIONS), len(self.flags), 3), np.int64), list[Columns](), 0
        micros, done = self._spread(piece, _times(self.shelf, piece)), 0
        with SplitWriter(self.folder, split := f"split-{piece.name}", CONTROL_ROWS, self.parts) as writer:
            for batch in self.shelf.batches(piece, "usable"):
                columns = self._columns(batch, piece.source, shift)
                here = slice(done, done + len(batch))
                columns |= {"micros": micros[here], "place": place + np.arange(here.start, here.stop)}
                done = here.stop
                counts += count_flags(columns["action"], columns, self.flags)
                timed = np.isin(columns["action"], (PUBLISH, DELIVER))
                others = np.flatnonzero(~timed)
                control += len(others)
                texts = {name: batch[name].take(arrow(others)) for name in ("client", "topic")}
                numbers = {name: columns[name][others] for name in CONTROL_ROWS.names if name not in texts}
                writer.add({**texts, **numbers})
                columns = _named(
                    {name: values[timed] for name, values in columns.items()}, batch, timed, clients, topics
                )
                for table, some in _by_table(columns):
                    runs[table].add({name: some[name] for name in _TIMED[table]}, some["row"])
                    if table != "recalled":
                        _use(used, some, ON_PUBLISHED if table == "publications" else ON_DELIVERED)
                    if table == "publications":
                        held = (some["retain"] == 1) & (some["size"] > 0)
                        retains.append({name: some[name][held] for name in ("topic", "micros")})
        names = [(USERS, n, name, "", used[True].get(n, 0)) for n, name in enumerate(clients.unsorted)]
        names += [(0, n, name, "", used[False].get(n, 0)) for n, name in enumerate(topics.unsorted)]
        write_names(self.folder, piece.name, names)
        return piece.faults[None, None], {
            **{table: run.close() for table, run in runs.items()},
            "split": split,
            "control": control,
            "days": rows_per_day([micros]),
            "flags": counts,
            "retained": _firsts(joined(retains, ("topic", "micros"))),
        }

    def _columns(self, batch: pa.RecordBatch, source: int, shift: int) -> Columns:
        columns: Columns = {name: values_of(batch[name]) for name in ("action", "size", *self.flags)}
        for flag in ("clean", "expiry", "qos", "retain"):
            columns.setdefault(flag, np.full(len(batch), -1, TIMED_TYPES[flag]))
        columns["row"] = row_number(source, int64_values(batch["row"]) + shift)
        return columns

    def _spread(self, piece: Piece, micros: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self.seconds or not len(micros):
            return micros
        seconds, which, here = np.unique(micros // SECOND, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(here) - here, here)
        before, every, passed = np.zeros_like(here), here.copy(), False
        for name, ends in self.seconds.items():
            passed |= name == piece.name
            if name == piece.name or ends is None or ends[1] < seconds[0] or ends[0] > seconds[-1]:
                continue
            other = SharedArrays(self.folder).rows(f"seconds-{name}")
            at = np.minimum(np.searchsorted(other["second"], seconds), len(other["second"]) - 1)
            there = np.where(other["second"][at] == seconds, other["rows"][at], 0)
            every += there
            before += 0 if passed else there
        return micros + (before[which] + rank) * SECOND // every[which]


def _named(columns: Columns, batch: pa.RecordBatch, timed: NDArray[np.bool_], clients: Names, topics: Names) -> Columns:
    """The columns of publications and deliveries with the numbers of their topics, publishers and subscribers."""
    client, publisher, topic = (batch[name].filter(arrow(timed)) for name in ("client", "publisher", "topic"))
    who = clients.number(client)
    delivered = columns["action"] == DELIVER
    named = {"topic": topics.number(topic), "publisher": np.where(delivered, clients.number(publisher), who)}
    return columns | named | {"subscriber": np.where(delivered, who, -1)}


def _by_table(columns: Columns) -> Iterator[tuple[str, Columns]]:
    delivered = columns["action"] == DELIVER
    recalled = delivered & (columns["retain"] == 1)
    for table, which in (("publications", ~delivered), ("deliveries", delivered & ~recalled), ("recalled", recalled)):
        yield table, {name: values[which] for name, values in columns.items()}


def _use(used: Mapping[bool, dict[int, int]], rows: Columns, bit: int) -> None:
    """Note which users and topics rows have."""
    for name in ("publisher", "subscriber", "topic"):
        known = used[name != "topic"]
        for number in np.unique(rows[name]).tolist():
            if number >= 0:
                known[number] = known.get(number, 0) | (bit if name == "topic" else 1)


def _firsts(rows: Columns) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The topics of rows, and the first time of each."""
    order = np.argsort(rows["micros"], kind="stable")
    topics, first = np.unique(rows["topic"][order], return_index=True)
    return topics, rows["micros"][order][first]


@dataclass(frozen=True)
class Recaller:
    """Separates deliveries of messages that were retained before the log began (`retained_before`) from those of the log's own.

    `names-retained` in the folder has the topics that retain a message in the log, and the array `since` when each first does (µs). The
    numbers of the former rows go to `dropped-NUMBER`, the latter rows to files of `TimedRuns`.
    """

    folder: Directory

    def __call__(self, item: tuple[int, str, Sequence[SortedRows]]) -> tuple[int, TaskResult]:
        """The files, the users and topics of the rows in them, by their numbers in the piece, and how many rows are not in them."""
        number, owner, files = item
        shared, own, known = (
            SharedArrays(self.folder),
            read_names(self.folder, owner),
            read_names(self.folder, "retained"),
        )
        topics = own.filter(pc.field("of") != USERS)
        at = pc.index_in(topics["name"].combine_chunks(), value_set=strings(known["name"].to_pylist()))
        since = np.append(shared.read("since"), np.iinfo(np.int64).max)[values_of(at.fill_null(-1))]
        rows = joined([shared.rows(file.name) for file in files], _TIMED["recalled"])
        place = np.zeros(len(topics), np.int64)
        place[int64_values(topics["number"].combine_chunks().cast(pa.int64()))] = since
        late = rows["micros"] < place[rows["topic"]]
        write_dropped(self.folder, f"dropped-{number}", {"retained": rows["row"][late]})
        kept = {name: values[~late] for name, values in rows.items()}
        runs, used = TimedRuns(self.folder, "kept", owner), {True: dict[int, int](), False: dict[int, int]()}
        runs.add({name: kept[name] for name in _TIMED["deliveries"]}, kept["row"])
        _use(used, kept, ON_DELIVERED)
        found = {"users": list(used[True]), "topics": list(used[False]), "dropped": int(late.sum())}
        return len(late), {**runs.close(), **found}
