"""How few edges a topic-connected overlay can have: lower bounds, and the optimum for small instances."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sim.overlay.topic_connected.design import common_topics
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.overlay.topic_connected.measure_kernels import histogram


def lower_bounds(interests: BrokerInterests) -> dict[str, int]:
    """Lower bounds on the edges of any topic-connected overlay, by name.

    `largest_topic`: the subscribers of the largest topic, minus one. `spanning_forest`: the edges of a spanning forest of the graph
    that links nodes with a topic in common. `heaviest_pairs`: the fewest pairs whose common topics add up to C_start - C_end, since
    an edge joins at most as many components as its ends have topics in common.
    """
    return {
        "largest_topic": max(int(interests.sizes.max(initial=0)) - 1, 0),
        "spanning_forest": _spanning_forest(interests),
        "heaviest_pairs": _heaviest_pairs(interests),
    }


def _spanning_forest(interests: BrokerInterests) -> int:
    nodes, size = interests.nodes, interests.nodes + interests.topics
    ends = np.repeat(np.arange(nodes), np.diff(interests.indptr)), nodes + interests.indices
    _, part = connected_components(
        coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(size, size)), directed=False
    )
    return nodes - len(np.unique(part[:nodes]))


def _heaviest_pairs(interests: BrokerInterests) -> int:
    common = common_topics(interests)
    missing, pairs = interests.merges, 0
    counts = histogram(common, int(common.max(initial=0)) + 1)
    for weight in range(len(counts) - 1, 0, -1):
        taken = min(int(counts[weight]), -(-missing // weight))
        pairs += taken
        missing = max(missing - taken * weight, 0)
    return pairs


def optimum(interests: BrokerInterests) -> NDArray[np.int32]:
    """A topic-connected overlay with as few edges as possible (m, 2), u < v, ascending; feasible for about a dozen nodes.

    A mixed-integer program over the pairs with a topic in common, solved by HiGHS; constraints that link part of a topic's
    subscribers to the rest are added once they are violated.
    """
    wants = [set(interests.row(node).tolist()) for node in range(interests.nodes)]
    pairs = [(u, v) for u, v in itertools.combinations(range(interests.nodes), 2) if wants[u] & wants[v]]
    if not pairs:
        return np.empty((0, 2), np.int32)
    starts, members = interests.by_topic
    topics = [set(members[a:b].tolist()) for a, b in itertools.pairwise(starts.tolist()) if b - a >= 2]

    def crossing(part: set[int], rest: set[int]) -> list[bool]:
        return [(u in part and v in rest) or (v in part and u in rest) for u, v in pairs]

    rows = [crossing({node}, topic - {node}) for topic in topics for node in topic]
    rows += [crossing(topic, topic) for topic in topics]
    least = [1] * (len(rows) - len(topics)) + [len(topic) - 1 for topic in topics]  # as many links as a tree has
    while True:
        solved = milp(
            np.ones(len(pairs)),
            integrality=np.ones(len(pairs), np.int8),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.array(rows, np.float64), np.array(least, np.float64), np.inf),
        )
        if solved.x is None:
            raise RuntimeError(f"HiGHS found no optimum: {solved.message}")
        chosen = [pair for pair, taken in zip(pairs, solved.x, strict=True) if taken > 0.5]
        broken = [crossing(part, topic - part) for topic in topics for part in _parts(topic, chosen)]
        if not broken:
            return np.array(chosen, np.int32)
        rows += broken
        least += [1] * len(broken)


def _parts(topic: set[int], edges: list[tuple[int, int]]) -> list[set[int]]:
    """The components of a topic's sub-overlay; none where it is connected."""
    parts = [{node} for node in topic]
    for u, v in edges:
        if u in topic and v in topic:
            joined = [part for part in parts if u in part or v in part]
            parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    return parts if len(parts) > 1 else []
