"""Compiled kernels over routing tables and topic trees. Slow twins: tests/oracles/chord.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.base.compiled import kernel
from sim.base.sparse_kernels import change_at, count_at, has_space


@kernel
def chord_next_hops(fingers: NDArray[np.int32], target: int) -> NDArray[np.int32]:
    """The next hop (n) of every node of a ring on its route to the target; the target itself for the target.

    `fingers` (n, m): for node u, its fingers as places clockwise, ascending, padded with n. The hop rule is inclusive: the
    farthest finger that is not past the target, the target itself allowed.
    """
    n, m = fingers.shape
    hops = np.empty(n, np.int32)
    for u in range(n):
        ahead, finger = (target - u) % n, 0
        while finger + 1 < m and fingers[u, finger + 1] <= ahead:
            finger += 1
        hops[u] = (u + fingers[u, finger]) % n if ahead else u
    return hops


@kernel
def chord_last_hops(fingers: NDArray[np.int32], source: int) -> NDArray[np.int32]:
    """The node before each node (n) on the route to it from the source; -1 for the source itself.

    A node forwards to a finger what is for the nodes from that finger up to the next, or up to the end of its own range.
    """
    n, m = fingers.shape
    hops = np.full(n, -1, np.int32)
    nodes, spans = np.empty(n, np.int64), np.empty(n, np.int64)
    nodes[0], spans[0], waiting = source, n - 1, 1
    while waiting:
        waiting -= 1
        u, span = nodes[waiting], spans[waiting]
        for finger in range(m):
            first = fingers[u, finger]
            if first > span:
                break
            last = min(fingers[u, finger + 1] - 1, span) if finger + 1 < m else span
            child = (u + first) % n
            hops[child] = u
            nodes[waiting], spans[waiting] = child, last - first
            waiting += 1
    return hops


@kernel
def route_lengths(last_hops: NDArray[np.int32]) -> NDArray[np.int32]:
    """The hops of the routes from one node to all (n)."""
    lengths = np.empty(last_hops.size, np.int32)
    for node in range(last_hops.size):
        lengths[node] = backward_length(last_hops, node)
    return lengths


@kernel
def forward_length(next_hops: NDArray[np.int32], node: int) -> int:
    """The hops of the route from a node to the common target."""
    length = 0
    while next_hops[node] != node:
        node = next_hops[node]
        length += 1
    return length


@kernel
def backward_length(last_hops: NDArray[np.int32], node: int) -> int:
    """The hops of the route to a node from the common source."""
    length = -1
    while node >= 0:
        node = last_hops[node]
        length += 1
    return length


@kernel
def forward_route(next_hops: NDArray[np.int32], source: int) -> NDArray[np.int32]:
    """The nodes of the route from the source to the common target, both included."""
    route = np.empty(1 + forward_length(next_hops, source), np.int32)
    route[0] = source
    for i in range(1, route.size):
        route[i] = next_hops[route[i - 1]]
    return route


@kernel
def backward_route(last_hops: NDArray[np.int32], target: int) -> NDArray[np.int32]:
    """The nodes of the route to the target from the common source, both included."""
    route = np.empty(1 + backward_length(last_hops, target), np.int32)
    for i in range(route.size - 1, -1, -1):
        route[i] = target
        target = last_hops[target]
    return route


SELF, BELOW = 1, 2
"""What a member adds to the count of its node, and to those of all nodes from there up to the root."""
LACKS_SPACE, REFUSED = -1, -2


@kernel
def shift_members(members: Items, topic: int, parent: NDArray[np.int32], node: int, change: int) -> int:
    """Let a node join (+1) or leave (-1); returns 1 where the tree gained or lost a node, LACKS_SPACE or REFUSED if it cannot be done.

    Nodes that have joined already cannot join, those that have not cannot leave.
    """
    table, changed, difference = members[0], 0, (SELF + BELOW) * change
    if not (0 <= topic < table.rows and 0 <= node < table.columns):
        return REFUSED
    if (count_at(table, topic, node) & SELF != 0) != (change < 0):
        return REFUSED
    if not has_space(table):
        return LACKS_SPACE
    while node >= 0:
        before = change_at(table, topic, node, difference)
        changed |= int((before == 0) != (before + difference == 0))
        node, difference = parent[node], BELOW * change
    return changed


@kernel
def count_members(joined: NDArray[np.bool_], parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """What members add to the count of each node (n) of a tree; `parent[v]` is the node before v, -1 for the root."""
    counts = np.zeros(joined.size, np.int32)
    for member in range(joined.size):
        if joined[member]:
            counts[member] += SELF
            node = member
            while node >= 0:
                counts[node] += BELOW
                node = parent[node]
    return counts


@kernel
def edges_not_in(
    before: NDArray[np.int32], former: NDArray[np.int32], counts: NDArray[np.int32], parent: NDArray[np.int32]
) -> int:
    """The number of edges of a tree that a former one has not; each is over the nodes with counts above 0, by their parents."""
    new = 0
    for node in range(counts.size):
        if counts[node] > 0 and parent[node] >= 0 and not (before[node] > 0 and former[node] == parent[node]):
            new += 1
    return new


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

    The links of node v lead to `neighbours[first[v]:first[v + 1]]`, ascending. A root that does not want the topic has `entry` as
    its only child.
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
