"""Event workloads: a broker's log as sessions, subscriptions, publications and recorded deliveries."""

from __future__ import annotations

from collections.abc import Sequence
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
from sim.workloads.models.log_sessions import (
    LogChanges,
    follow,
    retained_before,
    retained_requests,
    subscribed_qualities,
)
from sim.workloads.models.log_tables import SECOND, EventLog
from sim.workloads.models.shared_subscriptions import Members, SharedNames, Subscribed, with_shared_filters


class Unused(NamedTuple):
    """Which rows of `log.control` change nothing, and which of `log.delivered` had been retained before the log began."""

    no_effect: NDArray[np.bool_]
    retained: NDArray[np.bool_]


def event_workload(
    log: EventLog, *, persistent: bool = False, filters: str = "exact", queues_qos_0: bool = False, **about: Any
) -> tuple[Workload | None, Unused]:
    """The workload, and the rows that are not used; None where no row at all is left.

    Users and topics are those that occur. Subscriptions end with the session or, if `persistent`, stay in force until the client
    returns; where connects are `clean` or have an `expiry`, that decides; those of quality of service 0 are not in force meanwhile
    unless the broker `queues_qos_0`. A subscription to a filter, in the grammar of that name
    (`GRAMMARS`), is one to every topic that it matches. `about` are further fields of the workload.
    """
    grammar = GRAMMARS[filters]
    log, shared = with_shared_filters(log, by_queue=filters == "nats")
    control, published = log.control, log.published
    effect, sessions, changes, absences = follow(control, len(log.clients), persistent, queues_qos_0)
    requests = retained_requests(control, published, shared.group_of >= 0, log.topics, grammar)
    granted = subscribed_qualities(control, shared, published, log.topics, grammar)
    effect[requests.row] = effect[granted.row] = True
    foreign = retained_before(log.delivered, published)
    delivered = log.delivered.rows(~foreign) if foreign.any() else log.delivered
    unused = Unused(~effect, foreign)
    kept = np.flatnonzero(effect)
    micros = [times for times in (control.micros[kept], published.micros, delivered.micros) if len(times)]
    if not micros:
        return None, unused
    origin = min(int(times[0]) for times in micros) // SECOND * SECOND
    horizon = (max(int(times[-1]) for times in micros) - origin) // SECOND + 1.0
    changes = changes.rows(changes.micros < origin + horizon * SECOND)
    absences = absences.rows(absences.start < origin + horizon * SECOND)

    def seconds(times: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.minimum((times - origin) / SECOND, horizon)

    wild = np.array([has_wildcard(name, grammar) for name in log.topics] + [True])  # and -1, which is not a topic
    wanted = shared.filter_of[control.topic[kept]]
    topic = Numbering(log.topics, wanted[~wild[wanted]], published.topic, delivered.topic)
    published = replace(published, topic=topic(published.topic))
    delivered = replace(delivered, topic=topic(delivered.topic))
    heard = np.zeros(len(topic.names), np.bool_)  # topics with publications
    heard[published.topic] = heard[delivered.topic] = True
    asked, begun = changes.topic, changes.action > 0
    members = Members(log.clients, shared, _subscribed(changes, shared, log.topics, topic.names, grammar))
    changes, matched = _expand(members.joined(changes), log.topics, topic.names, heard, grammar)
    silent, subscriptions = np.unique(asked[begun & ~matched], return_counts=True)
    delivered, absences = members.receiving(delivered, published, changes), members.away(absences)
    user = Numbering(
        [*log.clients, *members.names],
        *(control.client[kept], changes.client, published.client, delivered.client, delivered.publisher),
    )
    ends = np.append(seconds(control.micros), horizon)  # the last entry is for -1, sessions that stay open
    columns = seconds(published.micros), published.topic, user(published.client), published.size
    publications = Publications(*columns, np.maximum(published.retain, 0), published.qos)
    workload = Workload(
        kind="events",
        horizon=horizon,
        topics=Topics.without_places(
            strings(topic.names), "topic", publications.per_topic(len(topic.names)) / (horizon / DAY)
        ),
        users=Users.without_places(strings(user.names)),
        interests=Interests(np.zeros(len(user.names) + 1, np.int64), np.empty(0, np.int32)),
        subscription_events=SubscriptionEvents(
            seconds(changes.micros), user(changes.client), changes.topic, changes.action
        ),
        publications=publications,
        sessions=Sessions(user(control.client[sessions.began]), ends[sessions.began], ends[sessions.ended]),
        deliveries=Deliveries(
            seconds(delivered.micros), delivered.topic, user(delivered.publisher), user(delivered.client)
        ),
        absences=Absences(user(absences.client), seconds(absences.start), seconds(absences.end), absences.session),
        retained_requests=RetainedRequests(
            seconds(control.micros[requests.row]), user(control.client[requests.row]), topic(requests.topic)
        ),
        shares=members.shares(user),
        qualities=Qualities(
            seconds(granted.micros), user(members.user_of(*granted.who)), topic(granted.topic), granted.qos
        ),
        origin=f"{np.datetime64(origin // SECOND, 's')}Z",
        unmatched=dict(zip([log.topics[asked] for asked in silent.tolist()], subscriptions.tolist(), strict=True)),
        **about,
    )
    return workload, unused


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


def _matched(
    wanted: NDArray[np.int32], filters: Sequence[str], topics: Sequence[str], grammar: Grammar
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The places in `wanted`, numbers of filters, each once for every topic that the filter matches, and these topics."""
    found, which = np.unique(wanted, return_inverse=True)
    matches = TopicIndex([filters[f] for f in found.tolist()], grammar).match_all(topics)
    by_filter = np.argsort(matches.subscription, kind="stable")
    matching = np.repeat(np.arange(len(topics), dtype=np.int32), np.diff(matches.indptr))[by_filter]
    every = np.bincount(matches.subscription, minlength=len(found))
    starts, lengths = (np.cumsum(every) - every)[which], every[which]
    source = np.repeat(np.arange(len(which)), lengths)
    within = np.arange(len(source)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return source, matching[starts[source] + within]


def _subscribed(
    changes: LogChanges, shared: SharedNames, filters: Sequence[str], topics: Sequence[str], grammar: Grammar
) -> Subscribed:
    """The subscriptions of all who ever are in a group."""
    rows = np.isin(changes.client, changes.client[shared.group_of[changes.topic] >= 0])
    pairs = np.unique(changes.client[rows].astype(np.int64) << 32 | changes.topic[rows])
    client, name = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
    source, topic = _matched(shared.filter_of[name], filters, topics, grammar)
    return Subscribed(client[source], topic, shared.group_of[name[source]])


def _expand(
    changes: LogChanges, filters: Sequence[str], topics: Sequence[str], heard: NDArray[np.bool_], grammar: Grammar
) -> tuple[LogChanges, NDArray[np.bool_]]:
    """Expand changes of topic filters to the topics that they match, each in force while any filter of the client matches it.

    Also returns which of the former match a topic that is `heard`.
    """
    source, topic = _matched(changes.topic, filters, topics, grammar)
    matched = np.bincount(source, heard[topic], minlength=len(changes)) > 0
    client, action = changes.client[source], changes.action[source]
    order = np.argsort(client.astype(np.int64) << 32 | topic, kind="stable")
    key = (client.astype(np.int64) << 32 | topic)[order]
    # the number of a client's filters that match a topic: a running sum per pair
    after = np.cumsum(action[order], dtype=np.int64)
    first = np.flatnonzero(np.diff(key, prepend=-1))
    after -= np.repeat(after[first] - action[order][first], np.diff(first, append=len(key)))
    counts = np.empty_like(after)
    counts[order] = after
    real = counts == (action > 0)  # the first filter that matches it, or the last
    return LogChanges(changes.micros[source[real]], client[real], topic[real], action[real]), matched
