"""Overlays the slow, obvious way: a route is a list of nodes, a tree the union of routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations

from oracles import topic_connected


class Overlay:
    """Anything that has a route from each node to each other. Where `cut` links are avoided, `live` are the nodes to go over."""

    def __init__(self) -> None:
        self.plain, self.route, self.way_up = cache(self._route), cache(self._way_down), cache(self._way_up)
        self.cut: frozenset[frozenset[int]] = frozenset()
        self.live: list[int] = []

    def _way_down(self, source: int, target: int) -> list[int]:
        """The route on the source's tree of routes to all."""
        if not self.cut:
            return self.plain(source, target)
        return up_to(
            target,
            avoiding({node: self.plain(source, node)[-2] for node in self.live if node != source}, source, self.cut),
        )[::-1]

    def _way_up(self, source: int, target: int) -> list[int]:
        """The route on the target's tree of routes from all."""
        if not self.cut:
            return self.plain(source, target)
        return up_to(
            source,
            avoiding({node: self.plain(node, target)[1] for node in self.live if node != target}, target, self.cut),
        )

    def _route(self, source: int, target: int) -> list[int]:
        raise NotImplementedError

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        """All routes of one hop, whichever way they go."""
        return {frozenset(pair) for pair in permutations(nodes, 2) if len(self.plain(*pair)) == 2}

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


def up_to(node: int, above: Mapping[int, int | None]) -> list[int]:
    """The nodes from one up to the root of a tree."""
    way = [node]
    while (over := above.get(way[-1])) is not None:
        way.append(over)
    return way


def avoiding(above: Mapping[int, int | None], root: int, cut: frozenset[frozenset[int]]) -> dict[int, int | None]:
    """A tree without links that are cut, as far as possible.

    What these separate hangs on other nodes: again and again, the highest node that has a link to one that is left, on the highest of
    these, and the rest follows over the links as they were. Of equals it is the lowest. Who is left at last, stays where it was.
    """
    ends = [(a, b) for node, over in above.items() if over is not None for a, b in ((node, over), (over, node))]
    found: dict[int, int | None] = {root: None}
    while True:
        while near := [(a, b) for a, b in ends if a in found and b not in found and frozenset({a, b}) not in cut]:
            here, there = near[0]
            found[there] = here
        for node in sorted(above.keys() - found.keys(), key=lambda node: (len(up_to(node, above)), node)):
            if others := [other for other in found if frozenset({node, other}) not in cut]:
                found[node] = min(others, key=lambda other: (len(up_to(other, found)), other))
                break
        else:
            return {**above, **found}


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
        return [source, *self.plain(max(allowed, key=lambda f: self.ahead(source, f)), target)]


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
    around, `avoided`, and links that are cut, `apart`, are taken only where no other is left."""

    def __init__(
        self,
        times: Mapping[tuple[int, int], float],
        avoided: frozenset[int] = frozenset(),
        apart: frozenset[frozenset[int]] = frozenset(),
    ) -> None:
        super().__init__()
        self.times, self.avoided, self.apart = times, avoided, apart

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        return {frozenset(link) for link in self.times}

    def _route(self, source: int, target: int) -> list[int]:
        def rank(route: list[int]) -> tuple[int, float, int, list[int]]:
            time = 0.0
            for link in pairwise(route):
                time += self.times[link]
            barred = sum(not self.avoided.isdisjoint(link) or frozenset(link) in self.apart for link in pairwise(route))
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
        self.designed: set[tuple[int, int]] = set()
        self.now: set[tuple[int, int]] = set()  # with others for those that are cut
        self.cut_anew = False

    def route_around(self, cut: frozenset[frozenset[int]], live: list[int]) -> None:
        """Avoid these links between these nodes."""
        self.cut_anew |= cut != self.cut
        self.cut, self.live = cut, live
        self.route.cache_clear()
        self.way_up.cache_clear()

    def links(self, nodes: Iterable[int]) -> set[frozenset[int]]:
        return {frozenset(link) for link in self.now}

    def start(self, source: int, members: Iterable[int]) -> int:
        """The source if it wants the topic or no node does, otherwise the nearest member."""
        near = sorted(
            members,
            key=lambda node: (node != source, frozenset({source, node}) in self.cut, self.times[source][node], node),
        )
        return near[0] if near else source

    def told(self, nodes: int) -> int:
        return 0

    def adjust(self, wants: list[set[int]]) -> int:
        """Adjust the links; each one set up or taken down costs two messages."""
        before, designed = self.now, self.designed
        if self.wants is None or (wants != self.wants and self.on_change == "rebuild"):
            self.designed = set(self.design(wants))
        elif wants != self.wants and self.on_change == "repair":
            self.designed = self.repaired(self.wants, wants)
        elif any(topic_connected.weights(wants, sorted(self.now)).values()):
            self.designed = set(self.design(wants))
        if self.designed is not designed or self.cut_anew:
            self.now, self.cut_anew = self.beside_cuts(wants), False
            if any(topic_connected.weights(wants, sorted(self.now)).values()):  # what stood in for cut links is gone
                self.designed = set(self.design(wants))
                self.now = self.beside_cuts(wants)
        self.wants = [set(topics) for topics in wants]
        return 2 * len(before ^ self.now)

    def beside_cuts(self, wants: list[set[int]]) -> set[tuple[int, int]]:
        """Links that are not cut, which connect those who want a topic, topic by topic; cut ones where no others do."""
        links = {link for link in self.designed if frozenset(link) not in self.cut}
        if not self.cut:
            return links
        for topic in sorted(set().union(*wants)):
            members = [node for node, topics in enumerate(wants) if topic in topics]
            pairs = [(u, v) for u in members for v in members if u < v]
            others = [pair for pair in pairs if frozenset(pair) not in self.cut]
            for u, v in [*others, *(pair for pair in pairs if pair in self.designed and pair not in others)]:
                reached = [u]
                for node in reached:
                    reached += [w for w in members if w not in reached and (min(node, w), max(node, w)) in links]
                if v not in reached:
                    links.add((u, v))
        return links

    def design(self, wants: list[set[int]]) -> list[tuple[int, int]]:
        if self.rule.startswith("cd"):
            return topic_connected.constant_diameter(wants, self.rule)
        return topic_connected.greedy(wants, self.rule, self.k, self.strict)

    def repaired(self, before: list[set[int]], after: list[set[int]]) -> set[tuple[int, int]]:
        """Node by node: the greedy goes on from the links that are there, then those of the node go that no topic needs."""
        wants, links = list(before), self.designed
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
