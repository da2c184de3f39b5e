"""Sessions of a broker's log: subscriptions in force, clients who are away, and what is retained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.content.topic_filters import TopicIndex
from sim.content.topic_kernels import Grammar
from sim.workloads.format.workload import ColumnTable
from sim.workloads.models.event_kernels import (
    CONNECT,
    LOG_NEVER,
    SUBSCRIBE,
    UNSUBSCRIBE,
    AbsencesOfLog,
    ChangesOfLog,
    Followed,
    LogRows,
    follow_sessions,
)
from sim.workloads.models.log_tables import NO_EXPIRY, SECOND, Control, Delivered, EventPublications


@dataclass(frozen=True)
class LogSessions(ColumnTable):
    """The rows at which sessions begin and end, -1 where they stay open; in the order in which they begin."""

    began: NDArray[np.int64]
    ended: NDArray[np.int64]


@dataclass(frozen=True)
class LogChanges(ColumnTable):
    """Subscriptions that come into force (+1) or cease (-1), by time (µs), and the row by which, as in `follow_sessions`."""

    micros: NDArray[np.int64]
    client: NDArray[np.int32]
    topic: NDArray[np.int32]
    action: NDArray[np.int8]
    row: NDArray[np.int64]


@dataclass(frozen=True)
class LogAbsences(ColumnTable):
    """When clients with subscriptions in force were away, by start (µs), as in `Absences`; `end` is LOG_NEVER if they do not return.

    `row` is that by which it was found, as in `follow_sessions`.
    """

    client: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    session: NDArray[np.int8]
    row: NDArray[np.int64]


@dataclass(frozen=True)
class LogRequests(ColumnTable):
    """The rows that subscribe, with each of their topics that had a retained message at some time."""

    row: NDArray[np.int64]
    topic: NDArray[np.int32]


@dataclass(frozen=True)
class LogQualities(ColumnTable):
    """When (µs) which client, in which group (-1: by itself), has another quality of service than before, by which row."""

    micros: NDArray[np.int64]
    client: NDArray[np.int32]
    group: NDArray[np.int32]
    row: NDArray[np.int64]
    topic: NDArray[np.int32]
    qos: NDArray[np.int8]

    @property
    def who(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The clients and their groups."""
        return self.client, self.group


class _Shared(Protocol):
    """The part of `SharedNames` that says what names subscribe to, and by which group."""

    @property
    def group_of(self) -> NDArray[np.int32]: ...

    @property
    def filter_of(self) -> NDArray[np.int32]: ...


def follow(
    control: Control, clients: int, persistent: bool, queues_qos_0: bool
) -> tuple[NDArray[np.bool_], LogSessions, LogChanges, LogAbsences]:
    """Which rows have an effect, and what follows from them; the parameters are those of `event_workload`."""
    rows = len(control.action)
    changing = np.flatnonzero((control.action == SUBSCRIBE) | (control.action == UNSUBSCRIBE))
    key = control.client[changing].astype(np.int64) << 32 | control.topic[changing]
    pairs, inverse = np.unique(key, return_inverse=True)
    pair = np.full(rows, -1, np.int64)
    pair[changing] = inverse
    indptr = np.searchsorted(pairs >> 32, np.arange(clients + 1))
    kept = LOG_NEVER if persistent else 0
    keeps = np.where(control.clean < 0, kept, np.where(control.clean == 1, 0, LOG_NEVER))
    keeps = np.where(
        control.expiry < 0, keeps, np.where(control.expiry >= NO_EXPIRY, LOG_NEVER, control.expiry * SECOND)
    )
    fresh, fleeting = (control.clean == 1) & (control.action == CONNECT), (control.qos == 0) & (not queues_qos_0)
    read = LogRows(control.micros, control.action, control.client, pair, indptr, fresh, keeps, fleeting)
    found = Followed(np.ones(rows, np.bool_), np.empty(rows, np.int64), np.empty(rows, np.int64))

    def run(changes: int, absences: int) -> tuple[int, int, int, ChangesOfLog, AbsencesOfLog]:
        by, pair_of, row = np.empty((3, changes), np.int64)
        start, end, cause = np.empty((3, absences), np.int64)
        out = ChangesOfLog(by, pair_of, np.empty(changes, np.int8), row)
        missed = AbsencesOfLog(np.empty(absences, np.int32), start, end, np.empty(absences, np.int8), cause)
        return *follow_sessions(read, kept, found, out, missed), out, missed

    _, changes, absences, _, _ = run(0, 0)
    sessions, _, _, (micros, which, action, row), missed = run(changes, absences)
    order, subscription = np.argsort(micros, kind="stable"), pairs[which]
    client, topic = (subscription >> 32).astype(np.int32), (subscription & 0xFFFFFFFF).astype(np.int32)
    return (
        found.effect,
        LogSessions(found.began[:sessions], found.ended[:sessions]),
        LogChanges(micros, client, topic, action, row).rows(order),
        LogAbsences(*missed).rows(np.argsort(missed.start, kind="stable")),
    )


