"""Links that take the place of cut ones in a topic-connected overlay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sim.overlay.cuts import Cuts
from sim.overlay.topic_connected.measure_kernels import is_in_one_part
from sim.overlay.topic_connected.measures import adjacency


def links_beside_cuts(links: NDArray[np.int32], topics: Iterable[NDArray[np.bool_]], cuts: Cuts) -> NDArray[np.int32]:
    """The links (m, 2) without cut ones, and with others that connect the members (n) of each of the topics.

    Topic by topic: the lowest pair of members that are not connected yet and whose link is not cut is linked, as long as there is one;
    then cut links that would connect others stay.
    """
    nodes = len(cuts.sides)
    cut = np.array([cuts.cut(u, v) for u, v in links.tolist()], np.bool_)
    left, spare = links[~cut].tolist(), sorted(links[cut].tolist())
    ways = adjacency(nodes, links[~cut])
    for joined in topics:
        if is_in_one_part(joined, *ways):
            continue
        members = np.flatnonzero(joined)
        part = {node: node for node in members.tolist()}
        for u, v in left:
            if u in part and v in part:
                _join(part, u, v)
        others = members[np.argwhere(np.triu(~cuts.among(members), 1))].tolist()
        new = [[u, v] for u, v in others + spare if u in part and v in part and _join(part, u, v)]
        left += new
        ways = adjacency(nodes, np.array(left, np.int32).reshape(-1, 2))
    return np.array(sorted(left), np.int32).reshape(-1, 2)


def _join(part: dict[int, int], u: int, v: int) -> bool:
    """Make one part of those of two nodes, by their representatives; False where they are one already."""
    ends = []
    for node in (u, v):
        while part[node] != node:
            part[node] = part[part[node]]
            node = part[node]
        ends.append(node)
    part[ends[0]] = ends[1]
    return ends[0] != ends[1]
