"""The SSBR cost the slow, obvious way: the routes of every subscriber, as sets (DYNATOPS, eq. 1 to 11, algorithms 2 and 4).

`parents[root][node]` is the node before `node` on the route from `root`; `wants[broker]` the set of topics of a broker,
`node_of[broker]` its node, `roots[topic]` and `publications[topic]` those of a topic; `trips` between brokers,
None: a hop is one unit of delay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Case:
    parents: Sequence[Sequence[int]]
    roots: Sequence[int]
    wants: Sequence[set[int]]
    publications: Sequence[Any]
    node_of: Sequence[int]
    weight: Any = 1
    trips: Sequence[Sequence[float]] | None = None
    count_rendezvous: bool = False
    constants: tuple[float, float, float] | None = (1, 1, 1)

    @property
    def brokers(self) -> range:
        return range(len(self.node_of))

    def swapped(self, first: int, second: int) -> Case:
        places = list(self.node_of)
        places[first], places[second] = places[second], places[first]
        return replace(self, node_of=places)


def route(case: Case, topic: int, node: int) -> list[int]:
    """All nodes from the topic's root to the node."""
    nodes = [node]
    while nodes[0] != case.roots[topic]:
        nodes.insert(0, case.parents[case.roots[topic]][nodes[0]])
    return nodes


def subscribers(case: Case, topic: int) -> list[int]:
    return [broker for broker in case.brokers if topic in case.wants[broker]]


def tree(case: Case, topic: int) -> set[tuple[int, int]]:
    """The links of a topic's tree, from node to node."""
    return {
        link
        for broker in subscribers(case, topic)
        for link in itertools.pairwise(route(case, topic, case.node_of[broker]))
    }


def relays(case: Case, topic: int) -> set[int]:
    """The brokers that relay the topic and do not want it."""
    used = {node for broker in subscribers(case, topic) for node in route(case, topic, case.node_of[broker])}
    if not case.count_rendezvous:
        used.discard(case.roots[topic])
    return {broker for broker in case.brokers if case.node_of[broker] in used and topic not in case.wants[broker]}


def delay(case: Case, topic: int, broker: int) -> Any:
    """From the topic's root to the broker (d of eq. 1)."""
    links = itertools.pairwise(route(case, topic, case.node_of[broker]))
    if case.trips is None:
        return len(list(links))
    at = {node: broker for broker, node in enumerate(case.node_of)}
    return sum(case.trips[at[above]][at[below]] for above, below in links)


def external(case: Case) -> Any:
    """Eq. 4."""
    return sum(n * len(relays(case, topic)) for topic, n in enumerate(case.publications))


def internal(case: Case) -> Any:
    """Messages to subscribers; the one at the root gets none."""
    return sum(
        n * sum(case.node_of[broker] != case.roots[topic] for broker in subscribers(case, topic))
        for topic, n in enumerate(case.publications)
    )


def total_delay(case: Case) -> Any:
    """Eq. 5."""
    return sum(
        n * sum(delay(case, topic, broker) for broker in subscribers(case, topic))
        for topic, n in enumerate(case.publications)
    )


def cost(case: Case) -> Any:
    """Eq. 6."""
    return external(case) + case.weight * total_delay(case)


def broker_cost(case: Case, broker: int) -> Any:
    """Eq. 7 to 9."""
    return sum(
        n
        * (
            (broker in relays(case, topic))
            + case.weight * (delay(case, topic, broker) if topic in case.wants[broker] else 0)
        )
        for topic, n in enumerate(case.publications)
    )


def move_cost(case: Case, moved: int) -> float:
    """Eq. 11."""
    if moved == 0 or case.constants is None:
        return 0
    log = math.log2(len(case.brokers))
    a, b, c = case.constants
    return a * len(case.brokers) + b * log**2 * moved + c * len(case.roots) * log * moved


def moved(before: Case, after: Case) -> int:
    return sum(a != b for a, b in zip(before.node_of, after.node_of, strict=True))


def greedy(case: Case) -> Iterator[tuple[int, int, Case]]:
    """Algorithm 2: the swaps of the broker with the highest cost with its best partner, and where brokers stand then."""
    while True:
        top = max(case.brokers, key=lambda broker: (broker_cost(case, broker), -broker))
        partners = [broker for broker in case.brokers if broker != top]
        partner = min(partners, key=lambda broker: (cost(case.swapped(top, broker)), broker), default=top)
        after = case.swapped(top, partner)
        if not cost(after) < cost(case):
            return
        yield top, partner, after
        case = after


def sweep(case: Case) -> Iterator[tuple[int, int, Case]]:
    """Swap each pair of brokers in turn if that lowers the cost, until a full round brings no swap."""
    pairs = list(itertools.combinations(case.brokers, 2))
    in_vain = 0
    for first, second in itertools.cycle(pairs):
        after = case.swapped(first, second)
        if cost(after) < cost(case):
            yield first, second, after
            case, in_vain = after, 0
        elif (in_vain := in_vain + 1) == len(pairs):
            return


def edges(case: Case, printed: bool = False) -> Any:
    """Eq. 16a where brokers stand: the least that y may be under 16e and 16f, as they are printed or as they must be."""
    wanting = [{case.node_of[broker] for broker in subscribers(case, topic)} for topic in range(len(case.roots))]
    total = 0
    for topic, n in enumerate(case.publications):
        ways = {node: route(case, topic, node) for node in case.brokers}  # nodes have the numbers that brokers have
        for end in case.brokers:
            if end != case.roots[topic]:
                behind = [node for node, way in ways.items() if end in way]
                s = [int(node in wanting[topic]) for node in behind]
                if printed:
                    allowed = [y for y in (0, 1) if y <= sum(s) / len(s) and y >= sum(s) + 1 - len(s)]
                else:
                    allowed = [y for y in (0, 1) if all(y >= one for one in s)]
                total += n * min(allowed)
    return total


def cost_driven(case: Case) -> list[tuple[int, int, Case]]:
    """Algorithm 4: the part of algorithm 2's path after which the gain exceeds what the moves cost by most, the first one of those."""
    path = list(greedy(case))
    gains = [0, *(cost(case) - cost(after) - move_cost(case, moved(case, after)) for _, _, after in path)]
    return path[: gains.index(max(gains))]


def best(case: Case, of: Any = cost) -> Any:
    """The least that the function of a case can be, over all places of the brokers."""
    return min(of(replace(case, node_of=places)) for places in itertools.permutations(case.brokers))
