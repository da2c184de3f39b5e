"""Cut links between nodes, and trees that avoid them. Slow twin: tests/oracles/overlays.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


class Cuts(NamedTuple):
    """Cut links between nodes: all between those on different sides (n), and `links` (m): here · n + there both ways, ascending."""

    sides: NDArray[np.int64]
    links: NDArray[np.int64]

    def any(self) -> bool:
        """Whether a link is cut."""
        return bool(self.links.size or self.sides.any())

    def cut(self, here: int, there: int) -> bool:
        """Whether the link between two nodes is cut."""
        return bool(_is_cut(self, here, there))

    def among(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which links are cut between nodes (k, k)."""
        number = nodes * len(self.sides)
        apart: NDArray[np.bool_] = self.sides[nodes, None] != self.sides[nodes]
        return apart | np.isin(number[:, None] + nodes, self.links) if self.links.size else apart

    def moved(self, places: NDArray[np.int32]) -> Cuts:
        """The same links, each end (n) at another place."""
        sides, (here, there) = np.empty_like(self.sides), np.divmod(self.links, len(self.sides))
        sides[places] = self.sides
        return Cuts(sides, np.sort(places[here].astype(np.int64) * len(places) + places[there]))

    def same(self, other: Cuts) -> bool:
        """Whether both are about the same links."""
        return not with_changed_links(self, other, np.zeros(len(self.sides), np.bool_))


def no_cuts(nodes: int) -> Cuts:
    """Nothing is cut between this number of nodes."""
    return Cuts(np.zeros(nodes, np.int64), np.empty(0, np.int64))


def with_changed_links(before: Cuts, after: Cuts, around: NDArray[np.bool_]) -> int:
    """The number of nodes with other cut links than before, of those and to those that are not routed `around` (n)."""
    if not (before.any() or after.any()):
        return 0
    live = np.flatnonzero(~around)
    both = before.sides * len(around) + after.sides
    sizes = [np.bincount(values, minlength=1)[values] for values in (before.sides, after.sides, both)]
    changed = (sizes[0] != sizes[2]) | (sizes[1] != sizes[2])
    changed[np.setxor1d(before.links, after.links) // len(around)] = True
    count = 0
    for node in live[changed[live]].tolist():
        rows = (
            (cuts.sides[live] != cuts.sides[node]) | np.isin(node * len(around) + live, cuts.links)
            for cuts in (before, after)
        )
        count += not np.array_equal(*rows)
    return count


@kernel
def _is_cut(cuts: Cuts, here: int, there: int) -> bool:
    """Whether the link between two nodes is cut."""
    if cuts.sides[here] != cuts.sides[there]:
        return True
    link = here * cuts.sides.size + there
    place = np.searchsorted(cuts.links, link)
    return bool(place < cuts.links.size and cuts.links[place] == link)


@kernel
def hung_elsewhere(before: NDArray[np.int32], root: int, around: NDArray[np.bool_], cuts: Cuts) -> NDArray[np.int32]:
    """The node before each node (n) on its route from the root, where routes avoid cut links; `before` is without this.

    Nodes that cut links separate from the root hang on another node, as little below the root as possible, the lowest on ties: first
    the one that was least below the root, the lowest on ties, with all that are still linked to it as before. Those that no link
    leads to, and those that are routed `around` (n), stay as they are. The root's own entry is ignored.
    """
    n, after, before = before.size, before.copy(), before.copy()
    before[root] = -1
    children, first = _children(before)
    order, ahead = np.empty(n, np.int64), np.zeros(n, np.int64)  # from the root down, and how far below it
    order[0], size, place = root, 1, 0
    while place < size:
        for child in children[first[order[place]] : first[order[place] + 1]]:
            order[size], ahead[size] = child, ahead[place] + 1
            size += 1
        place += 1
    depth = np.full(n, -1, np.int64)
    node, above = root, after[root]
    while node >= 0:
        after[node], depth[node] = above, 0 if node == root else depth[above] + 1
        _hang(node, before, children, first, around, cuts, after, depth)
        node, above, start = -1, -1, 0
        while node < 0 and start < size:  # by depth
            end = np.searchsorted(ahead[:size], ahead[start], side="right")
            for other in np.sort(order[start:end]):
                above = -1 if depth[other] >= 0 or around[other] else _nearest(other, depth, cuts)
                if above >= 0:
                    node = other
                    break
            start = end
    return after


def way_beside(source: int, target: int, around: NDArray[np.bool_], cuts: Cuts) -> NDArray[np.int32]:
    """The nodes from one to another, both included: directly, or over others if that link is cut."""
    way = [source]
    onward = np.full(len(around), target, np.int32)
    if cuts.cut(source, target):
        onward = hung_elsewhere(onward, target, around, cuts)
    while way[-1] != target:
        way.append(onward.item(way[-1]))
    return np.array(way, np.int32)


@kernel
def _children(before: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes after each, as CSR."""
    n = before.size
    first = np.zeros(n + 1, np.int64)
    for node in range(n):
        if before[node] >= 0:
            first[before[node] + 1] += 1
    first = np.cumsum(first)
    children, filled = np.empty(first[n], np.int64), first[:n].copy()
    for node in range(n):
        if before[node] >= 0:
            children[filled[before[node]]] = node
            filled[before[node]] += 1
    return children, first


@kernel
def _hang(
    node: int,
    before: NDArray[np.int32],
    children: NDArray[np.int64],
    first: NDArray[np.int64],
    around: NDArray[np.bool_],
    cuts: Cuts,
    after: NDArray[np.int32],
    depth: NDArray[np.int64],
) -> None:
    """Attach to a node all nodes that it reaches over the former tree's links that are not cut."""
    found, many, place = np.empty(before.size, np.int64), 1, 0
    found[0] = node
    while place < many:
        here = found[place]
        place += 1
        for link in range(first[here], first[here + 1] + 1):
            there = int(children[link] if link < first[here + 1] else before[here])
            if there >= 0 and depth[there] < 0 and not around[there] and not _is_cut(cuts, here, there):
                after[there], depth[there] = here, depth[here] + 1
                found[many] = there
                many += 1


@kernel
def _nearest(node: int, depth: NDArray[np.int64], cuts: Cuts) -> int:
    """The node of least depth, 0 or more, to which the link is not cut; -1 if there is none."""
    nearest = -1
    for other in range(depth.size):
        if depth[other] >= 0 and (nearest < 0 or depth[other] < depth[nearest]) and not _is_cut(cuts, node, other):
            nearest = other
    return nearest
