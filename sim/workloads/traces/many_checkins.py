"""Check-ins too many for one process: tasks handle them by user, then by time; this process knows users, cells and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from sim.base.naming import Raw, name_key
from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.workloads.format.folder import read_event_table
from sim.workloads.format.parts import files_of, read_later
from sim.workloads.format.workload import DAY, Movements, Publications, SubscriptionEvents, Users, Workload
from sim.workloads.models.location import Cells, cells_with, draw_friends, followers_of, initial_interests
from sim.workloads.traces.by_time import BlockWriter, VisitGrid, Whereabouts
from sim.workloads.traces.by_user import DroppedRows, PieceSplitter, UserPart
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.exchange import BLOCK_ROWS, PART_ROWS, SortedRows, cut_blocks
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.spark_tasks import TaskResult
from sim.workloads.traces.strays import days_of_all
from sim.workloads.traces.times import iso
from sim.workloads.traces.user_filters import calendar_months
from sim.workloads.traces.workshop import Workshop

_DAY = int(DAY) * 1_000_000
_TABLES = {"movements": Movements, "publications": Publications, "subscription_events": SubscriptionEvents}


def prepare_many(
    shop: Workshop, shelf: Shelf, options: CheckinOptions, streams: Streams, zone: str, generator: Raw
) -> Workload:
    """The location workload of the check-ins on a shelf, written; its events are read when they are asked for.

    Times without a zone are in `zone`; `generator` describes it in the manifest. Raises WorkloadError where no row is left.
    """
    each = options.publications == "per-check-in"
    found = _by_user(shop, shelf, options, streams, zone)
    shop.count(sum((Counter(one["dropped"]) for one in found), Counter[str]()))
    if not any(one["names"] for one in found):
        raise shop.nothing_usable("none of {} is usable")
    days = days_of_all([one["days"] for one in found])
    shop.warn_of_strays(days, "check-ins")
    users, cells, grid = _numbered(shop, found, options.cell)
    friends = draw_friends(len(users), options.friends, streams.generator("workload.friends"))
    followed_from, followers = followers_of(friends)
    grid.keep("friends", friends.ravel())
    grid.keep("followed_from", followed_from)
    grid.keep("followers", followers)
    files = {kind: [SortedRows(**one["files"][kind]) for one in found] for kind in found[0]["files"]}
    most = "each" if each else "visits"
    blocks = cut_blocks(
        [rows.starts for rows in files[most]], sum(one["rows"][most] for one in found), max(BLOCK_ROWS, len(users))
    )
    shop.each(Whereabouts(grid, blocks), range(len(found)), "finding visits")

    from sim.workloads.models.location_kernels import ChangesOut, subscription_changes

    writer = BlockWriter(
        *(grid, shop.tables, blocks, files, days[0] * _DAY, friends.shape, options.size),
        (subscription_changes, ChangesOut),
    )
    for table in (*_TABLES, "quarantine"):
        shop.tables.below(table)
    written = shop.each(writer, range(len(blocks) + 1), "writing visits, publications and subscription changes")
    sums = shop.quarantine(DroppedRows(shop.work, len(found)))
    published = np.zeros(len(cells), np.int64)
    for one in written:
        published[one["cells"]] += one["counts"]
        sums.append(one["sums"])
    digests = {name: digest for some in sums for name, digest in some.items()}
    here = np.empty(len(users), np.int32)
    for part in range(len(found)):
        here[grid.read(f"users-{part}")] = grid.read(f"here-{part}")
    horizon = len(days[1]) * DAY
    workload = Workload(
        kind="location",
        horizon=horizon,
        topics=cells.topics(published, horizon),
        users=users,
        interests=initial_interests(here, friends),
        **_read_later(shop, digests, sum((Counter(one["rows"]) for one in written), Counter[str]())),
        cell=options.cell,
        origin=iso(days[0] * _DAY),
        generator={**generator, "friends": options.friends},
        seed=streams.seed,
    )
    return shop.finish(workload, digests)


def _by_user(shop: Workshop, shelf: Shelf, options: CheckinOptions, streams: Streams, zone: str) -> list[TaskResult]:
    """What is left of the check-ins, by part (`UserPart`)."""
    parts = -(-shelf.rows // PART_ROWS)
    pieces = list(zip(shelf.pieces, shelf.shifts(), strict=True))
    splits = shop.each(PieceSplitter(shelf, parts, shop.work), pieces, "dividing rows by user")
    files = [split["file"] for split in splits]
    times = [time for split in splits for time in split["times"] or ()]
    months = calendar_months(min(times), max(times), options.window, zone)
    each = options.publications == "per-check-in"
    work = UserPart(files, parts, shop.work, options.filters, months, options.cell, streams, each)
    found = shop.each(work, range(parts), f"looking for duplicates in {shop.reasons.total():,} rows")
    for name in files:
        shop.work.remove(name)
    return found


def _numbered(shop: Workshop, found: Sequence[TaskResult], side: float) -> tuple[Users, Cells, VisitGrid]:
    """All users and cells, and what tasks know of them; users are numbered as in `Names`, cells by row and column."""
    grid = VisitGrid(shop.work, side)
    names = [name for one in found for name in one["names"]]
    order = np.array(sorted(range(len(names)), key=lambda number: name_key(names[number])))
    number = np.empty(len(names), np.int32)
    number[order] = np.arange(len(names))
    first = 0
    for part, one in enumerate(found):
        grid.keep(f"users-{part}", number[first : first + len(one["names"])])
        first += len(one["names"])
    home = np.concatenate([one["home"] for one in found], axis=1)[:, order]
    keys = np.unique(np.concatenate([one["cells"] for one in found]))
    grid.keep("cells", keys)
    return Users(strings(names[place] for place in order), home[0], home[1]), cells_with(keys, side), grid


def _read_later(shop: Workshop, files: dict[str, str], rows: Counter[str]) -> Raw:
    """The tables of events, from the workload's folder."""
    return {
        name: read_later(kind, rows[name], partial(read_event_table, shop.out, files_of(name, files), name))
        for name, kind in _TABLES.items()
    }
