"""Compiled kernels over routing tables and topic trees. Slow twins: tests/oracles/chord.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def chord_tables(
    fingers: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Next hop, last hop and hop count of every route on a ring.

    `fingers` (n, m): for node u, how many places clockwise each finger stands, ascending, then 0 (itself). Returns three (n, n) arrays:
    `next_hop[u, v]`, `parent[u, v]` (the node before v on the route from u; -1 for v = u) and `hops[u, v]`. The hop rule is
    inclusive: the farthest finger that is not past the target, the target itself allowed.
    """
    n, m = fingers.shape
    next_hop = np.empty((n, n), np.int32)
    parent = np.full((n, n), -1, np.int32)
    hops = np.zeros((n, n), np.int32)
    for u in range(n):
        next_hop[u, u] = u
        farthest, finger = 1, 0
        for ahead in range(1, n):
            while finger < m and fingers[u, finger] <= ahead:
                if fingers[u, finger] > farthest:
                    farthest = fingers[u, finger]
                finger += 1
            next_hop[u, (u + ahead) % n] = (u + farthest) % n
    for ahead in range(1, n):  # the next hop stands nearer to the target: its row entry is there already
        for u in range(n):
            v = (u + ahead) % n
            step = next_hop[u, v]
            hops[u, v] = hops[step, v] + 1
            parent[u, v] = u if step == v else parent[step, v]
    return next_hop, parent, hops


@kernel
def route_length(next_hop: NDArray[np.int32], source: int, target: int) -> int:
    """The hops of the route from source to target."""
    length = 0
    while source != target:
        source = next_hop[source, target]
        length += 1
    return length


@kernel
def round_trip_length(next_hop: NDArray[np.int32], here: int, there: int) -> int:
    """The hops of the routes there and back."""
    return route_length(next_hop, here, there) + route_length(next_hop, there, here)


@kernel
def forward_route(next_hop: NDArray[np.int32], source: int, target: int) -> NDArray[np.int32]:
    """The nodes of the route from source to target, both included."""
    route = np.empty(1 + route_length(next_hop, source, target), np.int32)
    route[0] = source
    for i in range(1, route.size):
        route[i] = next_hop[route[i - 1], target]
    return route


@kernel
def shift_counts(counts: NDArray[np.int32], parent: NDArray[np.int32], node: int, change: int) -> bool:
    """Add `change` to the subscribers at or below each node from `node` up to the root; True where a node came or went."""
    changed = False
    while node >= 0:
        before = counts[node]
        counts[node] = before + change
        changed |= (before == 0) != (before + change == 0)
        node = parent[node]
    return changed


@kernel
def mark_routes(joined: NDArray[np.bool_], parent: NDArray[np.int32], root: int) -> NDArray[np.int32]:
    """1 for all nodes on the routes from the root to those that have joined, 0 elsewhere; `parent[v]` is the node before v."""
    marks = np.zeros(joined.size, np.int32)
    for v in range(joined.size):
        if joined[v]:
            marks[root] = 1
            node = v
            while marks[node] == 0:
                marks[node] = 1
                node = parent[node]
    return marks


@kernel
def compact_tree(
    counts: NDArray[np.int32], parent: NDArray[np.int32], root: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Arrays of a TopicTree (nodes, parents, first_child, depth): all nodes with counts above 0, breadth first, siblings ascending."""
    n = counts.size
    start = np.zeros(n + 1, np.int32)
    size = 0
    for v in range(n):
        if counts[v] > 0:
            size += 1
            if v != root:
                start[parent[v] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    children = np.empty(max(size - 1, 0), np.int32)
    filled = start[:n].copy()
    for v in range(n):
        if counts[v] > 0 and v != root:
            children[filled[parent[v]]] = v
            filled[parent[v]] += 1
    nodes = np.empty(size, np.int32)
    parents = np.empty(size, np.int32)
    depth = np.empty(size, np.int32)
    first_child = np.zeros(size + 1, np.int32)
    if size == 0:
        return nodes, parents, first_child, depth
    nodes[0], parents[0], depth[0] = root, -1, 0
    end = 1
    for i in range(size):
        first_child[i] = end
        for c in range(start[nodes[i]], start[nodes[i] + 1]):
            nodes[end], parents[end], depth[end] = children[c], i, depth[i] + 1
            end += 1
    first_child[size] = end
    return nodes, parents, first_child, depth


@kernel
def breadth_first_tree(
    root: int,
    entry: int,
    wants: NDArray[np.bool_],
    first: NDArray[np.int64],
    neighbours: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Arrays of a TopicTree (nodes, parents, first_child, depth) over the nodes that want the topic (n) and can be reached.

    The links of node v lead to `neighbours[first[v]:first[v + 1]]`, ascending. A root that does not want the topic itself
    stands above `entry` alone.
    """
    size = wants.sum() + (not wants[root])
    nodes = np.empty(size, np.int32)
    parents = np.empty(size, np.int32)
    depth = np.empty(size, np.int32)
    first_child = np.empty(size + 1, np.int32)
    seen = np.zeros(wants.size, np.bool_)
    nodes[0], parents[0], depth[0] = root, -1, 0
    seen[root] = True
    i, end = 0, 1
    while i < end:
        first_child[i] = end
        here = nodes[i]
        i += 1
        if not wants[here]:
            nodes[end], parents[end], depth[end] = entry, 0, 1
            seen[entry] = True
            end += 1
            continue
        for e in range(first[here], first[here + 1]):
            v = neighbours[e]
            if wants[v] and not seen[v]:
                nodes[end], parents[end], depth[end] = v, i - 1, depth[i - 1] + 1
                seen[v] = True
                end += 1
    first_child[end] = end
    return nodes[:end], parents[:end], first_child[: end + 1], depth[:end]
