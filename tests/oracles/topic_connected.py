"""Topic-connected overlays (Onus & Richa) word for word, over sets of topics, lists of edges and exact fractions.

`interests` is the set of topics of each node; an edge is (u, v) with u < v.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

Edge = tuple[int, int]
Interests = Sequence[set[int]]


def subscribers(interests: Interests, topic: int) -> set[int]:
    return {node for node, topics in enumerate(interests) if topic in topics}


def active(interests: Interests) -> set[int]:
    """The topics that somebody wants."""
    return set().union(*interests)


def reached(nodes: set[int], edges: Iterable[Edge], source: int) -> dict[int, int]:
    """The nodes of the subgraph induced by `nodes` that can be reached from `source`, with their distances."""
    distance = {source: 0}
    front = {source}
    edges = [(u, v) for u, v in edges if u in nodes and v in nodes]
    while front:
        front = {b for u, v in edges for a, b in ((u, v), (v, u)) if a in front} - distance.keys()
        distance |= dict.fromkeys(front, max(distance.values()) + 1)
    return distance


def components(interests: Interests, edges: Iterable[Edge], topic: int) -> list[set[int]]:
    """The topic-connected components of one topic."""
    edges, left, found = list(edges), subscribers(interests, topic), []
    while left:
        found.append(set(reached(left, edges, min(left))))
        left = left - found[-1]
    return found


def component_count(interests: Interests, edges: Iterable[Edge]) -> int:
    """NC(V, E), over all topics."""
    edges = list(edges)
    return sum(len(components(interests, edges, topic)) for topic in active(interests))


def weights(interests: Interests, edges: Sequence[Edge]) -> dict[Edge, int]:
    """For each pair, NC(V, E) - NC(V, E + pair): the topics that both want and whose components they would join."""
    found = dict.fromkeys(itertools.combinations(range(len(interests)), 2), 0)
    for topic in active(interests):
        for one, other in itertools.combinations(components(interests, edges, topic), 2):
            for u, v in itertools.product(one, other):
                found[min(u, v), max(u, v)] += 1
    return found


def degrees(nodes: int, edges: Iterable[Edge]) -> list[int]:
    return [sum(node in edge for edge in edges) for node in range(nodes)]


def heaviest(pairs: Iterable[Edge], weight: dict[Edge, int]) -> Edge:
    """The pair of maximum weight, the lowest (u, v) of several."""
    return min(pairs, key=lambda pair: (-weight[pair], pair))


def gentle(pairs: Iterable[Edge], nodes: int, edges: Sequence[Edge]) -> list[Edge]:
    """The pairs that increase the maximum degree minimally."""
    highest = {pair: max(degrees(nodes, [*edges, pair])) for pair in pairs}
    return [pair for pair in highest if highest[pair] == min(highest.values())]


def greedy(
    interests: Interests, rule: str, k: Fraction = Fraction(1), strict: bool = False, kept: Sequence[Edge] = ()
) -> list[Edge]:
    """GM, MinMax-ODA or Low-ODA (`rule`), from the kept edges on; the edges added, in order. Useless edges are never added."""
    edges = list(kept)
    while useful := {pair: weight for pair, weight in weights(interests, edges).items() if weight > 0}:
        first = heaviest(gentle(useful, len(interests), edges), useful)
        second = heaviest(useful, useful)
        enough = k * useful[first] > useful[second] if strict else k * useful[first] >= useful[second]
        edges.append({"gm": second, "minmax-oda": first, "low-oda": first if enough else second}[rule])
    return edges[len(kept) :]


def star_value(interests: Interests, topics: set[int], rule: str, u: int) -> Fraction:
    """n_u, w_u or d_u, the node itself not among its neighbours, over the topics that remain."""
    common = [len(interests[u] & interests[v] & topics) for v in range(len(interests)) if v != u]
    neighbours, weighted = sum(count > 0 for count in common), sum(common)
    return {"cd-oda": neighbours, "cd-oda-i": weighted, "cd-oda-ii": Fraction(weighted, neighbours)}[rule] * Fraction(1)


def constant_diameter(interests: Interests, rule: str) -> list[Edge]:
    """CD-ODA, CD-ODA-I or CD-ODA-II (`rule`): stars one after the other, each in the order of its nodes."""
    nodes = range(len(interests))
    topics = {topic for topic in active(interests) if len(subscribers(interests, topic)) >= 2}
    edges: list[Edge] = []
    while topics:
        value = {u: star_value(interests, topics, rule, u) for u in nodes if interests[u] & topics}
        centre = min(value, key=lambda u: (-value[u], u))
        neighbours = [v for v in nodes if v != centre and interests[centre] & interests[v] & topics]
        edges += [(min(centre, v), max(centre, v)) for v in neighbours]
        topics -= interests[centre]
    return edges


def topic_diameters(interests: Interests, edges: Sequence[Edge]) -> dict[int, int | None]:
    """The diameter of each topic's own sub-overlay, over topics with at least two subscribers; None where it is not connected."""
    found: dict[int, int | None] = {}
    for topic in active(interests):
        nodes = subscribers(interests, topic)
        distances = [reached(nodes, edges, node) for node in nodes]
        whole = all(len(each) == len(nodes) for each in distances)
        if len(nodes) >= 2:
            found[topic] = max(max(each.values()) for each in distances) if whole else None
    return found


def optimum(interests: Interests) -> int:
    """The fewest edges of any topic-connected overlay, by trying all sets of useful edges."""
    useful = [pair for pair, weight in weights(interests, []).items() if weight]
    return next(
        size
        for size in range(len(useful) + 1)
        if any(not any(weights(interests, tried).values()) for tried in itertools.combinations(useful, size))
    )
