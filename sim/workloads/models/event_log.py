"""Event workloads: a broker's log as sessions, subscriptions, publications and recorded deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

# Any: further fields of the workload, by name.
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.content.topic_filters import GRAMMARS, TopicIndex, has_wildcard
from sim.content.topic_kernels import Grammar
from sim.files.parquet import strings
from sim.workloads.format.workload import (
    DAY,
    Absences,
    Deliveries,
    Interests,
    Publications,
    Qualities,
    RetainedRequests,
    Sessions,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)
from sim.workloads.models.live_filters import begins_or_ends
from sim.workloads.models.log_sessions import (
    LogAbsences,
    LogChanges,
    LogQualities,
    LogRequests,
    LogSessions,
    follow,
    retained_before,
    retained_requests,
    subscribed_qualities,
)
from sim.workloads.models.log_tables import SECOND, Delivered, EventLog, EventPublications
from sim.workloads.models.shared_subscriptions import Members, SharedNames, Subscribed, with_shared_filters


class Causes(NamedTuple):
    """Which rows of `log.control` change nothing, and which of `log.delivered` had been retained before the log began.

    `rows` has, by table of the workload, the row of `log.control` by which each of its rows is there, as in `follow_sessions`.
    """

    no_effect: NDArray[np.bool_]
    retained: NDArray[np.bool_]
    rows: Mapping[str, NDArray[np.int64]]


class Effects(NamedTuple):
    """The result of the rows of control of a log, which names the filters that are shared: which rows have an `effect`."""

    log: EventLog
    shared: SharedNames
    effect: NDArray[np.bool_]
    sessions: LogSessions
    changes: LogChanges
    absences: LogAbsences
    requests: LogRequests
    granted: LogQualities

    @property
    def wanted(self) -> NDArray[np.int32]:
        """The topics and filters to which rows with an effect subscribe or did so, -1 for other rows."""
        found: NDArray[np.int32] = self.shared.filter_of[self.log.control.topic[self.effect]]
        return found


class LongerLog(NamedTuple):
    """The whole log of which only some clients are looked at: the first and the last time (µs), and all topics."""

    span: tuple[int, int]
    topics: NDArray[np.int32]


def effects_of(log: EventLog, persistent: bool, filters: str, queues_qos_0: bool) -> Effects:
    """The result of the rows of control; parameters are as in `event_workload`."""
    grammar = GRAMMARS[filters]
    log, shared = with_shared_filters(log, by_queue=filters == "nats")
    control, published = log.control, log.published
    effect, sessions, changes, absences = follow(control, len(log.clients), persistent, queues_qos_0)
    requests = retained_requests(control, published, shared.group_of >= 0, log.topics, grammar)
    granted = subscribed_qualities(control, shared, published, log.topics, grammar)
    effect[requests.row] = effect[granted.row] = True
    return Effects(log, shared, effect, sessions, changes, absences, requests, granted)


def are_wild(names: Sequence[str], grammar: Grammar) -> NDArray[np.bool_]:
    """Which names have a wildcard; the last entry is for -1, which is no name."""
    return np.array([has_wildcard(name, grammar) for name in names] + [True])


def event_workload(
    log: EventLog,
    *,
    persistent: bool = False,
    filters: str = "exact",
    live: bool = False,
    queues_qos_0: bool = False,
    longer: LongerLog | None = None,
    **about: Any,
) -> tuple[Workload | None, Causes]:
    """The workload, and the rows that are not used; None where no row at all is left.

    Users and topics are those that occur. Subscriptions end with the session or, if `persistent`, stay in force until the client
    returns; where connects are `clean` or have an `expiry`, that decides; those of quality of service 0 are not in force meanwhile
    unless the broker `queues_qos_0`. A subscription to a filter, in the grammar of that name (`GRAMMARS`), is one to every topic that
    it matches, unless filters are `live`: then they are topics of the kind of a filter. Of a `longer` log, this has the rows of control
    of some clients. `about` are further fields of the workload.
    """
    effects = effects_of(log, persistent, filters, queues_qos_0)
    log, shared, effect, sessions, changes, absences, requests, granted = effects
    control, published, wanted = log.control, log.published, effects.wanted
    retained = retained_before(log.delivered, published)
    delivered = log.delivered.rows(~retained) if retained.any() else log.delivered
    kept = np.flatnonzero(effect)
    span = _span(control.micros[kept], published.micros, delivered.micros) if longer is None else longer.span
    if span is None:
        return None, Causes(~effect, retained, {})
    origin = span[0] // SECOND * SECOND
    horizon = (span[1] - origin) // SECOND + 1.0
    changes = changes.rows(changes.micros < origin + horizon * SECOND)
    absences = absences.rows(absences.start < origin + horizon * SECOND)

    def seconds(times: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.minimum((times - origin) / SECOND, horizon)

    wild = are_wild(log.topics, GRAMMARS[filters])
    more = () if longer is None else (longer.topics,)
    topic = Numbering(log.topics, wanted[~wild[wanted]], published.topic, delivered.topic, *more)
    published = replace(published, topic=topic(published.topic))
    delivered = replace(delivered, topic=topic(delivered.topic))
    expansion = _Filters(shared, log.topics, topic, GRAMMARS[filters])
    lasting = np.unique(wanted[wild[wanted] & (wanted >= 0)]) if live else np.empty(0, np.int32)
    asked, there = expansion.subscribed(changes, lasting if live else None)
    members, unmatched = Members(log.clients, shared, there), expansion.unmatched(changes, published, delivered)
    changes, absences = members.joined(changes), members.away(absences)
    if not live or members.names:
        expanded = expansion.expanded(changes)
        delivered = members.receiving(delivered, published, expanded)
    changes = replace(changes, topic=expansion.numbers(lasting)[changes.topic]) if live else expanded
    occur = control.client[kept], changes.client, published.client, delivered.client, delivered.publisher
    user = Numbering([*log.clients, *members.names], *occur)
    events = SubscriptionEvents(seconds(changes.micros), user(changes.client), changes.topic, changes.action)
    publisher, subscriber = user(delivered.publisher), user(delivered.client)
    ends = np.append(seconds(control.micros), horizon)  # the last entry is for -1, sessions that stay open
    columns = seconds(published.micros), published.topic, user(published.client), published.size
    publications = Publications(*columns, np.maximum(published.retain, 0), published.qos)
    rows = {"subscription_events": changes.row, "sessions": sessions.began, "absences": absences.row}
    rows |= {"retained_requests": requests.row, "qualities": granted.row}
    return Workload(
        kind="events",
        horizon=horizon,
        topics=expansion.topics(lasting, filters, publications, horizon),
        users=Users.without_places(strings(user.names)),
        interests=Interests(np.zeros(len(user.names) + 1, np.int64), np.empty(0, np.int32)),
        subscription_events=events,
        publications=publications,
        sessions=Sessions(user(control.client[sessions.began]), ends[sessions.began], ends[sessions.ended]),
        deliveries=Deliveries(seconds(delivered.micros), delivered.topic, publisher, subscriber),
        absences=Absences(user(absences.client), seconds(absences.start), seconds(absences.end), absences.session),
        retained_requests=RetainedRequests(
            seconds(control.micros[requests.row]), user(control.client[requests.row]), topic(requests.topic)
        ),
        shares=members.shares(asked, user),
        qualities=Qualities(
            seconds(granted.micros), user(members.user_of(*granted.who)), topic(granted.topic), granted.qos
        ),
        origin=f"{np.datetime64(origin // SECOND, 's')}Z",
        unmatched=unmatched,
        **about,
    ), Causes(~effect, retained, rows)


def _span(*times: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first and the last of ascending times, None if there is none at all."""
    some = [(int(micros[0]), int(micros[-1])) for micros in times if len(micros)]
    return (min(first for first, _ in some), max(last for _, last in some)) if some else None


