"""Logs too long for one process: tasks divide them by time and by client; this process knows users, topics and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.naming import Raw, name_key
from sim.base.ordering import lex_order
from sim.files.directories import Directory
from sim.files.parquet import arrow, strings, write_tables
from sim.workloads.format.folder import read_event_table
from sim.workloads.format.parts import files_of, part_name, read_later
from sim.workloads.format.workload import DAY, EVENT_TABLES, Interests, Topics, Users, Workload
from sim.workloads.models.log_tables import SECOND
from sim.workloads.models.shared_subscriptions import group_name
from sim.workloads.traces.by_user import DroppedRows
from sim.workloads.traces.events import PUBLISH, flags_seen
from sim.workloads.traces.exchange import (
    BATCH_ROWS,
    BLOCK_ROWS,
    PART_ROWS,
    SharedArrays,
    SortedRows,
    block_limits,
    cut_blocks,
)
from sim.workloads.traces.log_control import (
    CONTROL_TABLES,
    OF_FILTERS,
    OF_GROUPS,
    OF_TOPICS,
    ControlPart,
    ControlRows,
    EffectsPart,
)
from sim.workloads.traces.log_split import ON_DELIVERED, ON_RETAINED, EventSplitter, Recaller, SecondCounter
from sim.workloads.traces.numbered import USERS, keep_numbers, read_names, renumbered, write_names
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import days_of_all
from sim.workloads.traces.workshop import Workshop

_IDS = {"topic": "topics", "publisher": "users", "subscriber": "users"}
_TIMED = ("publications", "deliveries")
_KEYS = {**dict.fromkeys(_TIMED, ("micros", "place")), "shares": ("topic", "user")}
"""What rows are sorted by, where it is not what caused them."""


@dataclass(frozen=True)
class EventTables:
    """Writes the files of the workload's tables to a folder `tables`, a block of time, or of topics, each.

    `files` are those of each table, `blocks` their first values, `columns` what the table has. Times count from `origin` (µs
    since 1970) to the `horizon` (s), those of what `ControlPart` has made from 0. `keep_numbers` has left in the folder of `shared`
    what the workload's numbers are, and `apart-TASK` are those of members apart.
    """

    shared: SharedArrays
    tables: Directory
    files: Mapping[str, Sequence[SortedRows]]
    blocks: Mapping[str, NDArray[np.int64]]
    columns: Mapping[str, Mapping[str, np.dtype[np.generic]]]
    origin: int
    horizon: float

    def __call__(self, item: tuple[str, int]) -> tuple[int, TaskResult]:
        """The SHA-256 of the file of a block, and how often something is published on which topics."""
        table, block = item
        kinds = self.columns[table]
        found = [rows for rows in self._rows(table, block) if rows is not None]
        keys = _KEYS.get(table, ("micros", "caused", "place"))
        types = {**dict.fromkeys(keys, np.dtype(np.int64)), **kinds}
        begins = next((name for name in ("time", "start") if name in kinds), "")
        types.pop(begins, None)
        rows = {
            name: np.concatenate([np.zeros(0, kind), *(one[name] for one in found)]) for name, kind in types.items()
        }
        order = lex_order(*(rows[name] for name in keys))
        rows = {name: values[order] for name, values in rows.items()}
        if begins:
            origin = self.origin if table in _TIMED else 0
            rows[begins] = np.minimum((rows["micros"] - origin) / SECOND, self.horizon)
        if "retain" in kinds:
            rows["retain"] = np.maximum(rows["retain"], 0)
        name = self.file(table, block)
        with self.tables.output(name) as file:
            written = {column: arrow(rows[column].astype(kind, copy=False)) for column, kind in kinds.items()}
            write_tables(file, [pa.table(written)])
        topics = np.unique(rows["topic"] if table == "publications" else np.zeros(0, np.int32), return_counts=True)
        return len(order), {"sums": {name: self.tables.sha256(name)}, "published": topics}

    def file(self, table: str, block: int) -> str:
        """The name of the file of a block; tables of control are in one file where they are short, like those of one process."""
        return part_name(table, block) if table in _TIMED or len(self.blocks[table]) else f"{table}.parquet"

    def _rows(self, table: str, block: int) -> Iterator[Columns | None]:
        limits = block_limits(self.blocks[table], block)
        for file in self.files[table]:
            if table in _TIMED:
                yield renumbered(self.shared, file, limits, _IDS)
            elif (rows := self.shared.between(file, *limits)) is not None:
                apart = self.shared.read(f"apart-{file.owner}")
                user = rows["user"]
                yield rows | {"user": np.where(user < -1, apart[-2 - user], user) if len(apart) else user}


def prepare_many_events(
    shop: Workshop, shelf: Shelf, flags: Sequence[str], generator: Raw, spread: bool, queues_qos_0: bool
) -> Workload | None:
    """The event workload of the rows on a shelf, written; its tables are read when they are asked for.

    `flags` are those of the layout, `generator` describes the workload in its manifest. Rows of a log in whole seconds are `spread`
    over them. Raises WorkloadError where no row is left.
    """
    log = _LongLog(shop, shelf, flags, spread)
    filters, live = generator["filters"], generator.get("live_filters", False)
    persistent = generator["sessions"] == "persistent"
    files = [split["split"] for split in log.splits]
    control = ControlRows(files, log.parts, shop.work, filters, persistent, live, queues_qos_0)
    log.keep_topics()
    clients = [(n, range(n * log.parts // log.tasks, (n + 1) * log.parts // log.tasks)) for n in range(log.tasks)]
    effects = shop.each(EffectsPart(control), clients, "following sessions")
    log.keep_all(filters == "nats")
    times = [time for one in (*log.timed, *effects) for time in one["times"] or ()]
    span = (min(times, default=0), max(times, default=0))
    found = shop.each(ControlPart(control, span, BATCH_ROWS), clients, "following subscriptions") if times else []
    if any(one["apart"] for one in found):
        return None
    shop.warn_of_strays(days_of_all([split["days"] for split in log.splits]), "events")
    shop.count(
        {
            "retained": sum(one["dropped"] for one in log.recalled.values()),
            "no_effect": sum(one["dropped"] for one in effects),
        }
    )
    if not times:
        raise shop.nothing_usable("none of {} is usable")
    return log.finish(found, span, live, generator)


class _LongLog:
    """A log whose rows tasks have divided, and what is known of all its parts: names, counts and files."""

    def __init__(self, shop: Workshop, shelf: Shelf, flags: Sequence[str], spread: bool) -> None:
        self.shop, self.flags, self.shared = shop, flags, SharedArrays(shop.work)
        self.owners = [piece.name for piece in shelf.pieces]
        self.parts = max(1, -(-shelf.rows // PART_ROWS))
        seconds: dict[str, tuple[int, int] | None] = {}
        if spread:
            counted = shop.each(SecondCounter(shelf, shop.work), shelf.pieces, "counting rows by second")
            if all(one["whole"] for one in counted):
                seconds = {owner: one["ends"] for owner, one in zip(self.owners, counted, strict=True)}
        rows = [piece.faults[None, None] for piece in shelf.pieces]
        places = (np.cumsum(rows) - rows).tolist()
        splitter = EventSplitter(shelf, flags, self.parts, shop.work, seconds)
        pieces = list(zip(shelf.pieces, shelf.shifts(), places, strict=True))
        self.splits = shop.each(splitter, pieces, "dividing rows by client and time")
        self.tasks = max(1, -(-sum(split["control"] for split in self.splits) // PART_ROWS))
        self.recalled = self._recall()

    def _recall(self) -> dict[str, TaskResult]:
        """What there is of deliveries of retained messages, by piece."""
        since = dict[str, int]()
        for owner, split in zip(self.owners, self.splits, strict=True):
            topics = self._names(owner)[1] if len(split["retained"][0]) else ()
            for topic, micros in zip(*(column.tolist() for column in split["retained"]), strict=True):
                since[topics[topic]] = min(since.get(topics[topic], micros), micros)
        self.retained = set(since)
        write_names(self.shop.work, "retained", [(0, number, name, "", 1) for number, name in enumerate(since)])
        self.shared.keep("since", np.array([*since.values()], np.int64))
        recalls = [
            (owner, [SortedRows(**run) for run in split["recalled"]["runs"]])
            for owner, split in zip(self.owners, self.splits, strict=True)
            if split["recalled"]["runs"]
        ]
        items = [(self.tasks + number, *recall) for number, recall in enumerate(recalls)]
        found = self.shop.each(Recaller(self.shop.work), items, "dating retained messages") if items else []
        return {owner: one for (owner, _), one in zip(recalls, found, strict=True)}

    def _names(self, owner: str) -> tuple[list[str], list[str]]:
        """The names of users and of topics by the numbers of an owner."""
        own = read_names(self.shop.work, owner)
        names: tuple[list[str], list[str]] = [], []
        for of, name in zip(own["of"].to_pylist(), own["name"].to_pylist(), strict=True):
            names[of != USERS].append(name)
        return names

    @property
    def timed(self) -> list[TaskResult]:
        """What there is of publications and deliveries, with the first and the last time of each."""
        return [*(split[table] for split in self.splits for table in _TIMED), *self.recalled.values()]

    def keep_topics(self) -> None:
        """Tell tasks all topics on which something happens."""
        self.users, self.topics = set[str](), dict.fromkeys(self.retained, ON_RETAINED)
        for owner in self.owners:
            own = read_names(self.shop.work, owner)
            for of, name, used in zip(*(own[column].to_pylist() for column in ("of", "name", "used")), strict=True):
                if used and of == USERS:
                    self.users.add(name)
                elif used:
                    self.topics[name] = self.topics.get(name, 0) | used
        for owner, one in self.recalled.items():
            users, topics = self._names(owner)
            self.users.update(users[number] for number in one["users"])
            for number in one["topics"]:
                self.topics[topics[number]] = self.topics.get(topics[number], 0) | ON_DELIVERED
        self._write_topics()

    def _write_topics(self) -> None:
        names = sorted(self.topics, key=name_key)
        write_names(
            self.shop.work, "topics", [(OF_TOPICS, n, name, "", self.topics[name]) for n, name in enumerate(names)]
        )

    def keep_all(self, by_queue: bool) -> None:
        """Tell tasks all users, topics, filters and groups, with what rows of control have added."""
        found: dict[int, set[str]] = {USERS: self.users, OF_TOPICS: set(), OF_FILTERS: set(), OF_GROUPS: set()}
        for number in range(self.tasks):
            own = read_names(self.shop.work, f"effects-{number}")
            for of, name in zip(own["of"].to_pylist(), own["name"].to_pylist(), strict=True):
                found[of].add(name)
        for topic in found[OF_TOPICS]:
            self.topics.setdefault(topic, 0)
        self._write_topics()
        found[OF_TOPICS] = set(self.topics)
        self.names = {of: sorted(names, key=name_key) for of, names in found.items()}
        self.names[OF_GROUPS] = list(dict.fromkeys(group_name(name, by_queue) for name in self.names[OF_GROUPS]))
        rows = ((of, number, name, "", 1) for of, names in self.names.items() for number, name in enumerate(names))
        write_names(self.shop.work, "all", list(rows))

    def finish(self, found: Sequence[TaskResult], span: tuple[int, int], live: bool, generator: Raw) -> Workload:
        """The workload, with the tables that tasks have `found`, written."""
        shop, names = self.shop, self.names
        keep_numbers(self.shared, self.owners, [strings(names[USERS]), strings(names[OF_TOPICS])])
        for number in range(self.tasks):
            self.shared.keep(f"apart-{number}", np.zeros(0, np.int32))
        files, starts, rows = self._files(found)
        tables = [name for name in files if rows[name] or name in ("publications", "subscription_events")]
        blocks = {name: cut_blocks(starts[name], rows[name], BLOCK_ROWS) for name in tables}
        columns = {name: dict(EVENT_TABLES[name].dtypes()) for name in tables}
        counts = {flag: sum(split["flags"] for split in self.splits)[PUBLISH, n] for n, flag in enumerate(self.flags)}
        for flag, said in (("retain", slice(1, None)), ("qos", slice(None))):
            if flag not in counts or not counts[flag][said].any():
                columns["publications"].pop(flag)
        origin = span[0] // SECOND * SECOND
        horizon = (span[1] - origin) // SECOND + 1.0
        writer = EventTables(self.shared, shop.tables, files, blocks, columns, origin, horizon)
        items = [(table, block) for table in tables for block in range(len(blocks[table]) + 1)]
        for name in ("quarantine", *dict.fromkeys(table for table in tables if "/" in writer.file(table, 0))):
            shop.tables.below(name)
        written = shop.each(writer, items, "writing publications, deliveries and subscription changes")
        sums = [one["sums"] for one in written]
        sums += shop.quarantine(DroppedRows(shop.work, self.tasks + len(self.recalled)))
        digests = {name: digest for some in sums for name, digest in some.items()}
        filters = names[OF_FILTERS] if live else []
        published = np.zeros(len(names[OF_TOPICS]) + len(filters), np.int64)
        for one in written:
            published[one["published"][0]] += one["published"][1]
        kinds = ["topic"] * len(names[OF_TOPICS]) + [f"{generator['filters']}-filter"] * len(filters)
        unmatched = sum((Counter(one["unmatched"]) for one in found), Counter[str]())
        seen = flags_seen(sum(split["flags"] for split in self.splits), self.flags)
        later: Raw = {}
        for name in tables:
            read = partial(read_event_table, shop.out, files_of(name, digests), name)
            later[name] = read_later(EVENT_TABLES[name], rows[name], read)
        workload = Workload(
            kind="events",
            horizon=horizon,
            topics=Topics.without_places(
                strings([*names[OF_TOPICS], *filters]),
                strings(kinds) if filters else "topic",
                published / (horizon / DAY),
            ),
            users=Users.without_places(strings(names[USERS])),
            interests=Interests(np.zeros(len(names[USERS]) + 1, np.int64), np.empty(0, np.int32)),
            **later,
            origin=f"{np.datetime64(origin // SECOND, 's')}Z",
            generator={**generator, **({"seen": seen} if seen else {})},
            unmatched={name: unmatched[name] for name in sorted(unmatched, key=name_key)},
        )
        return shop.finish(workload, digests)

    def _files(
        self, found: Sequence[TaskResult]
    ) -> tuple[dict[str, list[SortedRows]], dict[str, list[NDArray[np.int64]]], Counter[str]]:
        """The files of each table, some of the values that they are sorted by, and how many rows there are."""
        files: dict[str, list[SortedRows]] = {name: [] for name in (*_TIMED, *CONTROL_TABLES)}
        starts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in files}
        rows = Counter[str]()
        for owner, split in zip(self.owners, self.splits, strict=True):
            for name in _TIMED:
                for one in [
                    split[name],
                    *([self.recalled[owner]] if name == "deliveries" and owner in self.recalled else []),
                ]:
                    files[name] += [SortedRows(**run) for run in one["runs"]]
                    starts[name].append(one["some"])
                    rows[name] += one["count"]
        for name in CONTROL_TABLES:
            files[name] = [SortedRows(**one["files"][name]) for one in found]
            starts[name] = [file.starts for file in files[name]]
            rows[name] = sum(one["rows"][name] for one in found)
        return files, starts, rows
