"""Event workloads: a broker's log as sessions, subscriptions, publications and recorded deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# Any: further fields of the workload, by name.
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.naming import name_key
from sim.content.topic_filters import GRAMMARS, TopicIndex, has_wildcard
from sim.content.topic_kernels import Grammar
from sim.files.parquet import strings
from sim.workloads.format.workload import (
    DAY,
    Absences,
    Deliveries,
    Interests,
    Publications,
    RetainedRequests,
    Sessions,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)
from sim.workloads.models.event_kernels import SUBSCRIBE
from sim.workloads.models.log_sessions import LogChanges, follow, retained_before, retained_requests
from sim.workloads.models.log_tables import SECOND, Control, Delivered, EventLog, EventPublications
from sim.workloads.models.shared_subscriptions import OwnChanges, TopicTimes, receiving_groups, shared_filter


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
    (`GRAMMARS`), is one to every topic that it matches. A shared subscription is a user of its name, which subscribes while any client
    does that shares it, and has the deliveries to them. `about` are further fields of the workload.
    """
    log, shares = _shares_of(log)
    grammar = GRAMMARS[filters]
    control, published = log.control, log.published
    effect, sessions, changes, absences = follow(control, len(log.clients), persistent, queues_qos_0)
    requests = retained_requests(control, published, shares.group_of >= 0, log.topics, grammar)
    effect[requests.row] = True
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
    wanted = shares.filter_of[control.topic[kept]]
    topic = Numbering(log.topics, wanted[~wild[wanted]], published.topic, delivered.topic)
    published = replace(published, topic=topic(published.topic))
    delivered = replace(delivered, topic=topic(delivered.topic))
    heard = np.zeros(len(topic.names), np.bool_)  # topics with publications
    heard[published.topic] = heard[delivered.topic] = True
    asked, begun = changes.topic, changes.action > 0
    changes, matched = _expand(shares.joined(changes), log.topics, topic.names, heard, grammar)
    silent, subscriptions = np.unique(asked[begun & ~matched], return_counts=True)
    if shares.names:
        delivered = shares.divide(delivered, published, control.rows(kept), changes, topic.names, grammar)
    user = Numbering(
        [*log.clients, *shares.names],
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


@dataclass(frozen=True)
class _Shares:
    """The shared subscriptions of a log, by their `names`, each a user with a number after those of the `clients`.

    `group_of` (topics) is the position in `names`, -1 for other names of topics; `filter_of` the number of the filter that is shared,
    or of the topic itself. Both have a last entry for -1.
    """

    clients: int
    names: Sequence[str]
    group_of: NDArray[np.int32]
    filter_of: NDArray[np.int32]

    def joined(self, changes: LogChanges) -> LogChanges:
        """Changes in which shared subscriptions are those of their users."""
        group = self.group_of[changes.topic]
        client = np.where(group < 0, changes.client, self.clients + group).astype(np.int32)
        return replace(changes, client=client, topic=self.filter_of[changes.topic])

    def divide(
        self,
        delivered: Delivered,
        published: EventPublications,
        control: Control,
        own: LogChanges,
        topics: Sequence[str],
        grammar: Grammar,
    ) -> Delivered:
        """Deliveries of which those to members of groups are to the groups' users (`receiving_groups`)."""
        groups = self.group_of[control.topic]
        sharing = (control.action == SUBSCRIBE) & (groups >= 0)
        members = set(zip(control.client[sharing].tolist(), groups[sharing].tolist(), strict=True))
        shared = [shared_filter(name) or "" for name in self.names]
        group = receiving_groups(
            sorted(members),
            TopicIndex(shared, grammar).match_all(topics),
            TopicTimes(delivered.micros, delivered.topic, delivered.client),
            TopicTimes(published.micros, published.topic, published.client),
            OwnChanges(own.micros, own.topic, own.client, own.action),
        )
        client = np.where(group < 0, delivered.client, self.clients + group).astype(np.int32)
        return replace(delivered, client=client)


def _shares_of(log: EventLog) -> tuple[EventLog, _Shares]:
    """The shared subscriptions of a log, whose topics then include the filters that are shared."""
    asked = np.unique(log.control.topic[log.control.topic >= 0]).tolist()
    shared = {number: filter_ for number in asked if (filter_ := shared_filter(log.topics[number])) is not None}
    more = set(shared.values()).difference(log.topics)
    if more:
        names = sorted([*log.topics, *more], key=name_key)
        number = {name: position for position, name in enumerate(names)}
        moved = np.array([*(number[name] for name in log.topics), -1], np.int32)
        shared = {int(moved[old]): filter_ for old, filter_ in shared.items()}
        log = EventLog(
            log.clients,
            names,
            replace(log.control, topic=moved[log.control.topic]),
            replace(log.published, topic=moved[log.published.topic]),
            replace(log.delivered, topic=moved[log.delivered.topic]),
        )
    group_of, filter_of = np.full(len(log.topics) + 1, -1, np.int32), np.arange(len(log.topics) + 1, dtype=np.int32)
    filter_of[-1] = -1
    position = {name: number for number, name in enumerate(log.topics)} if shared else {}
    for group, (name, filter_) in enumerate(sorted(shared.items())):
        group_of[name], filter_of[name] = group, position[filter_]
    return log, _Shares(len(log.clients), [log.topics[name] for name in sorted(shared)], group_of, filter_of)


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


def _expand(
    changes: LogChanges, filters: Sequence[str], topics: Sequence[str], heard: NDArray[np.bool_], grammar: Grammar
) -> tuple[LogChanges, NDArray[np.bool_]]:
    """Expand changes of topic filters to the topics that they match, each in force while any filter of the client matches it.

    Also returns which of the former match a topic that is `heard`.
    """
    found, which = np.unique(changes.topic, return_inverse=True)
    matches = TopicIndex([filters[f] for f in found.tolist()], grammar).match_all(topics)
    by_filter = np.argsort(matches.subscription, kind="stable")
    matching = np.repeat(np.arange(len(topics), dtype=np.int32), np.diff(matches.indptr))[by_filter]
    lengths = np.bincount(matches.subscription, minlength=len(found))
    starts = np.cumsum(lengths) - lengths
    matched = np.bincount(matches.subscription[by_filter], heard[matching], minlength=len(found))[which] > 0
    source = np.repeat(np.arange(len(which)), lengths[which])
    within = np.arange(len(source)) - np.repeat(np.cumsum(lengths[which]) - lengths[which], lengths[which])
    topic = matching[starts[which[source]] + within]
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
