"""Overlays the slow, obvious way: a route is a list of nodes, a tree the union of routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise


class Overlay:
    """Anything that has a route from each node to each other."""

    def __init__(self) -> None:
        self.route = cache(self._route)

    def _route(self, source: int, target: int) -> list[int]:
        raise NotImplementedError

    def tree(self, root: int, members: Iterable[int]) -> dict[int, int | None]:
        """Parents in the union of the routes from the root to all members, which is a tree."""
        parents: dict[int, int | None] = {}
        for member in sorted(members):
            route = self.route(root, member)
            for above, node in zip([None, *route], route, strict=False):
                assert parents.setdefault(node, above) == above, "two routes to one node"
        return parents


class Ring(Overlay):
    """Chord on ids 0..2^bits: finger i of u is the first node at or after u + 2^i."""

    def __init__(self, ids: Iterable[int], bits: int) -> None:
        super().__init__()
        self.ids, self.size = sorted(ids), 2**bits
        self.fingers = {u: {self.successor(u + 2**i) for i in range(bits)} for u in self.ids}

    def successor(self, point: int) -> int:
        """The first node at or after a point, wrapping."""
        return min(self.ids, key=lambda node: self.ahead(point, node))

    def ahead(self, here: int, there: int) -> int:
        """How far it is clockwise."""
        return (there - here) % self.size

    def _route(self, source: int, target: int) -> list[int]:
        """The farthest finger that is not past the target, again and again; the target itself is allowed."""
        if source == target:
            return [source]
        allowed = [f for f in self.fingers[source] if 0 < self.ahead(source, f) <= self.ahead(source, target)]
        return [source, *self.route(max(allowed, key=lambda f: self.ahead(source, f)), target)]


class Mesh(Overlay):
    """Everybody is linked to everybody."""

    def _route(self, source: int, target: int) -> list[int]:
        return [source] if source == target else [source, target]


class Links(Overlay):
    """Nodes with links of certain times, given for both ends of each. The quickest route wins; of equals the one with fewest hops;
    of those the one whose last node but one is the lowest, or else the one before that, and so on."""

    def __init__(self, times: Mapping[tuple[int, int], float]) -> None:
        super().__init__()
        self.times = times

    def _route(self, source: int, target: int) -> list[int]:
        def rank(route: list[int]) -> tuple[float, int, list[int]]:
            time = 0.0
            for link in pairwise(route):
                time += self.times[link]
            return time, len(route), route[::-1]

        return min(self._routes([source], target), key=rank)

    def _routes(self, begun: list[int], target: int) -> Iterator[list[int]]:
        """All routes to the target that visit no node twice."""
        if begun[-1] == target:
            yield begun
            return
        for here, there in self.times:
            if here == begun[-1] and there not in begun:
                yield from self._routes([*begun, there], target)
