"""Shared subscriptions in a broker's log: each message goes to one of a group of clients, so the group counts as a user of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.content.matching import Matches

_PREFIXES = {"$share/": 2, "$queue/": 1}  # and the number of slashes before the filter


def shared_filter(name: str) -> str | None:
    """The filter that a group shares by `$share/GROUP/FILTER` or `$queue/FILTER`; None where the name is none of these."""
    for prefix, slashes in _PREFIXES.items():
        if name.startswith(prefix):
            parts = name.split("/", slashes)
            return parts[-1] if len(parts) > slashes and all(parts) else None
    return None


class TopicTimes(NamedTuple):
    """When a topic was published on, or delivered to a client (-1 where that does not matter): µs, ascending."""

    micros: NDArray[np.int64]
    topic: NDArray[np.int32]
    client: NDArray[np.int32]


class OwnChanges(NamedTuple):
    """When clients began (+1) or ceased (-1) to subscribe to topics by themselves: µs, ascending."""

    micros: NDArray[np.int64]
    topic: NDArray[np.int32]
    client: NDArray[np.int32]
    action: NDArray[np.int8]


def receiving_groups(
    members: Sequence[tuple[int, int]], matches: Matches, delivered: TopicTimes, published: TopicTimes, own: OwnChanges
) -> NDArray[np.int32]:
    """The group that each delivery counts for, -1 for the client itself.

    `members` are all pairs of a client and a group that it was in at some time; `matches` are the groups that share each topic.
    A log does not say why a client received a message. Of the deliveries since the last publication on a topic, the first to a client
    that subscribes to it by itself is its own; others count for the first of its groups that has none yet.
    """
    groups = defaultdict[int, set[int]](set)
    for client, group in members:
        groups[client].add(group)
    found = np.full(len(delivered.micros), -1, np.int32)
    rows = np.flatnonzero(np.isin(delivered.client, np.fromiter(groups, np.int32, len(groups))))
    pairs = {(int(delivered.client[row]), int(delivered.topic[row])) for row in rows}
    sharing = {
        (client, topic): [
            group
            for group in matches.subscription[matches.indptr[topic] : matches.indptr[topic + 1]].tolist()
            if group in groups[client]
        ]
        for client, topic in pairs
    }
    states = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for micros, topic, client, action in zip(*(column.tolist() for column in own), strict=True):
        if (client, topic) in pairs:
            states[client, topic].append((micros, action))
    times = _times({topic for _, topic in pairs}, published)
    served = dict[tuple[bool, int, int], int]()  # how many publications there were when it was last served
    for row in rows.tolist():
        micros, topic, client = int(delivered.micros[row]), int(delivered.topic[row]), int(delivered.client[row])
        mine = [action for time, action in states[client, topic] if time <= micros][-1:] == [1]
        options = [(False, client)] * mine + [(True, group) for group in sharing[client, topic]]
        count = int(np.searchsorted(times[topic], micros, side="right"))
        free = (option for option in options if served.get((*option, topic)) != count)
        if options:
            shared, who = next(free, options[-1])
            served[shared, who, topic] = count
            found[row] = who if shared else -1
    return found


def _times(topics: set[int], published: TopicTimes) -> dict[int, NDArray[np.int64]]:
    """When each of these topics was published on."""
    order = np.argsort(published.topic, kind="stable")
    ordered, micros = published.topic[order], published.micros[order]
    return {
        topic: micros[np.searchsorted(ordered, topic) : np.searchsorted(ordered, topic, side="right")]
        for topic in topics
    }
