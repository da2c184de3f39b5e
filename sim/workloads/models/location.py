"""Location workloads: users subscribe to the cell they are in and to their friends' cells (DYNATOPS, section IV.A.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

# Any: further fields of the workload, by name.
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.csr import row_starts
from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.base.ordering import lex_order
from sim.base.randomness import Streams
from sim.files.parquet import repeated, strings
from sim.workloads.format.workload import (
    DAY,
    ColumnTable,
    Interests,
    Movements,
    Publications,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)
from sim.workloads.models.location_kernels import ChangesOut, subscription_changes
from sim.workloads.models.resampling import resample
from sim.workloads.models.sampling import draw_distinct

# Degrees: a ten-thousandth is about 11 m, finer than any position that users share.
SMALLEST_CELL, LARGEST_CELL = 1e-4, 180.0


@dataclass(frozen=True)
class Visits(ColumnTable):
    """Stays of users in cells, one row each, sorted by (time, user, cell): arrival (s), ids, position of the first check-in."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    cell: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Cells of a grid of `side` degrees over the Earth, ascending by (row, column); cell ids are positions."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    side: float

    def __len__(self) -> int:
        return len(self.row)

    def topics(self, published: NDArray[np.int64], horizon: float) -> Topics:
        """The cells as topics, placed at their centres, with rates of events per day, from the numbers `published` on each."""
        names = [f"{row},{column}" for row, column in zip(self.row.tolist(), self.column.tolist(), strict=True)]
        return Topics(
            strings(names),
            repeated("cell", len(self)),
            _rates(published, horizon),
            np.clip((self.row + 0.5) * self.side, -90, 90),  # cells at a pole may extend beyond it
            np.clip((self.column + 0.5) * self.side, -180, 180),
        )


def number_cells(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], side: float
) -> tuple[Cells, NDArray[np.int32]]:
    """The cells that hold these positions (degrees), and each position's cell id."""
    keys, cell = np.unique(cell_keys(latitude, longitude, side), return_inverse=True)
    return cells_with(keys, side), cell.astype(np.int32)


def _rates(published: NDArray[np.int64], horizon: float) -> NDArray[np.float64]:
    return published.astype(np.float64) * (DAY / horizon)


def cell_keys(latitude: NDArray[np.float64], longitude: NDArray[np.float64], side: float) -> NDArray[np.int64]:
    """A number for the cell of each of these positions (degrees), which ascends as (row, column) does."""
    row, column = np.floor(latitude / side).astype(np.int64), np.floor(longitude / side).astype(np.int64)
    return _cell_key(row, column)


def cells_with(keys: NDArray[np.int64], side: float) -> Cells:
    """The cells with these keys, which ascend."""
    return Cells(keys >> 32, (keys & 0xFFFFFFFF) - 2**31, side)


