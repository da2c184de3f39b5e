"""Rendezvous trees: one per topic, rooted at the rendezvous point, the union of the overlay's routes to all subscribers."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.overlay.geometry import EMPTY_TREE, TopicTree
from sim.overlay.tree_kernels import compact_tree, forward_route, round_trip_length, route_length, shift_counts

TreeState = Literal["children", "members"]
"""What a node keeps of a tree that it is on: its children, or all members below it."""


class RendezvousTrees:
    """Topic trees over fixed routing tables, kept up to date join by join and leave by leave.

    `roots` (topics): the rendezvous node of each topic; `next_hop` and `parent` (nodes, nodes): of the routes, as in
    `tree_kernels.chord_tables`. Every prefix of a route must be the route to the prefix's end, so that unions of routes are trees.
    A join or leave walks one path to the root: v is on the tree of p while some subscriber of p stands at or below it.
    """

    nodes_are_brokers = False
    single_root = True
    floods = False
    positions: NDArray[np.float64] | None = None
    round_trips: NDArray[np.float64] | None = None
    period: float | None = None

    def __init__(
        self,
        roots: NDArray[np.int32],
        next_hop: NDArray[np.int32],
        parent: NDArray[np.int32],
        state: TreeState = "children",
    ) -> None:
        self.roots: list[int] = roots.tolist()
        self.next_hop = next_hop
        self.parent = parent
        self._state = state
        self._counts: dict[int, NDArray[np.int32]] = {}
        self._joined: dict[int, NDArray[np.bool_]] = {}
        self._snapshots: dict[int, TopicTree] = {}

    @cached_property
    def hops(self) -> NDArray[np.int32]:
        """The hops (n, n) of the route from each node to each."""
        nodes = range(len(self.next_hop))
        return np.array([[route_length(self.next_hop, u, v) for v in nodes] for u in nodes], np.int32)

    def route(self, source: int, target: int) -> NDArray[np.int32]:
        """The nodes from one to another, both included."""
        return forward_route(self.next_hop, source, target)

    def joined(self, node: int) -> NDArray[np.bool_]:
        """Which topics' trees (topics) the node has joined."""
        joined = np.zeros(len(self.roots), np.bool_)
        for topic, nodes in self._joined.items():
            joined[topic] = nodes[node]
        return joined

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The route from `source` to the rendezvous node, both included."""
        return self.route(source, self.roots[topic])

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        """The route to the rendezvous node, and on along the route from there to the node."""
        back = forward_route(self.next_hop, self.roots[topic], node)
        return np.concatenate([self.uplink(topic, node), back[1:]])

    def control_hops(self, topic: int, node: int) -> int:
        """The hops to the rendezvous node and back."""
        return round_trip_length(self.next_hop, node, self.roots[topic])

    def control_requests(self, topic: int, node: int) -> int:
        """A request and its answer."""
        return 2

    def edges(self) -> NDArray[np.int32]:
        """All routes of one hop (m, 2), ascending."""
        links = self.next_hop == np.arange(len(self.next_hop))
        np.fill_diagonal(links, False)
        return np.argwhere(links).astype(np.int32)

    def adjust(self) -> int:
        """Nothing: links are there for good."""
        return 0

    def topic_diameters(self) -> None:
        """None: topics have no links of their own."""

    def tree_state(self) -> int:
        """The entries that all nodes keep, over all trees: their children, or the members below them, themselves not counted."""
        if self._state == "members":
            return sum(int(counts.sum()) - int(self._joined[t].sum()) for t, counts in self._counts.items())
        return sum(max(int(np.count_nonzero(counts)) - 1, 0) for counts in self._counts.values())

    def join(self, topic: int, node: int) -> None:
        """Put the node on the topic's tree. Raises ValueError where it has joined already."""
        if topic not in self._counts:
            self._counts[topic] = np.zeros(len(self.next_hop), np.int32)
            self._joined[topic] = np.zeros(len(self.next_hop), np.bool_)
        if self._joined[topic][node]:
            raise ValueError(f"node {node} is on the tree of topic {topic} already")
        self._shift(topic, node, +1)

    def leave(self, topic: int, node: int) -> None:
        """Take the node off the topic's tree; it stays as a relay while others are below it.

        Raises ValueError where it has not joined.
        """
        if topic not in self._counts or not self._joined[topic][node]:
            raise ValueError(f"node {node} is not on the tree of topic {topic}")
        self._shift(topic, node, -1)

    def _shift(self, topic: int, node: int, change: int) -> None:
        self._joined[topic][node] = change > 0
        if shift_counts(self._counts[topic], self.parent[self.roots[topic]], node, change):
            self._snapshots.pop(topic, None)

    def tree(self, topic: int, root: int) -> TopicTree:
        """The tree of the topic as it stands now, from the one root that it has."""
        tree = self._snapshots.get(topic)
        if tree is None:
            if topic not in self._counts:
                return EMPTY_TREE
            root = self.roots[topic]  # whatever is asked for
            tree = TopicTree(*compact_tree(self._counts[topic], self.parent[root], root))
            self._snapshots[topic] = tree
        return tree
