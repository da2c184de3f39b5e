"""Compiled kernels of the SSBR cost and of its change by a swap of two brokers. Slow twin: tests/oracles/ssbr.py."""

from __future__ import annotations

# Any: Numba infers the type of arrays that are made in a kernel.
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


class CostState(NamedTuple):
    """A problem and the present nodes of its n brokers; `flows` and the last five arrays change with every swap.

    All numbers are int64 or all are float64: `publications` (t), `delay_weight`, `round_trips` (n, n), `flows` and `totals`.
    `parent` and `hops` (n, n), `roots` (t) and `wanted` (t, n) are those of the problem. Broker b subscribes to
    `topics[first_topic[b]:first_topic[b + 1]]`, ascending. `round_trips` and its transpose `trips_back` are (0, 0) where a hop is a
    unit of delay; else node v has links with `links[first_link[v]:first_link[v + 1]]`, ascending, over which `flows` (2, links)
    notifications are sent from it and to it. `broker_at` (n) is the inverse of `node_of` (n). `counts` (t, n): subscribers at or
    below each node of the topic's tree, whose nodes are those with more than 0. `totals`: external overhead and delay, weighted by
    publications. `scratch` (t): working memory for topics.
    """

    parent: NDArray[np.int32]
    hops: NDArray[np.int32]
    roots: NDArray[np.int32]
    wanted: NDArray[np.bool_]
    publications: Numbers
    first_topic: NDArray[np.int64]
    topics: NDArray[np.int32]
    delay_weight: int | float
    count_rendezvous: bool
    round_trips: Numbers
    trips_back: Numbers
    first_link: NDArray[np.int64]
    links: NDArray[np.int32]
    flows: Numbers
    node_of: NDArray[np.int32]
    broker_at: NDArray[np.int32]
    counts: NDArray[np.int32]
    totals: Numbers
    scratch: NDArray[np.int32]


