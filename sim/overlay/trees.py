"""Rendezvous trees: one per topic, rooted at the rendezvous point, the union of the overlay's routes to all subscribers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.sparse import SparseCounts
from sim.overlay.geometry import TopicTree
from sim.overlay.pair_times import PairTimes
from sim.overlay.tree_kernels import (
    BELOW,
    LACKS_SPACE,
    REFUSED,
    SELF,
    backward_length,
    backward_route,
    compact_tree,
    forward_length,
    forward_route,
    route_lengths,
    shift_members,
)

TreeState = Literal["children", "members"]
"""The state that a node keeps for a tree that it is on: its children, or all members below it."""


def ascending_links(source: Integers, destination: Integers) -> NDArray[np.int32]:
    """Links (m, 2) in the order of their sources, then of their destinations."""
    return np.stack([source, destination], 1)[np.lexsort((destination, source))].astype(np.int32)


class RendezvousTrees(ABC):
    """Topic trees over fixed routes, kept up to date join by join and leave by leave.

    `roots` (topics): the rendezvous node of each topic, among `nodes` nodes. Every prefix of a route must be the route to the
    prefix's end, so that unions of routes are trees. A join or leave walks one path to the root: v is on the tree of p while some
    subscriber of p stands at or below it. Only routes from and to roots are stored.
    """

    nodes_are_brokers = False
    single_root = True
    floods = False
    positions: NDArray[np.float64] | None = None
    round_trips: NDArray[np.float64] | PairTimes | None = None
    period: float | None = None

    def __init__(self, roots: NDArray[np.int32], nodes: int, state: TreeState = "children") -> None:
        self.roots: list[int] = roots.tolist()
        self.nodes = nodes
        self._state = state
        self._next_hops: dict[int, NDArray[np.int32]] = {}  # by target
        self._last_hops: dict[int, NDArray[np.int32]] = {}  # by source
        # what members add to the counts of nodes, by topic and node
        self._members = SparseCounts(len(self.roots), nodes)
        self._snapshots: dict[int, TopicTree] = {}

    @abstractmethod
    def next_hops(self, target: int) -> NDArray[np.int32]:
        """The next hop (nodes) of each node on its route to the target; the target itself for the target."""

    @abstractmethod
    def last_hops(self, source: int) -> NDArray[np.int32]:
        """The node before each node (nodes) on the route to it from the source; -1 for the source."""

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """The node before v on the route from u to v, for all (nodes, nodes)."""
        return np.stack([self.last_hops(u) for u in range(self.nodes)])

    @cached_property
    def hops(self) -> NDArray[np.int32]:
        """The hops of the route from each node to each (nodes, nodes)."""
        return np.stack([route_lengths(row) for row in self.parent])

    def _to(self, root: int) -> NDArray[np.int32]:
        if root not in self._next_hops:
            self._next_hops[root] = self.next_hops(root)
        return self._next_hops[root]

    def _from(self, root: int) -> NDArray[np.int32]:
        if root not in self._last_hops:
            self._last_hops[root] = self.last_hops(root)
        return self._last_hops[root]

    def route(self, source: int, target: int) -> NDArray[np.int32]:
        """The nodes from one to another, both included."""
        return forward_route(self.next_hops(target), source)

    def joined(self, node: int) -> NDArray[np.bool_]:
        """Which topics' trees (topics) the node has joined."""
        return (self._members.in_column(node) & SELF).astype(np.bool_)

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The route from `source` to the rendezvous node, both included."""
        return forward_route(self._to(self.roots[topic]), source)

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        """The route to the rendezvous node, and on along the route from there to the node."""
        back = backward_route(self._from(self.roots[topic]), node)
        return np.concatenate([self.uplink(topic, node), back[1:]])

    def control_hops(self, topic: int, node: int) -> int:
        """The hops to the rendezvous node and back."""
        root = self.roots[topic]
        return forward_length(self._to(root), node) + backward_length(self._from(root), node)

    def control_requests(self, topic: int, node: int) -> int:
        """A request and its answer."""
        return 2

    @abstractmethod
    def edges(self) -> NDArray[np.int32]:
        """All routes of one hop (m, 2), ascending."""

    def adjust(self) -> int:
        """No messages: links are fixed."""
        return 0

    def topic_diameters(self) -> NDArray[np.int64] | None:
        """None: topics have no links of their own."""
        return None

    def tree_state(self) -> int:
        """The entries that all nodes keep, over all trees: their children, or the members below them (without themselves)."""
        topics = (self._members.row(topic) for topic in range(len(self.roots)))
        if self._state == "members":
            return sum(int((counts // BELOW).sum()) - int((counts & SELF).sum()) for counts in topics)
        return sum(max(int(np.count_nonzero(counts)) - 1, 0) for counts in topics)

    def join(self, topic: int, node: int) -> None:
        """Put the node on the topic's tree. Raises ValueError where it has joined already."""
        if not self._shift(topic, node, +1):
            raise ValueError(f"node {node} is on the tree of topic {topic} already")

    def leave(self, topic: int, node: int) -> None:
        """Take the node off the topic's tree; it stays as a relay while others are below it.

        Raises ValueError where it has not joined.
        """
        if not self._shift(topic, node, -1):
            raise ValueError(f"node {node} is not on the tree of topic {topic}")

    def _shift(self, topic: int, node: int, change: int) -> bool:
        """Let the node join (+1) or leave (-1); false where it cannot. Raises IndexError for a topic or node that does not exist."""
        shift = self._members.records, topic, self._from(self.roots[topic]), node, change
        changed = shift_members(*shift)
        if changed == LACKS_SPACE:
            self._members.reserve(1)
            changed = shift_members(*shift)
        if changed == REFUSED:
            self._members.at(topic, node)
            return False
        if changed:
            self._snapshots.pop(topic, None)
        return True

    def tree(self, topic: int, root: int) -> TopicTree:
        """The present tree of the topic, from its single root."""
        tree = self._snapshots.get(topic)
        if tree is None:
            root = self.roots[topic]  # whatever root is given
            tree = TopicTree(*compact_tree(self._members.row(topic), self._from(root), root))
            self._snapshots[topic] = tree
        return tree
