"""Reconfiguration problems in JSON: node ids, topic hashes and lists, on a Chord ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim.api.problem_files import ProblemInstance, Strict, wrong_topics
from sim.base.naming import Raw
from sim.base.randomness import Streams
from sim.base.units import Quantity
from sim.base.validation import Mistake
from sim.overlay.chord import chord_routes
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem

Id = Annotated[int, Field(ge=0)]


class MoveCost(Strict):
    """The cost of moving brokers."""

    constants: list[Quantity]


class RingProblem(ProblemInstance):
    """A problem on a Chord ring of 2^bits ids.

    `mapping` has the node id of each broker, `subscriptions` its topics by their position in `topic_hashes`, `rtt` (None: a hop is one
    unit of delay) the round-trip times between brokers. `move_cost`: the constants of eq. 11; None: moving is free.
    """

    bits: int = Field(ge=1, le=62)
    node_ids: list[Id]
    topic_hashes: list[Id]
    subscriptions: list[list[int]]
    publications: list[Quantity]
    mapping: list[int]
    delay_weight: Quantity
    rtt: list[list[Quantity]] | None = None
    count_rendezvous: bool = False
    seed: int = Field(1, ge=0, lt=2**63)
    move_cost: MoveCost | None = MoveCost(constants=[1.0, 1.0, 1.0])

    def mistakes(self) -> Iterator[Mistake]:
        nodes, topics, size = len(self.node_ids), len(self.topic_hashes), 1 << self.bits
        if not nodes:
            yield ("node_ids",), "expected at least one (found none)"
        for key, ids in (("node_ids", self.node_ids), ("topic_hashes", self.topic_hashes)):
            for i, value in enumerate(ids):
                if value >= size:
                    yield (key, i), f"expected a value below 2^{self.bits}, as bits is {self.bits} (found {value})"
        yield from _repeated("node_ids", self.node_ids)
        lengths = {"subscriptions": nodes, "publications": topics, "mapping": nodes} | (
            {} if self.rtt is None else {"rtt": nodes}
        )
        for key, length in lengths.items():
            if (found := len(getattr(self, key))) != length:
                per = "topic_hashes" if key == "publications" else "node_ids"
                yield (key,), f"expected {length} entries, as many as {per} has (found {found})"
        yield from wrong_topics("subscriptions", self.subscriptions, topics)
        known = set(self.node_ids)
        for i, node in enumerate(self.mapping):
            if node not in known:
                yield ("mapping", i), f"expected one of node_ids (found {node})"
        yield from _repeated("mapping", self.mapping)
        if self.move_cost is not None and (found := len(self.move_cost.constants)) != 3:
            yield ("move_cost", "constants"), f"expected 3 entries, one for each term of eq. 11 (found {found})"
        for i, row in enumerate(self.rtt or []):
            if len(row) != nodes:
                yield ("rtt", i), f"expected {nodes} entries, as many as node_ids has (found {len(row)})"

    @property
    def ids(self) -> NDArray[np.int64]:
        """The node ids, ascending: nodes are numbered in this order."""
        return np.array(sorted(self.node_ids), np.int64)

    def problem(self) -> ReconfigurationProblem:
        """The problem as arrays; numbers of publications are integers where all are whole."""
        routes = chord_routes(self.ids, np.array(self.topic_hashes, np.int64), self.bits)
        wanted = np.zeros((len(self.topic_hashes), len(self.node_ids)), np.bool_)
        for broker, topics in enumerate(self.subscriptions):
            wanted[topics, broker] = True
        publications = np.array(self.publications, np.float64)
        whole = bool((publications == np.floor(publications)).all())
        return ReconfigurationProblem(
            routes.parent,
            routes.hops,
            routes.roots,
            wanted,
            publications.astype(np.int64) if whole else publications,
            np.searchsorted(self.ids, self.mapping).astype(np.int32),
            self.delay_weight,
            None if self.rtt is None else np.array(self.rtt, np.float64),
            self.count_rendezvous,
            None if self.move_cost is None else cast(tuple[float, float, float], tuple(self.move_cost.constants)),
            Streams(self.seed).key("reconfiguration"),
        )

    def solution(self, problem: ReconfigurationProblem, decision: Reconfiguration) -> Raw:
        """The evaluation of a decision as JSON, with node ids."""
        objective, ids = CostModel(problem), self.ids
        before = objective.cost
        objective.place(decision.node_of)
        return {
            "mapping": ids[decision.node_of].tolist(),
            "cost_before": before,
            "cost_after": objective.cost,
            "external": objective.external,
            "internal": objective.internal,
            "delay": objective.delay,
            "moved": objective.moved,
            "swaps": [list(swap) for swap in decision.swaps],
            "trees": [ids[links].tolist() for links in objective.trees()],
        }


def _repeated(key: str, values: list[int]) -> Iterator[Mistake]:
    if len(set(values)) < len(values):
        counts = Counter(values)
        i, value = next((i, value) for i, value in enumerate(values) if counts[value] > 1 and value in values[:i])
        yield (key, i), f"expected distinct ids (found {value} again)"
