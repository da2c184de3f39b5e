"""Follow workloads: users follow topics during intervals, and publications are on these topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Any: further fields of the workload, by name.
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.ordering import lex_order
from sim.files.parquet import strings
from sim.workloads.format.workload import DAY, Interests, Publications, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.models.event_log import Numbering
from sim.workloads.models.follow_kernels import join_intervals
from sim.workloads.models.log_tables import SECOND

EVER, UNENDING = (
    -(1 << 62),
    1 << 62,
)  # µs since 1970: the start of a follow without a beginning, the end of one without an end
_AT_ONCE = 8_000_000  # follows
_DAY = int(DAY) * SECOND
FollowChanges = tuple[NDArray[np.int64], NDArray[np.int64], int]
"""When (µs) pairs of a user and a topic change, and the action that all of them are."""


@dataclass(frozen=True)
class Follows:
    """Rows by which a user follows a topic in [since, until), µs since 1970; None: without a beginning, or without an end.

    `row` identifies each, in order; -1 where a row is not kept for its follow alone.
    """

    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    row: NDArray[np.int64]
    since: NDArray[np.int64] | None = None
    until: NDArray[np.int64] | None = None

    def where(self, which: NDArray[np.bool_]) -> Follows:
        since, until = (None if times is None else times[which] for times in (self.since, self.until))
        return Follows(self.user[which], self.topic[which], self.row[which], since, until)


@dataclass(frozen=True)
class FollowPublications:
    """Publications in any order: µs since 1970, topic, publisher (-1 where it comes from outside)."""

    micros: NDArray[np.int64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]


@dataclass(frozen=True)
class FollowLog:
    """The usable rows; users and topics are positions in their names, which are in the order of their ids, as `kinds` are."""

    users: Sequence[str]
    topics: Sequence[str]
    kinds: Sequence[str]
    follows: Sequence[Follows]
    published: FollowPublications


def follow_workload(
    log: FollowLog, *, period: float = DAY, size: int = 100, chosen: NDArray[np.bool_] | None = None, **about: Any
) -> tuple[Workload | None, dict[str, NDArray[np.int64]]]:
    """The workload, None where nothing is published or nobody follows, and the rows of follows that are left out, by reason.

    Time 0 is the first instant of the day (UTC) of the first publication, the horizon the end of the day of the last one.
    The reasons: `outside_window` (ended before it, or began after it), `duplicate` (covered by others of the same user and topic;
    the first of equal ones is kept) and `not_sampled` (of a user who is not `chosen`). Users are those who follow or publish,
    topics those that are followed or published on; event rates are per `period` (s). `about` are further fields.
    """
    published = log.published
    if not len(published.micros):
        return None, {}
    origin, days = days_of(int(published.micros.min()), int(published.micros.max()))

    def seconds(micros: NDArray[np.int64]) -> NDArray[np.float64]:
        return (micros - origin) / SECOND

    wanted, changes, left_out = join_follows(log.follows, len(log.users), (origin, origin + days * _DAY), chosen)
    indptr, indices = _csr(wanted, len(log.users))
    del wanted
    time, changed, action = _in_order(changes)
    del changes
    if not len(indices) and not len(time):
        return None, left_out
    changing = (changed >> 32).astype(np.int32), (changed & 0xFFFFFFFF).astype(np.int32)
    following = np.flatnonzero(np.diff(indptr)).astype(np.int32)
    user = Numbering(log.users, following, changing[0], published.publisher)
    topic = Numbering(log.topics, indices, changing[1], published.topic)
    order = lex_order(published.micros, published.topic, published.publisher)
    publications = Publications(
        seconds(published.micros[order]),
        topic(published.topic[order]),
        user(published.publisher[order]),
        np.full(len(order), size, np.int32),
    )
    workload = Workload(
        kind="follows",
        horizon=days * DAY,
        period=period,
        topics=Topics.without_places(
            strings(topic.names),
            strings([log.kinds[old] for old in topic.old.tolist()]),
            publications.per_topic(len(topic.names)) / (days * DAY / period),
        ),
        users=Users.without_places(strings(user.names)),
        interests=Interests(indptr[np.append(user.old, len(log.users))], topic(indices)),
        subscription_events=SubscriptionEvents(seconds(time), user(changing[0]), topic(changing[1]), action),
        publications=publications,
        origin=f"{np.datetime64(origin // SECOND, 's')}Z",
        unmatched=unfollowed(
            topic.names, publications.per_topic(len(topic.names)), np.concatenate([topic(indices), topic(changing[1])])
        ),
        **about,
    )
    return workload, left_out


def unfollowed(names: Sequence[str], published: NDArray[np.int64], followed: Integers) -> dict[str, int]:
    """How often something is published on topics that are not among those followed, by their names, which may be alike."""
    counts, found = published.copy(), Counter[str]()
    counts[followed] = 0
    for topic in np.flatnonzero(counts).tolist():
        found[names[topic]] += int(counts[topic])
    return dict(found)


def days_of(first: int, last: int) -> tuple[int, int]:
    """Time 0 (µs since 1970) and the number of days of publications from the first to the last."""
    origin = first // _DAY * _DAY
    return origin, (last - origin) // _DAY + 1


def join_follows(
    tables: Sequence[Follows],
    users: int,
    span: tuple[int, int],
    chosen: NDArray[np.bool_] | None,
) -> tuple[list[NDArray[np.int64]], list[FollowChanges], dict[str, NDArray[np.int64]]]:
    """The pairs (user << 32 | topic) in force when a span (µs) begins, ascending; the changes until it ends; the rows left out.

    `chosen` and the reasons of rows are as in `follow_workload`.
    """
    origin, end = span
    dropped: dict[str, list[NDArray[np.int64]]] = {"outside_window": [], "duplicate": [], "not_sampled": []}
    follows = []
    for table in tables:
        outside = np.zeros(len(table.user), np.bool_)
        if table.until is not None:
            outside |= table.until <= origin
        if table.since is not None:
            outside |= table.since >= end
        if outside.any():
            dropped["outside_window"].append(table.row[outside])
            table = table.where(~outside)
        follows.append(table)
    wanted, changes = list[NDArray[np.int64]](), list[FollowChanges]()
    for part in _parts(follows, users):
        pair, since, until, needed = _intervals(part)
        dropped["duplicate"].append(part.row[~needed])
        if chosen is not None:
            dropped["not_sampled"].append(part.row[needed & ~chosen[part.user]])
            those = chosen[pair >> 32]
            pair, since, until = pair[those], since[those], until[those]
        begun, ended = since <= origin, until < end
        wanted.append(pair[begun])
        changes += [(since[~begun], pair[~begun], 1), (until[ended], pair[ended], -1)]
    return wanted, changes, {reason: _rows(rows) for reason, rows in dropped.items()}


def _parts(tables: Sequence[Follows], users: int) -> Iterator[Follows]:
    """Yield all rows with their times, in parts by user, so that little more than one part is in memory twice."""
    rows = sum((np.bincount(table.user, minlength=users) for table in tables), np.zeros(users, np.int64))
    part = np.cumsum(rows) // _AT_ONCE
    for number in np.unique(part[rows > 0]).tolist():
        least, end = np.searchsorted(part, (number, number + 1))
        here = [table.where((table.user >= least) & (table.user < end)) for table in tables]
        yield Follows(
            np.concatenate([some.user for some in here]),
            np.concatenate([some.topic for some in here]),
            np.concatenate([some.row for some in here]),
            np.concatenate([np.full(len(some.user), EVER) if some.since is None else some.since for some in here]),
            np.concatenate([np.full(len(some.user), UNENDING) if some.until is None else some.until for some in here]),
        )


def _intervals(
    part: Follows,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """The joined intervals: user << 32 | topic, since, until; and the mask of the part's rows that they need."""
    assert part.since is not None
    assert part.until is not None
    pair: NDArray[np.int64] = part.user.astype(np.int64) << 32 | part.topic
    order = np.lexsort((part.row, -part.until, part.since, pair))
    ordered = np.ones(len(pair), np.bool_)
    first, end = np.empty(len(pair), np.int64), np.empty(len(pair), np.int64)
    count = join_intervals(pair[order], part.since[order], part.until[order], ordered, first, end)
    needed = np.empty(len(pair), np.bool_)
    needed[order] = ordered
    begin = order[first[:count]]
    return pair[begin], part.since[begin], end[:count], needed


def _rows(found: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    rows = np.concatenate([np.empty(0, np.int64), *found])
    return rows[rows >= 0]


def _csr(pairs: Sequence[NDArray[np.int64]], users: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Build the CSR from ascending pairs, part by part."""
    indptr = np.zeros(users + 1, np.int64)
    for part in pairs:
        indptr[1:] += np.bincount(part >> 32, minlength=users)
    np.cumsum(indptr, out=indptr)
    return indptr, np.concatenate([np.empty(0, np.int32), *((part & 0xFFFFFFFF).astype(np.int32) for part in pairs)])


def _in_order(changes: Sequence[FollowChanges]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Sort times, pairs and actions by time, then by user and topic."""
    time = np.concatenate([np.empty(0, np.int64), *(times for times, _, _ in changes)])
    pair = np.concatenate([np.empty(0, np.int64), *(pairs for _, pairs, _ in changes)])
    action = np.repeat(np.array([action for _, _, action in changes], np.int8), [len(times) for times, _, _ in changes])
    order = lex_order(time, pair)
    return time[order], pair[order], action[order]