def _cell_key(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    return row << 32 | (column + 2**31)


def merge_checkins(checkins: Visits) -> Visits:
    """Visits from single check-ins in any order: a user's successive check-ins in one cell are one visit."""
    visits = checkins.rows(visits_among(checkins.user, checkins.time, checkins.cell))
    return visits.rows(lex_order(visits.time, visits.user, visits.cell))


def visits_among(
    user: NDArray[np.int32], time: NDArray[np.float64] | NDArray[np.int64], cell: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The check-ins, by user and time, that begin a visit: a user's successive check-ins in one cell are one."""
    order = lex_order(user, time, cell)
    starts = (np.diff(user[order], prepend=-1) != 0) | (np.diff(cell[order], prepend=-1) != 0)
    begins: NDArray[np.int64] = order[starts]
    return begins


@dataclass(frozen=True)
class VisitShares:
    """The statistics of a trace in DYNATOPS, figure 5: shares of 1, NaN where undefined."""

    visits: int
    pairs: int
    """Different (user, cell) pairs."""
    single_visits: float
    """Pairs of a single visit."""
    stays_under_day: float
    """Stays of less than a day. A stay lasts until the user's next visit; each user's last stay is left out, as it has no end."""
    stays_over_week: float
    """Stays of more than a week."""


def visit_shares(visits: Visits) -> VisitShares:
    """Compute how often users return to a cell, and how long they stay."""
    by_user = visits.rows(lex_order(visits.user, visits.time))
    _, times = np.unique(by_user.user.astype(np.int64) << 32 | by_user.cell, return_counts=True)
    stays = np.diff(by_user.time)[by_user.user[1:] == by_user.user[:-1]]
    return VisitShares(len(visits), len(times), _share(times == 1), _share(stays < DAY), _share(stays > 7 * DAY))


def _share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else float("nan")


def draw_friends(users: int, friends: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """A uniformly drawn set of others for each user, shape (users, min(friends, users - 1)): distinct, without the user, ascending."""
    count = max(0, min(friends, users - 1))
    others = draw_distinct(users, count, users - 1, generator)
    return others + (others >= np.arange(users, dtype=np.int32)[:, None])


def location_subscriptions(
    visits: Visits, friends: NDArray[np.int32], topics: int
) -> tuple[Interests, SubscriptionEvents]:
    """The interests at time 0 and all changes, if each user wants its own cell and its friends' current cells.

    `friends`: (users, k). Wants are reference-counted; before a user's first visit its first cell holds. A visit that
    takes u from A to B affects u and its followers, ascending: each subscribes to B first, then unsubscribes from A, where
    these are changes at all. Raises ValueError where a visit's cell is not a topic.
    """
    if len(visits) and not 0 <= visits.cell.min() <= visits.cell.max() < topics:
        raise ValueError(f"cells {visits.cell.min()}..{visits.cell.max()} for {topics} topics")
    users = len(friends)
    current = np.full(users, -1, np.int32)
    current[visits.user[::-1]] = visits.cell[::-1]  # the earliest is written last
    interests = initial_interests(current, friends)
    indptr, followers = followers_of(friends)
    room = 2 * int((1 + np.diff(indptr))[visits.user].sum())
    # memory is only allocated once written to, so that unused parts cost nothing
    out = ChangesOut(*(np.empty(room, dtype) for dtype in SubscriptionEvents.dtypes().values()))
    steps = visits.time, visits.user, visits.cell
    n = subscription_changes(steps, current, friends, (indptr, followers), out)
    return interests, SubscriptionEvents(*out).rows(slice(n))


def followers_of(friends: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whose friend each user is, ascending, as CSR."""
    followers = np.argsort(friends, axis=None, kind="stable") // max(friends.shape[1], 1)
    return row_starts(np.bincount(friends.ravel(), minlength=len(friends))), followers


def initial_interests(current: NDArray[np.int32], friends: NDArray[np.int32]) -> Interests:
    """What users want who are in the cells `current`, -1 for none, and have these `friends` (users, k)."""
    wanted = np.sort(np.column_stack([current, current[friends]]), axis=1)
    new = np.ones(wanted.shape, np.bool_)
    new[:, 1:] = wanted[:, 1:] != wanted[:, :-1]
    new &= wanted >= 0  # a user without visits has no position
    return Interests(row_starts(new.sum(axis=1)), wanted[new])


def location_workload(
    visits: Visits,
    cells: Cells,
    names: pa.StringArray,
    publications: Publications,
    friends: int,
    streams: Streams,
    generator: Raw,
    horizon: float,
    **about: Any,
) -> Workload:
    """The workload of kind `location` from these visits; `names` are the users', and a user's home is the place of its first visit.

    `friends` per user are drawn from `streams`; `generator` describes in the manifest where the visits came from; `about` are
    further fields of the workload.
    """
    home = np.full((2, len(names)), np.nan)
    home[:, visits.user[::-1]] = visits.latitude[::-1], visits.longitude[::-1]
    drawn = draw_friends(len(names), friends, streams.generator("workload.friends"))
    interests, events = location_subscriptions(visits, drawn, len(cells))
    return Workload(
        kind="location",
        horizon=horizon,
        topics=cells.topics(publications.per_topic(len(cells)), horizon),
        users=Users(names, home[0], home[1]),
        interests=interests,
        subscription_events=events,
        publications=publications,
        movements=Movements(visits.time, visits.user, visits.latitude, visits.longitude),
        cell=cells.side,
        generator={**generator, "friends": friends},
        seed=streams.seed,
        **about,
    )


def publish_each(visits: Visits, size: int) -> Publications:
    """One publication of `size` bytes per row, by the user, on its cell's topic, at its time."""
    return Publications(visits.time, visits.cell, visits.user, np.full(len(visits), size, np.int32))


def cells_of(workload: Workload) -> Cells:
    """The cells of a location workload's topics, read from their names. Raises WorkloadError where one is not a cell."""
    names = workload.topics.names.to_pylist()
    try:
        parsed = np.array([name.split(",") for name in names], np.int64).reshape(-1, 2)
    except ValueError:
        raise WorkloadError("topics.parquet: a location workload's topics are cells, named such as '40,-74'") from None
    return Cells(parsed[:, 0], parsed[:, 1], workload.cell or 1.0)


def visits_of(workload: Workload) -> Visits:
    """The visits described by a location workload's movements. Raises WorkloadError where one is outside all cells."""
    moves, cells = workload.movements, cells_of(workload)
    found, numbers = number_cells(moves.latitude, moves.longitude, cells.side)
    known, wanted = _cell_key(cells.row, cells.column), _cell_key(found.row, found.column)
    topic = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    missing = known[topic] != wanted if len(known) else np.ones(len(wanted), np.bool_)
    if missing.any():
        row = int(missing[numbers].argmax())
        raise WorkloadError(f"movements.parquet: row {row}: position outside all cells of topics.parquet")
    return Visits(moves.time, moves.user, topic[numbers].astype(np.int32), moves.latitude, moves.longitude)


def redrawn(workload: Workload, streams: Streams, resample_users: bool = False) -> Workload:
    """Another replication of a fixed workload: friends of a location workload are redrawn, and interests follow.

    With `resample_users` the users are first drawn with replacement, see `sim.workloads.models.resampling`. Raises WorkloadError
    where a location workload's tables disagree.
    """
    location = workload.kind == "location"
    if resample_users:
        workload = resample(workload, streams.generator("workload.users"))
    if not location:
        return workload
    if resample_users:
        rates = _rates(workload.publications.per_topic(len(workload.topics)), workload.horizon)
        workload = replace(workload, topics=replace(workload.topics, event_rate=rates))
    friends = workload.generator.get("friends")
    if not isinstance(friends, int):
        raise WorkloadError(
            "manifest.json: generator.friends is missing, which a location workload needs for replications"
        )
    drawn = draw_friends(len(workload.users), friends, streams.generator("workload.friends"))
    interests, events = location_subscriptions(visits_of(workload), drawn, len(workload.topics))
    return replace(workload, interests=interests, subscription_events=events)