@kernel
def _link(state: CostState, node: int, other: int) -> int:
    """The index of the link of `node` with `other`."""
    low, high = state.first_link[node], state.first_link[node + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if state.links[middle] < other:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def _shift(state: CostState, topic: int, node: int, change: int) -> None:
    """Add `change` to the number of subscribers of the topic at the node."""
    root = state.roots[topic]
    while node != root:
        state.counts[topic, node] += change
        above = state.parent[root, node]
        if state.round_trips.size:
            state.flows[0, _link(state, above, node)] += change * state.publications[topic]
            state.flows[1, _link(state, node, above)] += change * state.publications[topic]
        node = above
    state.counts[topic, root] += change


@kernel
def _path_delay(state: CostState, topic: int, node: int) -> float:
    """The delay from the topic's root to the node."""
    root = state.roots[topic]
    delay = state.delay_weight * 0
    if state.round_trips.size:
        while node != root:
            above = state.parent[root, node]
            delay += state.round_trips[state.broker_at[above], state.broker_at[node]]
            node = above
    else:
        delay += state.hops[root, node]
    return delay


@kernel
def place(state: CostState) -> None:
    """Recompute counts, flows and totals from the brokers' nodes."""
    state.counts[:] = 0
    state.flows[:] = 0
    state.totals[:] = 0
    for broker in range(state.node_of.size):
        for i in range(state.first_topic[broker], state.first_topic[broker + 1]):
            _shift(state, state.topics[i], state.node_of[broker], 1)
    overhead, delay = broker_overheads(state)
    state.totals[0], state.totals[1] = overhead.sum(), delay.sum()


@kernel
def broker_overheads(state: CostState) -> tuple[Numbers, Numbers]:
    """The overhead and the delay of each broker, weighted by publications (DYNATOPS, eq. 7 and 8): two arrays (n)."""
    overhead: Any = np.zeros(state.node_of.size, state.totals.dtype)
    delay: Any = np.zeros(state.node_of.size, state.totals.dtype)
    for topic in range(state.roots.size):
        for node in range(state.node_of.size):
            if state.counts[topic, node] > 0:
                broker = state.broker_at[node]
                if state.wanted[topic, broker]:
                    delay[broker] += state.publications[topic] * _path_delay(state, topic, node)
                elif node != state.roots[topic] or state.count_rendezvous:
                    overhead[broker] += state.publications[topic]
    return overhead, delay


@kernel
def broker_costs(state: CostState) -> Numbers:
    """The cost of each broker (n): its overhead and its weighted delay, which add up to the cost (DYNATOPS, eq. 7 to 9)."""
    costs, delay = broker_overheads(state)
    for broker in range(costs.size):
        costs[broker] += state.delay_weight * delay[broker]
    return costs


@kernel
def _differing(state: CostState, first: int, second: int) -> int:
    """Write the topics that only one of two brokers wants to `scratch`, as t for the first, ~t for the second; returns how many."""
    i, stop = state.first_topic[first], state.first_topic[first + 1]
    j, end = state.first_topic[second], state.first_topic[second + 1]
    found = 0
    while i < stop or j < end:
        if j == end or (i < stop and state.topics[i] < state.topics[j]):
            state.scratch[found] = state.topics[i]
            found += 1
            i += 1
        elif i == stop or state.topics[j] < state.topics[i]:
            state.scratch[found] = ~state.topics[j]
            found += 1
            j += 1
        else:
            i += 1
            j += 1
    return found


@kernel
def _overhead_change(state: CostState, topic: int, leaving: int, coming: int) -> int:
    """The change in relays of the topic when a subscriber at node `leaving` moves to node `coming`, where there was none."""
    root = state.roots[topic]
    more = 0
    kept = leaving
    while kept != root and state.counts[topic, kept] == 1:
        kept = state.parent[root, kept]
        more -= 1
    node = coming
    while node != root and state.counts[topic, node] == 0:
        node = state.parent[root, node]
        more += 1
    if node != root and state.counts[topic, node] == 1:
        met = leaving
        while met != kept and met != node:
            met = state.parent[root, met]
        while met != kept:  # nodes that would have left the tree are needed again
            met = state.parent[root, met]
            more += 1
    if state.count_rendezvous:
        return more
    return more + int(coming == root) - int(leaving == root)


@kernel
def _repricing(state: CostState, first: int, second: int) -> int | float:
    """The change in delay of notifications on the links of two nodes when their brokers swap, with unchanged flows."""
    at, to = state.node_of[first], state.node_of[second]
    change = state.delay_weight * 0
    for node, before, after in ((at, first, second), (to, second, first)):
        for link in range(state.first_link[node], state.first_link[node + 1]):
            end = state.links[link]
            old = new = state.broker_at[end]
            if end == to:
                new = first
            elif end == at:
                continue  # the link between the two, from its other end
            change += state.flows[0, link] * (state.round_trips[after, new] - state.round_trips[before, old])
            change += state.flows[1, link] * (state.trips_back[after, new] - state.trips_back[before, old])
    return change


@kernel
def swap_change(state: CostState, first: int, second: int) -> tuple[int | float, int | float]:
    """The changes in external overhead and delay, weighted by publications, if two brokers swap nodes.

    It takes a few steps for each topic that only one of the two wants; if delay is not in hops, also one for each link of their
    nodes.
    """
    at, to = state.node_of[first], state.node_of[second]
    overhead = delay = state.delay_weight * 0
    if state.round_trips.size:
        delay += _repricing(state, first, second)
    state.broker_at[at], state.broker_at[to] = second, first
    for i in range(_differing(state, first, second)):
        topic = state.scratch[i]
        leaving, coming = (at, to) if topic >= 0 else (to, at)
        topic = max(topic, ~topic)
        overhead += state.publications[topic] * _overhead_change(state, topic, leaving, coming)
        delay += state.publications[topic] * (_path_delay(state, topic, coming) - _path_delay(state, topic, leaving))
    state.broker_at[at], state.broker_at[to] = first, second
    return overhead, delay


@kernel
def swap(state: CostState, first: int, second: int, change: tuple[int | float, int | float]) -> None:
    """Swap two brokers; `change` is the result of `swap_change` for them."""
    at, to = state.node_of[first], state.node_of[second]
    for i in range(_differing(state, first, second)):
        topic = state.scratch[i]
        leaving, coming = (at, to) if topic >= 0 else (to, at)
        topic = max(topic, ~topic)
        _shift(state, topic, leaving, -1)
        _shift(state, topic, coming, 1)
    state.node_of[first], state.node_of[second] = to, at
    state.broker_at[at], state.broker_at[to] = second, first
    state.totals[0] += change[0]
    state.totals[1] += change[1]


@kernel
def best_partner(state: CostState, broker: int, tolerance: float) -> int:
    """The partner whose swap with the broker lowers the cost most, by more than `tolerance`; the lowest on ties, -1 for none."""
    best = -1
    least = -tolerance
    for partner in range(state.node_of.size):
        if partner != broker:
            overhead, delay = swap_change(state, broker, partner)
            change = overhead + state.delay_weight * delay
            if change < (least if best < 0 else least - tolerance):
                best, least = partner, change
    return best
