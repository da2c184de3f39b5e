"""Overlays the slow, obvious way: a route is a list of nodes, a tree the union of routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations

from oracles import topic_connected


class Overlay:
    """Anything that has a route from each node to each other."""

    def __init__(self) -> None:
        self.route = cache(self._route)

    def _route(self, source: int, target: int) -> list[int]:
        raise NotImplementedError

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        """All routes of one hop, whichever way they go."""
        return {frozenset(pair) for pair in permutations(nodes, 2) if len(self.route(*pair)) == 2}

    def start(self, source: int, members: Iterable[int]) -> int:
        """The root of the trees of a topic without a single root."""
        return source

    def told(self, nodes: int) -> int:
        """The number of messages of a join or leave where there is no root: all other nodes are informed."""
        return nodes - 1

    def adjust(self, wants: list[set[int]]) -> int:
        """The number of messages by which links follow interests: none, these are fixed."""
        return 0

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
        """The clockwise distance."""
        return (there - here) % self.size

    def _route(self, source: int, target: int) -> list[int]:
        """The farthest finger that is not past the target, again and again; the target itself is allowed."""
        if source == target:
            return [source]
        allowed = [f for f in self.fingers[source] if 0 < self.ahead(source, f) <= self.ahead(source, target)]
        return [source, *self.route(max(allowed, key=lambda f: self.ahead(source, f)), target)]


class Prefix(Overlay):
    """Ids of digits, here texts; each node knows one candidate, `pick(node, candidates)`, for each prefix that is one digit away."""

    def __init__(
        self,
        ids: list[str],
        alphabet: str,
        pick: Callable[[int, list[int]], int],
        avoided: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        self.ids, self.alphabet, self.pick, self.avoided = ids, alphabet, pick, avoided

    def known(self, node: int, prefix: str) -> int | None:
        """Whom the node knows that has this prefix: itself before all; else the one with the next id, of those not routed around."""
        having = [other for other, name in enumerate(self.ids) if name.startswith(prefix)]
        if node in having:
            return node
        having.sort(key=lambda other: self.ids[other])
        first = having.index(self.pick(node, having)) if having else 0
        return next((other for other in having[first:] + having[:first] if other not in self.avoided), None)

    def surrogate(self, source: int, name: str) -> list[int]:
        """The way to an id that nobody may have: digit by digit, the next digit up where nobody has this one."""
        nodes, prefix = [source], ""
        for digit in name:
            first = self.alphabet.index(digit)
            for other in self.alphabet[first:] + self.alphabet[:first]:
                if (node := self.known(nodes[-1], prefix + other)) is not None:
                    prefix += other
                    break
            else:
                raise AssertionError("nobody goes on with any digit")
            if node != nodes[-1]:
                nodes.append(node)
        return nodes

    def _route(self, source: int, target: int) -> list[int]:
        return self.surrogate(source, self.ids[target])


class Mesh(Overlay):
    """All nodes are linked to each other."""

    def _route(self, source: int, target: int) -> list[int]:
        return [source] if source == target else [source, target]


class Broadcast(Mesh):
    """Everything goes to everybody, and nobody is told who wants what."""

    def __init__(self, nodes: Iterable[int]) -> None:
        super().__init__()
        self.nodes = set(nodes)

    def told(self, nodes: int) -> int:
        return 0

    def tree(self, root: int, members: Iterable[int]) -> dict[int, int | None]:
        return super().tree(root, self.nodes)


class Links(Overlay):
    """Nodes with links of certain times, given for both ends of each. The quickest route wins; of equals the one with fewest hops;
    of those the one whose last node but one is the lowest, or else the one before that, and so on. Links of nodes that are routed
    around, `avoided`, are taken only where no other is left."""

    def __init__(self, times: Mapping[tuple[int, int], float], avoided: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.times, self.avoided = times, avoided

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        return {frozenset(link) for link in self.times}

    def _route(self, source: int, target: int) -> list[int]:
        def rank(route: list[int]) -> tuple[int, float, int, list[int]]:
            time = 0.0
            for link in pairwise(route):
                time += self.times[link]
            barred = sum(not self.avoided.isdisjoint(link) for link in pairwise(route))
            return barred, time, len(route), route[::-1]

        return min(self._routes([source], target), key=rank)

    def _routes(self, begun: list[int], target: int) -> Iterator[list[int]]:
        """All routes to the target that visit no node twice."""
        if begun[-1] == target:
            yield begun
            return
        for here, there in self.times:
            if here == begun[-1] and there not in begun:
                yield from self._routes([*begun, there], target)


class Flooding(Overlay):
    """Publications may be flooded: each node sends to those `near` it."""

    def near(self, node: int, members: Iterable[int]) -> list[int]:
        raise NotImplementedError

    def around(self, root: int, members: Iterable[int]) -> dict[int, list[int]]:
        """The neighbours of all that a flood from the root comes to."""
        return {node: self.near(node, members) for node in self.tree(root, members)}

    def tree(self, root: int, members: Iterable[int]) -> dict[int, int | None]:
        """Breadth first from the root."""
        parents: dict[int, int | None] = {}
        front: list[tuple[int, int | None]] = [(root, None)] if members else []
        for node, above in front:
            if node not in parents:
                parents[node] = above
                front += [(other, node) for other in self.near(node, members)]
        return parents


class FloodedLinks(Flooding, Links):
    """Everything is flooded over all links, to everybody, and nobody is told who wants what."""

    def told(self, nodes: int) -> int:
        return 0

    def near(self, node: int, members: Iterable[int]) -> list[int]:
        return sorted(there for here, there in self.times if here == node and there not in self.avoided)

    def tree(self, root: int, members: Iterable[int]) -> dict[int, int | None]:
        return super().tree(root, {root})


class TopicConnected(Flooding, Mesh):
    """Links by one of the designs, made when they are first adjusted; then, `on_change`, repaired, made anew ("rebuild"), or made anew
    when a topic is no longer connected ("break"). `times` are round-trip times."""

    def __init__(self, times: list[list[float]], rule: str, k: Fraction, strict: bool, on_change: str) -> None:
        super().__init__()
        self.times, self.rule, self.k, self.strict, self.on_change = times, rule, k, strict, on_change
        self.wants: list[set[int]] | None = None
        self.now: set[tuple[int, int]] = set()

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        return {frozenset(link) for link in self.now}

    def start(self, source: int, members: Iterable[int]) -> int:
        """The source if it wants the topic or no node does, otherwise the nearest member."""
        near = sorted(members, key=lambda node: (node != source, self.times[source][node], node))
        return near[0] if near else source

    def told(self, nodes: int) -> int:
        return 0

    def adjust(self, wants: list[set[int]]) -> int:
        """Adjust the links; each one set up or taken down costs two messages."""
        before = self.now
        if self.wants is None or (wants != self.wants and self.on_change == "rebuild"):
            self.now = set(self.design(wants))
        elif wants != self.wants and self.on_change == "repair":
            self.now = self.repaired(self.wants, wants)
        elif any(topic_connected.weights(wants, sorted(self.now)).values()):
            self.now = set(self.design(wants))
        self.wants = [set(topics) for topics in wants]
        return 2 * len(before ^ self.now)

    def design(self, wants: list[set[int]]) -> list[tuple[int, int]]:
        if self.rule.startswith("cd"):
            return topic_connected.constant_diameter(wants, self.rule)
        return topic_connected.greedy(wants, self.rule, self.k, self.strict)

    def repaired(self, before: list[set[int]], after: list[set[int]]) -> set[tuple[int, int]]:
        """Node by node: the greedy goes on from the links that are there, then those of the node go that no topic needs."""
        wants, links = list(before), self.now
        for node in [node for node, topics in enumerate(after) if topics != before[node]]:
            wants[node] = after[node]
            links = links | set(topic_connected.greedy(wants, self.rule, self.k, self.strict, kept=sorted(links)))
            for link in sorted((link for link in links if node in link), key=lambda link: sum(link) - node):
                if not any(topic_connected.weights(wants, sorted(links - {link})).values()):
                    links = links - {link}
        return links

    def near(self, node: int, members: Iterable[int]) -> list[int]:
        """The members that a node is linked to; those that one which is no member hands over to."""
        if node not in members:
            return [self.start(node, members)]
        return sorted(other for other in members if (min(node, other), max(node, other)) in self.now)
