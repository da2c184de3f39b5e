"""Logs too long for one process: tasks divide publications and deliveries by time, this process follows sessions and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.naming import Raw, name_key
from sim.base.ordering import lex_order
from sim.files.columns import int64_values, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow, strings, write_tables
from sim.workloads.format.folder import read_event_table
from sim.workloads.format.parts import files_of, part_name, read_later
from sim.workloads.format.workload import DAY, Deliveries, Publications, Workload
from sim.workloads.models.event_log import event_workload
from sim.workloads.models.log_tables import Control, Delivered, EventLog, EventPublications
from sim.workloads.models.shared_subscriptions import shared_filter
from sim.workloads.traces.by_user import DroppedRows, write_dropped
from sim.workloads.traces.events import ACTIONS, DELIVER, PUBLISH, count_flags, flags_seen
from sim.workloads.traces.exchange import (
    BLOCK_ROWS,
    SharedArrays,
    SortedRows,
    block_limits,
    cut_blocks,
    write_sorted,
)
from sim.workloads.traces.numbered import USERS, TimedRuns, keep_numbers, read_names, renumbered, write_names
from sim.workloads.traces.quarantine import row_number
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import days_of_all, rows_per_day
from sim.workloads.traces.typed import Names
from sim.workloads.traces.workshop import Workshop

_IDS = {"topic": "topics", "client": "users", "publisher": "users"}
_ACTIONS = {"publications": PUBLISH, "deliveries": DELIVER}
_COLUMNS = {
    "publications": ("micros", "row", "topic", "client", "size", "qos"),
    "deliveries": ("micros", "row", "topic", "publisher", "client"),
    "control": ("micros", "row", "action", "client", "topic", "clean", "expiry", "qos"),
}
_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("micros", "row", "expiry"), np.int64),
    **dict.fromkeys((*_IDS, "size"), np.int32),
    **dict.fromkeys(("action", "clean", "qos"), np.int8),
}


@dataclass(frozen=True)
class EventSplitter:
    """Divides the usable rows of pieces of a log, given with the shifts of their lines, by action and time.

    Publications and deliveries go to files of `TimedRuns` in the folder, other rows to `control-PIECE`, names to `names-PIECE`.
    """

    shelf: Shelf
    flags: Sequence[str]
    folder: Directory

    def __call__(self, item: tuple[Piece, int]) -> tuple[int, TaskResult]:
        """The files of each table, how many rows there are on each day, and how often flags have which value."""
        piece, shift = item
        clients, topics = Names(), Names()
        runs = {table: TimedRuns(self.folder, table, piece.name) for table in _ACTIONS}
        used: dict[str, set[int]] = {"users": set(), "topics": set()}
        control, times, counts = list[Columns](), list[NDArray[np.int64]](), list[NDArray[np.int64]]()
        for batch in self.shelf.batches(piece, "usable"):
            columns: Columns = {name: values_of(batch[name]) for name in ("micros", "action", "size", *self.flags)}
            columns |= {"client": clients.number(batch["client"]), "publisher": clients.number(batch["publisher"])}
            columns |= {"topic": topics.number(batch["topic"])}
            columns["row"] = row_number(piece.source, int64_values(batch["row"]) + shift)
            for flag in ("clean", "expiry", "qos"):
                columns.setdefault(flag, np.full(len(batch), -1, _TYPES[flag]))
            times.append(columns["micros"])
            counts.append(count_flags(columns["action"], columns, self.flags))
            for table, action in _ACTIONS.items():
                here = columns["action"] == action
                some = {name: columns[name][here] for name in _COLUMNS[table]}
                runs[table].add(some, some["row"])
                for name in set(some) & set(_IDS):
                    used[_IDS[name]].update(np.unique(some[name]).tolist())
            others = ~np.isin(columns["action"], (PUBLISH, DELIVER))
            control.append({name: columns[name][others] for name in _COLUMNS["control"]})
        named = [
            (USERS, number, name, "", int(number in used["users"])) for number, name in enumerate(clients.unsorted)
        ]
        named += [(0, number, name, "", int(number in used["topics"])) for number, name in enumerate(topics.unsorted)]
        write_names(self.folder, piece.name, named)
        rows = _joined(control, "control")
        order = lex_order(rows["micros"], rows["row"])
        sorted_rows = {name: values[order] for name, values in rows.items()}
        return piece.faults[None, None], {
            **{table: run.close() for table, run in runs.items()},
            "control": vars(write_sorted(self.folder, f"control-{piece.name}", sorted_rows, piece.name)),
            "days": rows_per_day(times),
            "flags": sum(counts, np.zeros((len(ACTIONS), len(self.flags), 3), np.int64)),
        }


def _joined(found: Sequence[Columns], table: str) -> Columns:
    """The columns of a table in several parts."""
    return {
        name: np.concatenate([np.zeros(0, _TYPES[name]), *(rows[name] for rows in found)]) for name in _COLUMNS[table]
    }


@dataclass(frozen=True)
class EventTables:
    """Writes the files of publications and deliveries to a folder `tables`, a block of time each.

    `files` are those of each table, `blocks` the first times of theirs, which count from `origin` (µs since 1970) to the `horizon` (s);
    `keep_numbers` has left in the folder of `shared` what the workload's numbers are. Where publications are `graded`, they have their
    quality of service.
    """

    shared: SharedArrays
    tables: Directory
    files: Mapping[str, Sequence[SortedRows]]
    blocks: Mapping[str, NDArray[np.int64]]
    origin: int
    horizon: float
    graded: bool

    def __call__(self, item: tuple[str, int]) -> tuple[int, TaskResult]:
        """The SHA-256 of the file of a block, and how often something is published on which topics."""
        table, block = item
        limits = block_limits(self.blocks[table], block)
        found = (renumbered(self.shared, file, limits, _IDS) for file in self.files[table])
        rows = _joined([some for some in found if some is not None], table)
        order = lex_order(rows["micros"], rows["row"])
        rows = {name: values[order] for name, values in rows.items()}
        written = {"time": np.minimum((rows["micros"] - self.origin) / 1e6, self.horizon), "topic": rows["topic"]}
        if table == "publications":
            written |= {"publisher": rows["client"], "size": rows["size"]}
            written |= {"qos": rows["qos"]} if self.graded else {}
        else:
            written |= {"publisher": rows["publisher"], "subscriber": rows["client"]}
        name = part_name(table, block)
        with self.tables.output(name) as file:
            write_tables(file, [pa.table({column: arrow(values) for column, values in written.items()})])
        topics = np.unique(rows["topic"] if table == "publications" else rows["topic"][:0], return_counts=True)
        return len(order), {"sums": {name: self.tables.sha256(name)}, "published": topics}


def prepare_many_events(
    shop: Workshop, shelf: Shelf, flags: Sequence[str], generator: Raw, persistent: bool
) -> Workload | None:
    """The event workload of the rows on a shelf, written; its publications and deliveries are read when they are asked for.

    `flags` are those of the layout, `generator` describes the workload in its manifest. None where messages are retained or
    subscriptions shared: what becomes of them depends on the order of all rows. Raises WorkloadError where no row is left.
    """
    shared, pieces = SharedArrays(shop.work), list(zip(shelf.pieces, shelf.shifts(), strict=True))
    splits = shop.each(EventSplitter(shelf, flags, shop.work), pieces, "dividing rows by action and time")
    counts = {flag: sum(split["flags"] for split in splits)[:, number] for number, flag in enumerate(flags)}
    owners = [piece.name for piece, _ in pieces]
    log, row = _control(shared, splits, owners)
    sharing = any(shared_filter(log.topics[topic]) for topic in np.unique(log.control.topic).tolist() if topic >= 0)
    if sharing or ("retain" in counts and counts["retain"][[PUBLISH, DELIVER], 1].any()):
        return None
    shop.warn_of_strays(days_of_all([split["days"] for split in splits]), "events")
    shop.progress("following sessions", "")
    seen = flags_seen(sum(split["flags"] for split in splits), flags)
    generator = {**generator, **({"seen": seen} if seen else {})}
    found, unused = event_workload(log, persistent=persistent, filters=generator["filters"], generator=generator)
    if found is None:
        raise shop.nothing_usable("none of {} is usable")
    dropped = {"no_effect": row[unused.no_effect]}
    write_dropped(shop.work, "dropped-0", dropped)
    shop.count({reason: len(rows) for reason, rows in dropped.items()})
    keep_numbers(shared, owners, [found.users.names, found.topics.names])
    rows = {table: sum(split[table]["count"] for split in splits) for table in _ACTIONS}
    tables = [table for table in _ACTIONS if rows[table] or table == "publications"]
    files = {table: [SortedRows(**run) for split in splits for run in split[table]["runs"]] for table in tables}
    blocks = {
        table: cut_blocks([split[table]["some"] for split in splits], rows[table], BLOCK_ROWS) for table in tables
    }
    for table in (*tables, "quarantine"):
        shop.tables.below(table)
    origin = int(np.datetime64(found.origin.removesuffix("Z"), "us").astype(np.int64))
    graded = "qos" in counts and bool(counts["qos"][PUBLISH].any())
    writer = EventTables(shared, shop.tables, files, blocks, origin, found.horizon, graded)
    items = [(table, block) for table in tables for block in range(len(blocks[table]) + 1)]
    written = shop.each(writer, items, "writing publications and deliveries")
    published = np.zeros(len(found.topics), np.int64)
    for one in written:
        published[one["published"][0]] += one["published"][1]
    sums = [*(one["sums"] for one in written), *shop.quarantine(DroppedRows(shop.work, 1))]
    digests = {name: digest for some in sums for name, digest in some.items()}
    kinds = {"publications": Publications, "deliveries": Deliveries}
    later: Raw = {
        table: read_later(
            kinds[table], rows[table], partial(read_event_table, shop.out, files_of(table, digests), table)
        )
        for table in tables
    }
    topics = replace(found.topics, event_rate=published / (found.horizon / DAY))
    return shop.finish(replace(found, topics=topics, **later), digests)


def _control(
    shared: SharedArrays, splits: Sequence[TaskResult], owners: Sequence[str]
) -> tuple[EventLog, NDArray[np.int64]]:
    """The rows of a log that control sessions and subscriptions, with their numbers, and a few publications for all that there are.

    These have all of their users and topics, and the first and the last time, of deliveries too.
    """
    known: tuple[dict[str, bool], dict[str, bool]] = {}, {}
    for owner in owners:
        own = read_names(shared.folder, owner)
        for of, name, used in zip(*(own[column].to_pylist() for column in ("of", "name", "used")), strict=True):
            known[of != USERS][name] = known[of != USERS].get(name, False) or used > 0
    clients, topics = (sorted(names, key=name_key) for names in known)
    keep_numbers(shared, owners, [strings(clients), strings(topics)])
    files = [SortedRows(**split["control"]) for split in splits]
    found = (renumbered(shared, file, block_limits(np.zeros(0, np.int64), 0), _IDS) for file in files)
    rows = _joined([some for some in found if some is not None], "control")
    order = lex_order(rows["micros"], rows["row"])
    rows = {name: values[order] for name, values in rows.items()}
    who, what = (
        np.flatnonzero([used[name] for name in names]).astype(np.int32)
        for names, used in zip((clients, topics), known, strict=True)
    )
    times = [time for split in splits for table in _ACTIONS for time in split[table]["times"] or ()]
    count = max(len(who), len(what), 2) if times else 0
    micros = np.full(count, min(times, default=0))
    micros[count - 1 :] = max(times, default=0)
    topic, client = np.resize(what, count) if count else what, np.full(count, -1, np.int32)
    client[: len(who)] = who
    size, flag = np.zeros(count, np.int32), np.full(count, -1, np.int8)
    published = EventPublications(micros, topic, client, size, flag, flag)
    number = rows.pop("row")
    return EventLog(clients, topics, Control(**rows), published, Delivered.none()), number
