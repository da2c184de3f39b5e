"""Users who go offline: what becomes of their subscriptions, publications and wills, as another workload."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

# Any: columns have a type each.
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.workloads.format.workload import (
    NO_SESSION,
    SESSION_OVER,
    SESSION_RESUMED,
    Absences,
    Publications,
    RetainedRequests,
    SubscriptionEvents,
    Workload,
)

_Table = TypeVar("_Table", SubscriptionEvents, RetainedRequests, Publications)


class OfflineSpan(NamedTuple):
    """A user is offline from `start` to `end` (s)."""

    user: int
    start: float
    end: float


@dataclass(frozen=True)
class Will:
    """What is published on a topic, in bytes, `delay` seconds after a user has gone offline."""

    topic: int
    size: int
    delay: float = 0.0
    retain: bool = False


@dataclass(frozen=True)
class OfflineRules:
    """What becomes of users who go offline: `expiry` is how long (s) their sessions are kept, 0 if they are clean."""

    expiry: float = math.inf
    will: Will | None = None


class _Story:
    """The subscription events of a user with its absences, and when its wills are published."""

    def __init__(self, wanted: set[int], events: Sequence[tuple[float, int, int]], rules: OfflineRules) -> None:
        self._wanted, self._held, self._events, self._rules = set(wanted), set(wanted), events, rules
        self.changes: list[tuple[float, int, int]] = []
        self.returns: list[tuple[float, int]] = []  # subscriptions at a return
        self.absences: list[tuple[float, float, int]] = []
        self.wills: list[float] = []

    def _hold(self, time: float, topics: set[int]) -> None:
        self.changes += [(time, topic, -1) for topic in sorted(self._held - topics)]
        self.changes += [(time, topic, 1) for topic in sorted(topics - self._held)]
        self._held = set(topics)

    def tell(self, spans: Sequence[OfflineSpan], horizon: float) -> None:
        """Go through the user's time, with spans in order that do not overlap."""
        row = 0
        for _, start, end in [*spans, OfflineSpan(-1, math.inf, math.inf)]:
            while row < len(self._events) and self._events[row][0] < end:
                time, topic, action = self._events[row]
                (self._wanted.add if action > 0 else self._wanted.discard)(topic)
                if time < start:
                    self._hold(time, self._wanted)
                row += 1
            if start < horizon:
                self._absence(start, end, horizon)

    def _absence(self, start: float, end: float, horizon: float) -> None:
        over, will = start + self._rules.expiry, self._rules.will
        if will is not None and (time := min(start + will.delay, over)) < min(end, horizon):
            self.wills.append(time)
        kept = SESSION_RESUMED if end <= over else SESSION_OVER
        if over > start:
            self.absences.append((start, min(end, over), kept))
        if (over < end or over == start) and over < horizon:
            self.absences.append((over, end, NO_SESSION))
            self._hold(over, set())
        if end < horizon:
            before = set(self._held)
            self._hold(end, self._wanted)
            self.returns += [(end, topic) for topic in sorted(self._wanted - before)]


def take_offline(workload: Workload, spans: Sequence[OfflineSpan], rules: OfflineRules, horizon: float) -> Workload:
    """The workload with users who are offline in some spans, up to a horizon (s); spans of a user that overlap or touch are one.

    They publish nothing meanwhile. Subscriptions that they change then change at their return.
    """
    events, interests, end = workload.subscription_events, workload.interests, workload.horizon
    offline = _joined(spans, horizon)
    rows: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    those = np.isin(events.user, np.array(list(offline), np.int32))
    for time, user, topic, action in zip(*(column[those].tolist() for column in vars(events).values()), strict=True):
        rows[user].append((time, topic, action))
    changes, absences, returns, wills = [], [], [], []
    for user, own in sorted(offline.items()):
        wanted = set(interests.indices[interests.indptr[user] : interests.indptr[user + 1]].tolist())
        story = _Story(wanted, rows[user], rules)
        story.tell(own, horizon)
        changes += [(time, user, topic, action) for time, topic, action in story.changes]
        absences += [(start, min(stop, end), user, session) for start, stop, session in story.absences]
        returns += [(time, user, topic) for time, topic in story.returns]
        wills += [(time, user) for time in story.wills]
    start, stop, user_away, session = _columns(sorted(absences), "f8 f8 i4 i1")
    asks = workload.retained_requests
    return replace(
        workload,
        subscription_events=_merged(events.rows(~those), SubscriptionEvents(*_columns(changes, "f8 i4 i4 i1"))),
        publications=_published(workload.publications, offline, wills, rules.will),
        absences=Absences(user_away, start, stop, session),
        retained_requests=_merged(asks, RetainedRequests(*_columns(returns, "f8 i4 i4"))) if len(asks) else asks,
    )


def retain(workload: Workload, topics: Sequence[int] | None) -> Workload:
    """The workload in which all publications on topics (None: on all) are retained, and subscriptions ask for what is retained."""
    published, events = workload.publications, workload.subscription_events
    retains = np.ones(len(published), np.bool_) if topics is None else np.isin(published.topic, np.array(topics))
    published = replace(published, retain=(retains | (published.retain == 1)).astype(np.int8))
    asks = workload.retained_requests
    if not len(asks):
        kept = (events.action > 0) & np.isin(events.topic, published.topic[published.retain == 1])
        asks = RetainedRequests(events.time[kept], events.user[kept], events.topic[kept])
    return replace(workload, publications=published, retained_requests=asks)


def _joined(spans: Sequence[OfflineSpan], horizon: float) -> dict[int, list[OfflineSpan]]:
    """The spans of each user that begin before the horizon, in order."""
    found: dict[int, list[OfflineSpan]] = defaultdict(list)
    for span in sorted(span for span in spans if span.start < horizon):
        own = found[span.user]
        if own and span.start <= own[-1].end:
            own[-1] = own[-1]._replace(end=max(own[-1].end, span.end))
        else:
            own.append(span)
    return found


def _columns(rows: Sequence[tuple[float, ...]], types: str) -> list[NDArray[Any]]:
    return [np.array([row[place] for row in rows], kind) for place, kind in enumerate(types.split())]


def _merged(one: _Table, other: _Table) -> _Table:
    """The rows of both tables by time; at equal times those of the first come first."""
    columns = [np.concatenate(parts) for parts in zip(vars(one).values(), vars(other).values(), strict=True)]
    return type(one)(*columns).rows(np.argsort(columns[0], kind="stable"))


def _published(
    published: Publications,
    offline: dict[int, list[OfflineSpan]],
    wills: Sequence[tuple[float, int]],
    will: Will | None,
) -> Publications:
    """Publications without those of users who are offline, and with their wills."""
    left = np.zeros(len(published), np.bool_)
    order = np.argsort(published.publisher, kind="stable")
    bounds = np.searchsorted(published.publisher[order], (users := sorted(offline)), side="left")
    ends = np.searchsorted(published.publisher[order], users, side="right")
    for user, first, end in zip(users, bounds.tolist(), ends.tolist(), strict=True):
        rows = order[first:end]
        for _, start, stop in offline[user]:
            left[rows[slice(*np.searchsorted(published.time[rows], (start, stop)))]] = True
    kept = published.rows(~left)
    if will is None:
        return kept
    time, publisher = _columns(wills, "f8 i4")
    same = (np.full(len(time), value, kind) for value, kind in ((will.size, "i4"), (will.retain, "i1"), (-1, "i1")))
    return _merged(kept, Publications(time, np.full(len(time), will.topic, np.int32), publisher, *same))