def filters_unexpanded(workload: Workload, filters: str) -> int:
    """The number of subscriptions to names with a wildcard in a grammar, which were taken for names of topics."""
    names = workload.topics.names.to_pylist()
    wild = np.array([has_wildcard(name, GRAMMARS[filters]) for name in names], np.bool_)
    events = workload.subscription_events
    return int(np.count_nonzero(wild[events.topic] & (events.action > 0)))


class Numbering:
    """New ids for the ids in `used`, without gaps and in the old order; -1 stays -1.

    `names` are the names of the new ids, `old` their old ids.
    """

    def __init__(self, names: Sequence[str], *used: NDArray[np.int32]) -> None:
        occurs = np.zeros(len(names) + 1, np.bool_)
        for ids in used:
            occurs[ids] = True
        occurs[-1] = False
        self._new = np.where(occurs, np.cumsum(occurs, dtype=np.int32) - 1, -1).astype(np.int32)
        self._all = bool(occurs[:-1].all())  # ids do not change, so that millions of them need not be copied
        self.old = np.flatnonzero(occurs)
        self.names = [names[old] for old in self.old.tolist()]

    def __call__(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        return ids if self._all else self._new[ids]


class _Filters:
    """The filters of a log, by their numbers among its topics, and the topics with numbers of their own that they match."""

    def __init__(self, shared: SharedNames, names: Sequence[str], topics: Numbering, grammar: Grammar) -> None:
        self._shared, self._names, self._topics, self._grammar = shared, names, topics, grammar

    def numbers(self, lasting: NDArray[np.int32]) -> NDArray[np.int32]:
        """The new number of each topic of the log, if these filters have numbers behind those of topics."""
        number = self._topics(np.arange(len(self._names), dtype=np.int32)).copy()
        number[lasting] = len(self._topics.names) + np.arange(len(lasting))
        return number

    def topics(self, lasting: NDArray[np.int32], kind: str, published: Publications, horizon: float) -> Topics:
        """The topics of the workload, and behind them filters of a kind."""
        names = [*self._topics.names, *(self._names[number] for number in lasting.tolist())]
        kinds = ["topic"] * len(self._topics.names) + [f"{kind}-filter"] * len(lasting)
        rates = published.per_topic(len(names)) / (horizon / DAY)
        return Topics.without_places(strings(names), strings(kinds) if len(lasting) else "topic", rates)

    def _matched(self, wanted: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The places in `wanted`, numbers of filters, each once for every topic that the filter matches, and these topics."""
        found, which = np.unique(wanted, return_inverse=True)
        topics = self._topics.names
        matches = TopicIndex([self._names[f] for f in found.tolist()], self._grammar).match_all(topics)
        by_filter = np.argsort(matches.subscription, kind="stable")
        matching = np.repeat(np.arange(len(topics), dtype=np.int32), np.diff(matches.indptr))[by_filter]
        every = np.bincount(matches.subscription, minlength=len(found))
        starts, lengths = (np.cumsum(every) - every)[which], every[which]
        source = np.repeat(np.arange(len(which)), lengths)
        within = np.arange(len(source)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return source, matching[starts[source] + within]

    def subscribed(self, changes: LogChanges, lasting: NDArray[np.int32] | None) -> tuple[Subscribed, Subscribed]:
        """The subscriptions of all who ever are in a group, to what they subscribe to in the workload, and to all that may meet.

        The former are topics, or filters that are `lasting`.
        """
        shared = self._shared
        rows = np.isin(changes.client, changes.client[shared.group_of[changes.topic] >= 0])
        pairs = np.unique(changes.client[rows].astype(np.int64) << 32 | changes.topic[rows])
        client, name = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
        asked = Subscribed(client, shared.filter_of[name], shared.group_of[name])
        source, topic = self._matched(asked.topic)
        there = Subscribed(client[source], topic, asked.group[source])
        if lasting is None:
            return there, there
        asked = asked._replace(topic=self.numbers(lasting)[asked.topic])
        return asked, Subscribed(*map(np.concatenate, zip(there, asked, strict=True)))

    def unmatched(self, changes: LogChanges, published: EventPublications, delivered: Delivered) -> dict[str, int]:
        """How many subscriptions by each name match no topic with publications or deliveries."""
        heard = np.zeros(len(self._topics.names), np.bool_)
        heard[published.topic] = heard[delivered.topic] = True
        asked, subscriptions = np.unique(changes.topic[changes.action > 0], return_counts=True)
        source, topic = self._matched(self._shared.filter_of[asked])
        silent = np.bincount(source, heard[topic], minlength=len(asked)) == 0
        names = [self._names[name] for name in asked[silent].tolist()]
        return dict(zip(names, subscriptions[silent].tolist(), strict=True))

    def expanded(self, changes: LogChanges) -> LogChanges:
        """Changes of subscriptions to the topics that filters match, in force while any filter of the user matches the topic."""
        source, topic = self._matched(changes.topic)
        found = replace(changes.rows(source), topic=topic)
        return found.rows(begins_or_ends(found.client, topic, found.action))
