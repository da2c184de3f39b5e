"""Compiled measures of an overlay, topic by topic. Slow twins: tests/oracles/topic_connected.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.compiled import kernel


@kernel
def topic_spans(
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    first: NDArray[np.int64],
    neighbours: NDArray[np.int32],
) -> NDArray[np.int64]:
    """The diameter of each topic's own sub-overlay (topics): 0 below two subscribers, -1 where it is not connected.

    The links of node v lead to `neighbours[first[v]:first[v + 1]]`.
    """
    n, topics = first.size - 1, starts.size - 1
    spans = np.zeros(topics, np.int64)
    place = np.full(n, -1, np.int32)  # the place of each node among the topic's subscribers
    for t in range(topics):
        size = starts[t + 1] - starts[t]
        if size < 2:
            continue
        here = members[starts[t] : starts[t + 1]]
        for i in range(size):
            place[here[i]] = i
        inside = np.zeros(size + 1, np.int64)  # the topic's own links, by places
        for i in range(size):
            for e in range(first[here[i]], first[here[i] + 1]):
                inside[i + 1] += place[neighbours[e]] >= 0
        most, fewest = inside.max(), inside[1:].min()
        inside = np.cumsum(inside)
        links = np.empty(inside[size], np.int32)
        filled = 0
        for i in range(size):
            for e in range(first[here[i]], first[here[i] + 1]):
                if place[neighbours[e]] >= 0:
                    links[filled] = place[neighbours[e]]
                    filled += 1
        for i in range(size):
            place[here[i]] = -1
        if most == size - 1:  # one node is linked to all others, as in a star
            spans[t] = 1 if fewest == size - 1 else 2
            continue
        distance = np.empty(size, np.int32)
        queue = np.empty(size, np.int32)
        for source in range(size):
            distance[:] = -1
            distance[source], queue[0] = 0, source
            end = 1
            for at in range(size):
                if at == end:
                    break
                for e in range(inside[queue[at]], inside[queue[at] + 1]):
                    if distance[links[e]] < 0:
                        distance[links[e]] = distance[queue[at]] + 1
                        queue[end] = links[e]
                        end += 1
            if end < size:
                spans[t] = -1
                break
            spans[t] = max(spans[t], distance[queue[end - 1]])
    return spans


@kernel
def histogram(values: Integers, size: int) -> NDArray[np.int64]:
    """How often each value from 0 to `size` - 1 occurs."""
    counts = np.zeros(size, np.int64)
    for value in values:
        counts[value] += 1
    return counts


@kernel
def is_in_one_part(wants: NDArray[np.bool_], first: NDArray[np.int64], neighbours: NDArray[np.int32]) -> bool:
    """Whether those nodes that want a topic (nodes) are connected among themselves."""
    size = int(wants.sum())
    return size < 2 or _reach(wants.copy(), int(wants.argmax()), size, np.empty(size, np.int32), first, neighbours)


@kernel
def are_connected(
    starts: NDArray[np.int64], members: NDArray[np.int32], first: NDArray[np.int64], neighbours: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether each topic's subscribers (topics) are connected among themselves."""
    nodes, topics = first.size - 1, starts.size - 1
    connected, left, queue = np.ones(topics, np.bool_), np.zeros(nodes, np.bool_), np.empty(nodes, np.int32)
    for t in range(topics):
        here = members[starts[t] : starts[t + 1]]
        if here.size > 1:
            for node in here:
                left[node] = True
            connected[t] = _reach(left, here[0], here.size, queue, first, neighbours)
            for node in here:
                left[node] = False
    return connected


@kernel
def _reach(
    left: NDArray[np.bool_],
    start: int,
    size: int,
    queue: NDArray[np.int32],
    first: NDArray[np.int64],
    neighbours: NDArray[np.int32],
) -> bool:
    """Whether all `size` nodes marked `left` are reached from one of them over others; those reached are unmarked."""
    left[start], queue[0] = False, start
    at, end = 0, 1
    while at < end < size:
        for e in range(first[queue[at]], first[queue[at] + 1]):
            node = neighbours[e]
            if left[node]:
                left[node], queue[end] = False, node
                end += 1
        at += 1
    return bool(end == size)
