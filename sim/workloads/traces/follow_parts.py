"""Follows and publications too many for one process: tasks divide them by user and by time, join them, and write tables in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.naming import name_key
from sim.base.ordering import lex_order
from sim.base.randomness import Streams
from sim.files.columns import int64_values, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow, write_tables
from sim.workloads.format.parts import part_name
from sim.workloads.models.follow_log import EVER, UNENDING, Follows, join_follows
from sim.workloads.traces.by_user import write_dropped
from sim.workloads.traces.exchange import SharedArrays, SortedRows, SplitWriter, block_limits, split_rows, write_sorted
from sim.workloads.traces.follow_tables import FollowTable
from sim.workloads.traces.numbered import USERS, TimedRuns, renumbered, write_names
from sim.workloads.traces.quarantine import row_number
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.typed import Names
from sim.workloads.traces.user_filters import sampled

_SPLIT = pa.schema(
    {
        **dict.fromkeys(("user", "topic", "kind"), pa.string()),
        **dict.fromkeys(("row", "since", "until"), pa.int64()),
        "of": pa.int8(),
    }
)


class _TopicNames:
    """Numbers for topics: those of a kind in order of appearance, times the number of `kinds`, plus that of the kind."""

    def __init__(self, kinds: int) -> None:
        self.of = [Names() for _ in range(kinds)]

    def number(self, column: pa.Array, of: int) -> NDArray[np.int32]:
        return self.of[of].number(column) * np.int32(len(self.of)) + np.int32(of)

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        """The kind, the number and the name of each topic."""
        for of, names in enumerate(self.of):
            yield from ((of, number * len(self.of) + of, name) for number, name in enumerate(names.unsorted))


@dataclass(frozen=True)
class FollowSplitter:
    """Divides the usable rows of pieces, given with the number of their shelf and the shifts of their lines.

    Follows go to `split-PIECE` of the folder, by the names of users in `parts`; publications to `published-PIECE-RUN`, by time. The
    names of their users and topics, which are of `kinds`, go to `names-PIECE`.
    """

    shelves: Sequence[Shelf]
    tables: Sequence[FollowTable]
    kinds: Sequence[str]
    parts: int
    folder: Directory

    def __call__(self, item: tuple[int, Piece, int]) -> tuple[int, TaskResult]:
        """The files; of publications the number, the days, some of the times, and the first and the last (µs since 1970)."""
        number, piece, shift = item
        table, users, topics = self.tables[number], Names(), _TopicNames(len(self.kinds))
        published, days = TimedRuns(self.folder, "published", piece.name), list[NDArray[np.int64]]()
        split, seen = f"split-{piece.name}", {"user": set[int](), "topic": set[int]()}
        with SplitWriter(self.folder, split, _SPLIT, self.parts) as writer:
            for batch in self.shelves[number].batches(piece, "usable"):
                named = {of: batch[f"topic_{n}"] for n, of in enumerate(table.topics)}
                row = row_number(piece.source, int64_values(batch["row"]) + shift)
                for of in table.follows:
                    writer.add(_columns_of(batch, row, table, named[of], self.kinds.index(of.kind)))
                if not table.events:
                    continue
                micros, user = int64_values(batch["micros"]), users.number(batch["user"])
                days.append(micros)
                for of in table.events:
                    topic = topics.number(named[of], self.kinds.index(of.kind))
                    published.add({"micros": micros, "topic": topic, "user": user}, row)
                    for name, numbers in (("topic", topic), ("user", user)):
                        seen[name].update(np.unique(numbers).tolist())  # a batch may name others, of whom it has no row
        names = [(USERS, number, name, "", int(number in seen["user"])) for number, name in enumerate(users.unsorted)]
        names += [(*one, "", int(one[1] in seen["topic"])) for one in topics]
        write_names(self.folder, piece.name, names)
        return piece.faults[None, None], {
            "split": split,
            **published.close(),
            "days": rows_per_day([*days] * len(table.events)),
        }


def _columns_of(
    batch: pa.RecordBatch, row: NDArray[np.int64], table: FollowTable, topic: pa.Array, of: int
) -> Mapping[str, pa.Array]:
    """The columns of `_SPLIT` for rows with these numbers, which follow topics of a kind."""

    def bound(name: str, otherwise: int) -> Integers:
        return int64_values(batch[name]) if name in table.bounds else np.full(len(row), otherwise)

    return {
        "user": batch["user"],
        "topic": topic,
        "kind": pa.nulls(len(row), pa.string()) if table.events else batch["kind"],
        "row": np.full(len(row), -1) if table.events else row,
        "since": int64_values(batch["micros"]) if table.events else bound("since", EVER),
        "until": bound("until", UNENDING),
        "of": np.full(len(row), of, np.int8),
    }


@dataclass(frozen=True)
class FollowPart:
    """Joins the follows of a part of the users, see `join_follows`: `span` is that of the publications.

    `splits` are the files of `FollowSplitter`. In the folder are left `dropped-PART`, as of check-ins, `names-PART`, `interests-PART`
    (user, topic), sorted by user, and `changes-PART` (micros, user, topic, action), sorted by time.
    """

    splits: Sequence[str]
    parts: int
    kinds: Sequence[str]
    folder: Directory
    span: tuple[int, int]
    sample: float
    streams: Streams

    def __call__(self, part: int) -> tuple[int, TaskResult]:
        """The files, how many rows they have, and how many rows were dropped, by reason."""
        follows, users, topics, kinds = self._load(part)
        chosen = None if self.sample == 1 else sampled(users.names, self.sample, self.streams)
        wanted, changes, dropped = join_follows([follows], len(users.names), self.span, chosen)
        write_dropped(self.folder, f"dropped-{part}", dropped)
        pair = np.concatenate([np.zeros(0, np.int64), *wanted])
        micros = np.concatenate([np.zeros(0, np.int64), *(times for times, _, _ in changes)])
        changed = np.concatenate([np.zeros(0, np.int64), *(pairs for _, pairs, _ in changes)])
        action = np.concatenate([np.zeros(0, np.int8), *(np.full(len(some), n, np.int8) for some, _, n in changes)])
        order = np.argsort(micros, kind="stable")
        following, user = np.unique(np.concatenate([pair >> 32, changed >> 32]), return_inverse=True)
        topic = (np.concatenate([pair, changed]) & 0xFFFFFFFF).astype(np.int32)
        user = user.astype(np.int32)
        count = len(pair)
        interests = {"user": user[:count], "topic": topic[:count]}
        columns = {"micros": micros, "user": user[count:], "topic": topic[count:], "action": action}
        followed = set(np.unique(topic).tolist())
        names = [(USERS, number, users.names[old], "", 2) for number, old in enumerate(following.tolist())]
        names += [(*one, kinds.get(one[1], ""), 2 * (one[1] in followed)) for one in topics]
        write_names(self.folder, str(part), names)
        files = {
            "interests": write_sorted(self.folder, f"interests-{part}", interests, str(part)),
            "subscription_events": write_sorted(
                self.folder, f"changes-{part}", {name: values[order] for name, values in columns.items()}, str(part)
            ),
        }
        return len(follows.user), {
            "files": {name: vars(rows) for name, rows in files.items()},
            "rows": {"interests": count, "subscription_events": len(micros)},
            "dropped": {reason: len(numbers) for reason, numbers in dropped.items()},
        }

    def _load(self, part: int) -> tuple[Follows, Names, _TopicNames, dict[int, str]]:
        """The follows of a part, the names of users and topics, and the first kind that rows name of topics."""
        users, topics, kinds = Names(), _TopicNames(len(self.kinds)), dict[int, str]()
        found: dict[str, list[NDArray[np.generic]]] = {name: [] for name in ("user", "topic", "row", "since", "until")}
        for batch in split_rows(self.folder, self.splits, part, self.parts):
            of = values_of(batch["of"]).astype(np.int32)
            topic = np.empty(len(batch), np.int32)
            for number in np.unique(of).tolist():
                here = np.flatnonzero(of == number)
                topic[here] = topics.number(batch["topic"].take(arrow(here)), number)
            found["topic"].append(topic)
            found["user"].append(users.number(batch["user"]))
            for name in ("row", "since", "until"):
                found[name].append(int64_values(batch[name]))
            if batch["kind"].null_count < len(batch):
                pairs = (
                    pa.table({"topic": arrow(topic), "kind": batch["kind"]}).group_by(["topic", "kind"]).aggregate([])
                )
                for which, kind in zip(*(pairs[name].to_pylist() for name in ("topic", "kind")), strict=True):
                    if kind is not None:
                        kinds[which] = min(kinds.get(which, kind), kind, key=name_key)
        columns = {
            name: np.concatenate([np.zeros(0, np.int32 if name in ("user", "topic") else np.int64), *some])
            for name, some in found.items()
        }
        columns["user"] = users.sort()[columns["user"]]
        return Follows(**columns), users, topics, kinds


@dataclass(frozen=True)
class FollowTables:
    """Writes the files of the workload's tables to a folder `tables`: of `interests` a block of users each, of others one of time.

    `files` are those of each table, `blocks` their first values. `users-OWNER` and `topics-OWNER` in the folder of `shared` are
    the numbers that the users and topics of an owner have in the workload, with -1 at the end, for nobody. Times count from `origin`
    (µs since 1970); publications have `size` bytes.
    """

    shared: SharedArrays
    tables: Directory
    files: Mapping[str, Sequence[SortedRows]]
    blocks: Mapping[str, NDArray[np.int64]]
    origin: int
    size: int

    def __call__(self, item: tuple[str, int]) -> tuple[int, TaskResult]:
        """The SHA-256 of the file of a block, how many rows it has, and how often something is published on which topics."""
        table, block = item
        rows = self._rows(table, block)
        if table != "interests":
            rows = {"time": (rows.pop("micros") - self.origin) / 1e6, **rows}
        if table == "publications":
            size = np.full(len(rows["time"]), self.size, np.int32)
            rows = {"time": rows["time"], "topic": rows["topic"], "publisher": rows["user"], "size": size}
        name, count = part_name(table, block), len(rows["topic"])
        with self.tables.output(name) as file:
            write_tables(file, [pa.table({key: arrow(values) for key, values in rows.items()})])
        topics = np.unique(rows["topic"] if table == "publications" else rows["topic"][:0], return_counts=True)
        return count, {"table": table, "rows": count, "sums": {name: self.tables.sha256(name)}, "published": topics}

    def _rows(self, table: str, block: int) -> Columns:
        """The rows of a block in order, with the numbers of the workload."""
        limits = block_limits(self.blocks[table], block)
        found = list[Columns]()
        for file in self.files[table]:
            here = limits
            if table == "interests":
                here = tuple(np.searchsorted(self.shared.read(f"users-{file.owner}")[:-1], limits).tolist())
            if (rows := renumbered(self.shared, file, here, {"user": "users", "topic": "topics"})) is not None:
                found.append(rows)
        types = {"micros": np.int64, "user": np.int32, "topic": np.int32, "action": np.int8}
        names = {"interests": ("user", "topic"), "publications": ("micros", "topic", "user")}.get(table, tuple(types))
        columns = {name: np.concatenate([np.zeros(0, types[name]), *(rows[name] for rows in found)]) for name in names}
        order = lex_order(*(columns[name] for name in names if name != "action"))
        return {name: values[order] for name, values in columns.items()}
