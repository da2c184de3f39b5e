"""Follows and publications too many for one process: tasks handle them, this process knows users, topics and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.naming import Raw, name_key
from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.workloads.format.demand import read_interests
from sim.workloads.format.folder import read_event_table
from sim.workloads.format.parts import files_of, read_later
from sim.workloads.format.workload import DAY, Interests, Publications, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.models.follow_log import days_of, unfollowed
from sim.workloads.models.log_tables import SECOND
from sim.workloads.traces.by_user import DroppedRows
from sim.workloads.traces.exchange import BLOCK_ROWS, PART_ROWS, SharedArrays, SortedRows, cut_blocks
from sim.workloads.traces.follow_parts import FollowPart, FollowSplitter, FollowTables
from sim.workloads.traces.follow_tables import FollowTable, follow_origins
from sim.workloads.traces.numbered import NAMES, USERS, keep_numbers, read_names
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.strays import days_of_all
from sim.workloads.traces.times import iso
from sim.workloads.traces.workshop import Workshop

_TABLES = ("interests", "subscription_events", "publications")


def prepare_many_follows(
    shop: Workshop,
    shelves: Sequence[Shelf],
    tables: Sequence[FollowTable],
    labels: Mapping[str, Mapping[str, str]],
    sample: float,
    streams: Streams,
    about: Raw,
) -> Workload:
    """The workload of the rows on shelves, written; its large tables are read when they are asked for.

    `labels` are as for `load_follows`; `about` has the `period`, `size` and `generator` of `follow_workload`. Raises WorkloadError
    where nothing is published or followed.
    """
    kinds = sorted({topics.kind for table in tables for topics in table.topics})
    shared, nothing = SharedArrays(shop.work), "{} have no publication, or no follow"
    followers = sum(shelf.rows for shelf, table in zip(shelves, tables, strict=True) if table.follows)
    parts = max(1, -(-followers // PART_ROWS))
    pieces = [
        (number, *pair)
        for number, shelf in enumerate(shelves)
        for pair in zip(shelf.pieces, shelf.shifts(), strict=True)
    ]
    splitter = FollowSplitter(shelves, tables, kinds, parts, shop.work)
    splits = shop.each(splitter, pieces, "dividing rows by user and time")
    times = [time for split in splits for time in split["times"] or ()]
    if not times:
        raise shop.nothing_usable(nothing)
    shop.warn_of_strays(days_of_all([split["days"] for split in splits]), "publications")
    origin, days = days_of(min(times), max(times))
    span = (origin, origin + days * int(DAY) * SECOND)
    files = [split["split"] for split in splits]
    part = FollowPart(files, parts, kinds, shop.work, span, sample, streams)
    found = shop.each(part, range(parts), f"joining follows of {shop.reasons[None]:,} rows")
    shop.count(sum((Counter(one["dropped"]) for one in found), Counter[str]()))
    rows = sum((Counter(one["rows"]) for one in found), Counter[str]())
    if not rows.total():
        raise shop.nothing_usable(nothing)
    rows["publications"] = sum(split["count"] for split in splits)
    for name in files:
        shop.work.remove(name)
    owners = [*map(str, range(parts)), *(piece.name for _, piece, _ in pieces)]
    users, topics, topic_kinds, followed = _numbered(shared, owners, kinds, labels)
    runs = [SortedRows(**run) for split in splits for run in split["runs"]]
    sorted_rows = {
        "interests": [SortedRows(**one["files"]["interests"]) for one in found],
        "subscription_events": [SortedRows(**one["files"]["subscription_events"]) for one in found],
        "publications": runs,
    }
    starts: dict[str, list[Integers]] = {name: [some.starts for some in sorted_rows[name]] for name in _TABLES}
    starts["interests"] = [shared.read(f"users-{some.owner}")[some.starts] for some in sorted_rows["interests"]]
    starts["publications"] = [split["some"] for split in splits]
    blocks = {name: cut_blocks(starts[name], rows[name], BLOCK_ROWS) for name in _TABLES}
    for name in (*_TABLES, "quarantine"):
        shop.tables.below(name)
    writer = FollowTables(shared, shop.tables, sorted_rows, blocks, origin, about["size"])
    items = [(name, block) for name in _TABLES for block in range(len(blocks[name]) + 1)]
    written = shop.each(writer, items, "writing interests, subscription changes and publications")
    sums = [one["sums"] for one in written]
    sums += shop.quarantine(DroppedRows(shop.work, parts))
    digests = {name: digest for some in sums for name, digest in some.items()}
    published = np.zeros(len(topics), np.int64)
    for one in written:
        published[one["published"][0]] += one["published"][1]
    workload = Workload(
        kind="follows",
        horizon=days * DAY,
        period=about["period"],
        topics=Topics.without_places(strings(topics), strings(topic_kinds), published / (days * DAY / about["period"])),
        users=Users.without_places(users),
        **_read_later(shop, digests, rows, (len(users), len(topics))),
        origin=iso(origin),
        generator=about["generator"],
        seed=streams.seed,
        unmatched=unfollowed(topics, published, np.flatnonzero(followed)),
    )
    return shop.finish(workload, digests, follow_origins(tables))


def _read_later(shop: Workshop, files: Mapping[str, str], rows: Counter[str], sizes: tuple[int, int]) -> Raw:
    """The large tables, from the workload's folder; `sizes` are the numbers of users and topics."""

    def interests() -> Raw:
        return dict(zip(("indptr", "indices"), read_interests(shop.out, files, *sizes), strict=True))

    found: Raw = {"interests": read_later(Interests, rows["interests"], interests)}
    for name, kind in (("subscription_events", SubscriptionEvents), ("publications", Publications)):
        read = partial(read_event_table, shop.out, files_of(name, files), name)
        found[name] = read_later(kind, rows[name], read)
    return found


def _numbered(
    shared: SharedArrays, owners: Sequence[str], kinds: Sequence[str], labels: Mapping[str, Mapping[str, str]]
) -> tuple[pa.StringArray, list[str], list[str], NDArray[np.bool_]]:
    """The names of all users and topics, the kinds of topics, and which are followed, as `load_follows` numbers them.

    The numbers that owners use are left for tasks, see `FollowTables`.
    """
    seen = NAMES.empty_table().drop_columns("number")
    for owner in owners:
        new = read_names(shared.folder, owner).drop_columns("number")
        seen = pa.concat_tables([seen, new]).group_by(["of", "name", "kind"]).aggregate([("used", "max")])
        seen = seen.rename_columns({"used_max": "used"})
    used, first_kind = dict[tuple[int, str], int](), dict[tuple[int, str], str]()
    for of, name, kind, use in zip(*(seen[name].to_pylist() for name in ("of", "name", "kind", "used")), strict=True):
        used[of, name] = max(used.get((of, name), 0), use)
        if kind:
            first_kind[of, name] = min(first_kind.get((of, name), kind), kind, key=name_key)
    names = sorted((one for one, use in used.items() if use), key=lambda one: (one[0], name_key(one[1])))
    users = strings(name for of, name in names if of == USERS)
    topics = names[len(users) :]
    by_kind = [strings(name for of, name in names if of == number) for number in (USERS, *range(len(kinds)))]
    keep_numbers(shared, owners, by_kind)
    said = [labels.get(kinds[of], {}).get(name, name) for of, name in topics]
    topic_kinds = [first_kind.get(one, kinds[one[0]]) for one in topics]
    return users, said, topic_kinds, np.array([used[one] == 2 for one in topics], np.bool_)
