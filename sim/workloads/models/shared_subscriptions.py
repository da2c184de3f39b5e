"""Shared subscriptions in a broker's log: who shares what with whom, and to what each delivery belongs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.csr import row_starts
from sim.base.naming import name_key
from sim.workloads.format.workload import Shares
from sim.workloads.models.log_sessions import LogAbsences, LogChanges
from sim.workloads.models.log_tables import Delivered, EventLog, EventPublications

_PREFIXES = {"$share/": 2, "$queue/": 1}  # and the number of slashes before the filter
IN_GROUP = " in "
"""What is between the client and the group in the name of a member that is apart."""


def shared_filter(name: str) -> str | None:
    """The filter that a group shares by `$share/GROUP/FILTER` or `$queue/FILTER`; None where the name is none of these."""
    for prefix, slashes in _PREFIXES.items():
        if name.startswith(prefix):
            parts = name.split("/", slashes)
            return parts[-1] if len(parts) > slashes and all(parts) else None
    return None


def group_name(name: str, by_queue: bool) -> str:
    """The name of the group that shares by a name of which `shared_filter` is not None, see `with_shared_filters`."""
    return name.removesuffix(f"/{shared_filter(name)}") if by_queue else name


def is_member_apart(user: str) -> bool:
    """Whether a user is a membership of a client, by its name (see `Members`)."""
    return any(f"{IN_GROUP}{prefix}" in user for prefix in _PREFIXES)


class SharedNames(NamedTuple):
    """The names of shared subscriptions among those of a log's topics.

    `groups` are the names of groups, `group_of` (topics) is the number of that which shares by a name, -1 for other names;
    `filter_of` the number of the filter that is shared, or of the topic itself. Both have a last entry for -1.
    """

    groups: Sequence[str]
    group_of: NDArray[np.int32]
    filter_of: NDArray[np.int32]


def with_shared_filters(log: EventLog, by_queue: bool) -> tuple[EventLog, SharedNames]:
    """The log, whose topics include the filters that are shared, and who shares them.

    A group is a shared subscription, or, if `by_queue`, all of one name (NATS, where overlapping subscriptions of a queue group
    get a message once).
    """
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
    groups = dict[str, int]()
    for name, filter_ in sorted(shared.items()):
        text = log.topics[name]
        group = group_name(text, by_queue)
        group_of[name], filter_of[name] = groups.setdefault(group, len(groups)), position[filter_]
    return log, SharedNames(list(groups), group_of, filter_of)


class Subscribed(NamedTuple):
    """All pairs of a client and a topic to which it subscribes at some time, and the group by which it does (-1: by itself)."""

    client: NDArray[np.int32]
    topic: NDArray[np.int32]
    group: NDArray[np.int32]


class Members:
    """The users who subscribe: clients, and the members that are apart.

    A client that subscribes to a topic both by itself and in a group, or in two groups, gets its messages once for each. So of the
    clients' memberships, those that meet another way to a topic are users of their own, with numbers after those of the clients.
    """

    def __init__(self, clients: Sequence[str], names: SharedNames, subscribed: Subscribed) -> None:
        self._clients, self._names, self._subscribed = len(clients), names, subscribed
        client, topic, group = subscribed
        order = np.lexsort((group, topic, client))
        pair = client[order].astype(np.int64) << 32 | topic[order]
        first = np.flatnonzero(np.diff(pair, prepend=-1))
        least = np.repeat(group[order][first], np.diff(first, append=len(pair)))
        meets = order[group[order] != least]
        self._apart = np.unique(client[meets].astype(np.int64) << 32 | group[meets])
        self.names = [f"{clients[key >> 32]}{IN_GROUP}{names.groups[key & 0xFFFFFFFF]}" for key in self._apart.tolist()]

    def user_of(self, client: NDArray[np.int32], group: NDArray[np.int32]) -> NDArray[np.int32]:
        """The users that clients are in groups (-1: by themselves)."""
        if not len(self._apart):
            return client
        key = client.astype(np.int64) << 32 | group
        place = np.minimum(np.searchsorted(self._apart, key), len(self._apart) - 1)
        return np.where(self._apart[place] == key, self._clients + place, client).astype(np.int32)

    def joined(self, changes: LogChanges) -> LogChanges:
        """Changes of users' subscriptions to what is shared."""
        group, topic = self._names.group_of[changes.topic], self._names.filter_of[changes.topic]
        return replace(changes, client=self.user_of(changes.client, group), topic=topic)

    def away(self, absences: LogAbsences) -> LogAbsences:
        """Absences of clients, and of the members that are apart with them."""
        owner = (self._apart >> 32).astype(np.int32)
        lengths = 1 + np.searchsorted(owner, absences.client, "right") - np.searchsorted(owner, absences.client)
        source = np.repeat(np.arange(len(lengths)), lengths)
        within = np.arange(len(source)) - np.repeat(row_starts(lengths)[:-1], lengths)
        found = absences.rows(source)
        twin = self._clients + np.searchsorted(owner, found.client) + within - 1
        return replace(found, client=np.where(within > 0, twin, found.client).astype(np.int32))

    def shares(self, subscribed: Subscribed, number: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> Shares:
        """Who shares which of these topics; `number` gives the new numbers of users."""
        client, topic, group = (column[subscribed.group >= 0] for column in subscribed)
        key, first = np.unique(topic.astype(np.int64) << 32 | number(self.user_of(client, group)), return_index=True)
        return Shares((key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32), group[first])

    def receiving(self, delivered: Delivered, published: EventPublications, own: LogChanges) -> Delivered:
        """Deliveries to the users who got them."""
        if not len(self._apart):
            return delivered
        group = receiving_groups(self._subscribed, delivered, published, own)
        return replace(delivered, client=self.user_of(delivered.client, group))


def receiving_groups(
    subscribed: Subscribed, delivered: Delivered, published: EventPublications, changes: LogChanges
) -> NDArray[np.int32]:
    """The group that each delivery counts for, -1 for the client itself.

    A log does not say why a client received a message. Of the deliveries since the last publication on a topic, the first to a client
    that subscribes to it by itself is its own, by the `changes` of users; others count for the first of its groups that has none yet.
    """
    ways = defaultdict[tuple[int, int], set[int]](set)
    for client, topic, group in zip(*(column.tolist() for column in subscribed), strict=True):
        ways[client, topic].add(group)
    states = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for micros, client, topic, action, _ in zip(*(column.tolist() for column in changes.columns.values()), strict=True):
        if -1 in ways.get((client, topic), ()):
            states[client, topic].append((micros, action))
    times = _times({topic for _, topic in ways}, published)
    served = dict[tuple[bool, int, int], int]()  # how many publications there were when it was last served
    found = np.full(len(delivered), -1, np.int32)
    for row in np.flatnonzero(np.isin(delivered.client, subscribed.client)).tolist():
        micros, topic, client = int(delivered.micros[row]), int(delivered.topic[row]), int(delivered.client[row])
        mine = [action for time, action in states[client, topic] if time <= micros][-1:] == [1]
        options = [(False, client)] * mine + [
            (True, group) for group in sorted(ways.get((client, topic), ())) if group >= 0
        ]
        if options:
            count = int(np.searchsorted(times.get(topic, ()), micros, side="right"))
            free = (option for option in options if served.get((*option, topic)) != count)
            in_group, who = next(free, options[-1])
            served[in_group, who, topic] = count
            found[row] = who if in_group else -1
    return found


def _times(topics: set[int], published: EventPublications) -> dict[int, NDArray[np.int64]]:
    """When each of these topics was published on."""
    order = np.argsort(published.topic, kind="stable")
    ordered, micros = published.topic[order], published.micros[order]
    return {
        topic: micros[np.searchsorted(ordered, topic) : np.searchsorted(ordered, topic, side="right")]
        for topic in topics
    }
