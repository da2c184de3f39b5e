"""Compiled graph searches in an overlay that changes.

The neighbours of node v are `links[v, :degree[v]]`, in no order; `links` (n, ·) has spare columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def is_connected(wants: NDArray[np.bool_], links: NDArray[np.int32], degree: NDArray[np.int64]) -> bool:
    """Whether the nodes that want a topic (n) are connected among themselves."""
    members = np.flatnonzero(wants)
    if members.size < 2:
        return True
    seen = np.zeros(wants.size, np.bool_)
    queue = np.empty(members.size, np.int32)
    queue[0] = members[0]
    seen[members[0]] = True
    end = 1
    for at in range(members.size):
        if at == end:
            return False
        for i in range(degree[queue[at]]):
            x = links[queue[at], i]
            if wants[x] and not seen[x]:
                seen[x] = True
                queue[end] = x
                end += 1
    return True


@kernel
def links_among(
    nodes: NDArray[np.int64], place: NDArray[np.int64], links: NDArray[np.int32], degree: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The links (m, 2) between the given nodes, as places in `nodes`; `place` (n) is -1 for all others."""
    count = 0
    for v in nodes:
        for i in range(degree[v]):
            count += place[links[v, i]] > place[v]
    found = np.empty((count, 2), np.int32)
    count = 0
    for v in nodes:
        for i in range(degree[v]):
            if place[links[v, i]] > place[v]:
                found[count, 0], found[count, 1] = place[v], place[links[v, i]]
                count += 1
    return found


@kernel
def _unlink(u: int, v: int, links: NDArray[np.int32], degree: NDArray[np.int64]) -> None:
    """Remove v from the neighbours of u."""
    i = 0
    while links[u, i] != v:
        i += 1
    degree[u] -= 1
    links[u, i] = links[u, degree[u]]


@kernel
def prune(
    node: int, wanted: NDArray[np.bool_], links: NDArray[np.int32], degree: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Remove the links of a node that no topic needs, lowest neighbour first; returns the neighbours removed.

    `wanted` (topics, n). A topic needs a link if both ends want it and it would be disconnected without the link.
    """
    lost = np.empty(degree[node], np.int32)
    count = 0
    for x in np.sort(links[node, : degree[node]].copy()):
        _unlink(node, x, links, degree)
        _unlink(x, node, links, degree)
        for t in range(wanted.shape[0]):
            if wanted[t, node] and wanted[t, x] and not _reaches(node, x, wanted[t], links, degree):
                links[node, degree[node]], links[x, degree[x]] = x, node
                degree[node] += 1
                degree[x] += 1
                break
        else:
            lost[count] = x
            count += 1
    return lost[:count].copy()


@kernel
def _reaches(u: int, v: int, wants: NDArray[np.bool_], links: NDArray[np.int32], degree: NDArray[np.int64]) -> bool:
    seen = np.zeros(wants.size, np.bool_)
    queue = [u]
    seen[u] = True
    while queue:
        at = queue.pop()
        for i in range(degree[at]):
            x = links[at, i]
            if x == v:
                return True
            if wants[x] and not seen[x]:
                seen[x] = True
                queue.append(x)
    return False
