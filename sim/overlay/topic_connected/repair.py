"""Topic-connected overlays that follow changes of interest: by repair of disconnected topics, and by DCB-M."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sim.overlay.topic_connected.design import DEFAULT_K, GreedyAlgorithm, design, extend
from sim.overlay.topic_connected.interests import BrokerInterests
from sim.overlay.topic_connected.measures import connected_topics, edge_numbers
from sim.overlay.topic_connected.repair_kernels import is_connected, links_among, prune

Edges = set[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Change:
    """The effect of a change of interests on an overlay: the links added and removed, (·, 2) each, u < v, ascending."""

    added: NDArray[np.int32]
    removed: NDArray[np.int32]
    rebuilt: bool = False

    @property
    def cost(self) -> int:
        """The number of links that changed."""
        return len(self.added) + len(self.removed)

    @classmethod
    def between(cls, before: Edges, after: Edges, rebuilt: bool = False) -> Change:
        """The symmetric difference of two sets of edges."""
        return cls(_array(after - before), _array(before - after), rebuilt)


class RepairedOverlay:
    """An overlay of one of the greedy designs that is repaired after each change of a node's interests.

    Only the topics that the node joined or left can have become disconnected: the greedy continues from the present links, over the
    subscribers of these topics alone. Then the node's links that no topic needs any more are removed. After every `check`-th change
    a new design is computed, which replaces the links if they are more than `slack` times as many.
    """

    def __init__(
        self,
        interests: BrokerInterests,
        algorithm: GreedyAlgorithm = "gm",
        k: Fraction = DEFAULT_K,
        strict: bool = False,
        slack: float = 1.05,
        check: int = 1,
    ) -> None:
        self.algorithm, self.k, self.strict, self.slack, self.check = algorithm, k, strict, slack, check
        self._wanted = np.zeros((interests.topics, interests.nodes), np.bool_)
        self._wanted[interests.indices, np.repeat(np.arange(interests.nodes), np.diff(interests.indptr))] = True
        self._changes = 0
        self._degree = np.zeros(interests.nodes, np.int64)
        self._links = np.zeros((interests.nodes, 1), np.int32)
        self._adopt(self._design())

    @property
    def interests(self) -> BrokerInterests:
        """The present interests."""
        return BrokerInterests.where(self._wanted.T)

    @property
    def edges(self) -> NDArray[np.int32]:
        """The links (m, 2), u < v, ascending."""
        nodes = np.arange(len(self._degree))
        edges = links_among(nodes, nodes, self._links, self._degree)
        return edges[np.argsort(edge_numbers(len(nodes), edges))]

    def change(self, node: int, add: Iterable[int] = (), drop: Iterable[int] = ()) -> Change:
        """Change a node's interests: it joins the topics `add` and leaves `drop`, all of them topics of the initial interests.

        Raises ValueError where it already wants one of `add`, or does not want one of `drop`.
        """
        add, drop = sorted(add), sorted(drop)
        if self._wanted[add, node].any():
            raise ValueError(f"node {node} already wants topic {add[int(self._wanted[add, node].argmax())]}")
        if not self._wanted[drop, node].all():
            raise ValueError(f"node {node} does not want topic {drop[int(self._wanted[drop, node].argmin())]}")
        self._wanted[add, node], self._wanted[drop, node] = True, False
        self._changes += 1
        broken = [t for t in (*add, *drop) if not is_connected(self._wanted[t], self._links, self._degree)]
        added = _pairs(self._reconnect(broken)) if broken else set()
        removed = {(min(node, x), max(node, x)) for x in prune(node, self._wanted, self._links, self._degree).tolist()}
        if self._changes % self.check == 0:
            fresh = self._design()
            if self._degree.sum() // 2 > self.slack * len(fresh):
                before = (_pairs(self.edges) | removed) - added
                self._adopt(fresh)
                return Change.between(before, _pairs(fresh), rebuilt=True)
        return Change.between(removed, added)

    def _design(self) -> NDArray[np.int32]:
        return design(self.interests, self.algorithm, self.k, self.strict)

    def _adopt(self, edges: NDArray[np.int32]) -> None:
        self._degree[:] = 0
        self._link(edges)

    def _link(self, edges: NDArray[np.int32]) -> None:
        room = int((self._degree + np.bincount(edges.ravel(), minlength=len(self._degree))).max(initial=0))
        if room > self._links.shape[1]:
            self._links = np.pad(self._links, ((0, 0), (0, 2 * room - self._links.shape[1])))
        for u, v in edges.tolist():
            self._links[u, self._degree[u]], self._links[v, self._degree[v]] = v, u
            self._degree[[u, v]] += 1

    def _reconnect(self, topics: list[int]) -> NDArray[np.int32]:
        """Let the greedy continue over the subscribers of these topics; returns the links that it adds."""
        nodes = np.flatnonzero(self._wanted[topics].any(axis=0))
        place = np.full(len(self._degree), -1)
        place[nodes] = np.arange(len(nodes))
        added = extend(
            BrokerInterests.where(self._wanted[topics][:, nodes].T),
            links_among(nodes, place, self._links, self._degree),
            self.algorithm,
            self.k,
            self.strict,
            degrees=self._degree[nodes],
            highest=int(self._degree.max()),
        )
        edges = nodes[added].astype(np.int32)
        self._link(edges)
        return edges


class Dcbm:
    """DCB-M, an overlay designed in parts, as we interpret it (only abstracts of the original are public).

    The nodes are permanently divided into parts of equal size. The greedy designs an overlay inside each part, and continues over
    all nodes with these edges kept. When interests change, the edges inside the parts with a changed node are redesigned, all
    others are kept, and the greedy continues from there.
    """

    def __init__(
        self,
        interests: BrokerInterests,
        parts: int,
        generator: np.random.Generator,
        algorithm: GreedyAlgorithm = "gm",
        k: Fraction = DEFAULT_K,
        strict: bool = False,
    ) -> None:
        self._greedy = (algorithm, k, strict)
        self.part = np.empty(interests.nodes, np.int64)
        self.part[generator.permutation(interests.nodes)] = np.arange(interests.nodes) % parts
        self._interests = interests
        self.edges = np.empty((0, 2), np.int32)
        """The links (m, 2), u < v: kept ones first, then those of the last change in the order added."""
        self._remake(set(range(parts)))

    def change(self, interests: BrokerInterests) -> Change:
        """Follow a batch of changes, given all nodes' interests after it, over the same nodes and topics."""
        changed = {
            int(self.part[node])
            for node in range(interests.nodes)
            if not np.array_equal(interests.row(node), self._interests.row(node))
        }
        self._interests = interests
        before = _pairs(self.edges)
        self._remake(changed)
        return Change.between(before, _pairs(self.edges))

    def _remake(self, parts: set[int]) -> None:
        ends = self.part[self.edges]
        inside = (ends[:, 0] == ends[:, 1]) & np.isin(ends[:, 0], list(parts))
        kept = [self.edges[~inside]]
        for part in sorted(parts):
            nodes = np.flatnonzero(self.part == part)
            kept.append(nodes[design(self._interests.among(nodes), *self._greedy)].astype(np.int32))
        links = np.concatenate(kept)
        apart = self._interests.only(~connected_topics(self._interests, links))  # other pairs have weight 0
        self.edges = np.concatenate([links, extend(apart, links, *self._greedy)])


def _pairs(edges: NDArray[np.int32]) -> Edges:
    return {(u, v) for u, v in edges.tolist()}


def _array(edges: Edges) -> NDArray[np.int32]:
    return np.array(sorted(edges), np.int32).reshape(-1, 2)