def retained_requests(
    control: Control, published: EventPublications, shared: NDArray[np.bool_], topics: Sequence[str], grammar: Grammar
) -> LogRequests:
    """The subscriptions, except to `shared` filters (topics + 1), to topics that had a retained message at some time."""
    held = np.unique(published.topic[(published.retain == 1) & (published.size > 0)])
    asks = (control.action == SUBSCRIBE) & ~shared[control.topic]
    return _matched(control.topic, np.flatnonzero(asks & (len(held) > 0)), held, topics, grammar)


def _matched(
    filter_of: NDArray[np.int32],
    rows: NDArray[np.int64],
    held: NDArray[np.int32],
    topics: Sequence[str],
    grammar: Grammar,
) -> LogRequests:
    """These rows with each topic among those `held` that their filter matches."""
    filters, which = np.unique(filter_of[rows], return_inverse=True)
    matches = TopicIndex([topics[f] for f in filters.tolist()], grammar).match_all([topics[t] for t in held.tolist()])
    by_filter = np.argsort(matches.subscription, kind="stable")
    matched = np.repeat(held.astype(np.int32), np.diff(matches.indptr))[by_filter]
    first = np.searchsorted(matches.subscription[by_filter], np.arange(len(filters) + 1))
    lengths = np.diff(first)[which]
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return LogRequests(np.repeat(rows, lengths), matched[np.repeat(first[which], lengths) + place])


def subscribed_qualities(
    control: Control, shared: _Shared, published: EventPublications, topics: Sequence[str], grammar: Grammar
) -> LogQualities:
    """The rows with the topics with publications to which a client's subscription has another quality of service from then on.

    Of several filters that match a topic, the highest quality counts, by MQTT 5.0, section 3.3.4; those by which the client is in a
    group are apart.
    """
    asks = control.action == SUBSCRIBE
    known = asks & (control.qos >= 0)
    rows = np.flatnonzero((asks | (control.action == UNSUBSCRIBE)) & known.any())
    groups = shared.group_of[control.topic]
    found = _matched(shared.filter_of[control.topic], rows, np.unique(published.topic), topics, grammar)
    held: dict[tuple[int, int, int], dict[int, int]] = {}
    kept, qualities = list[int](), list[int]()
    for place in np.argsort(found.row, kind="stable").tolist():
        row, topic = found.row.item(place), found.topic.item(place)
        mine = held.setdefault((control.client.item(row), groups.item(row), topic), {})
        before = max(mine.values(), default=-1)
        mine.pop(control.topic.item(row), None)
        if known[row]:
            mine[control.topic.item(row)] = control.qos.item(row)
        now = max(mine.values(), default=-1)
        if now not in (before, -1):
            kept.append(place)
            qualities.append(now)
    found = found.rows(np.array(kept, np.int64))
    of = control.rows(found.row)
    return LogQualities(of.micros, of.client, groups[found.row], found.row, found.topic, np.array(qualities, np.int8))


def retained_before(delivered: Delivered, published: EventPublications) -> NDArray[np.bool_]:
    """Which deliveries are of messages that were retained before the log began: no earlier row retains one on their topic."""
    retains = np.flatnonzero((published.retain == 1) & (published.size > 0))
    found = np.zeros(len(delivered), np.bool_)
    rows = np.flatnonzero(delivered.retain == 1)
    topics, first = np.unique(published.topic[retains], return_index=True)
    since = dict(zip(topics.tolist(), published.micros[retains[first]].tolist(), strict=True))
    for row, topic, micros in zip(
        rows.tolist(), delivered.topic[rows].tolist(), delivered.micros[rows].tolist(), strict=True
    ):
        found[row] = micros < since.get(topic, LOG_NEVER)
    return found
