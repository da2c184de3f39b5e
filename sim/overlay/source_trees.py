"""Publisher-rooted trees: one per topic and publisher's node, the union of the shortest paths from there to all subscribers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from sim.errors import ScenarioError
from sim.overlay.geometry import EMPTY_TREE, TopicTree
from sim.overlay.tree_kernels import compact_tree, mark_routes

_REMEMBERED = 1 << 21  # positions of all trees that are remembered
_OVERHEAD = 32  # what a tree takes beside its positions, in positions


class SourceTrees(ABC):
    """Topic trees over paths from every node, for geometries in which a broker publishes on its own: there is no way up to a root.

    Every node knows who subscribes: a join or leave is told to all others, along the paths from the node. The tree for one source is
    made when it is first asked for, and remembered until the topic changes.
    """

    anchored = True
    rendezvous = False
    positions: NDArray[np.float64] | None = None
    round_trips: NDArray[np.float64] | None = None

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._joined: dict[int, NDArray[np.bool_]] = {}
        self._snapshots: dict[int, dict[int, TopicTree]] = {}
        self._remembered = 0

    @abstractmethod
    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """The node before each one (nodes) on its path from the source; what it says of the source itself is not looked at.

        Every prefix of a path must be the path to the prefix's end, so that unions of paths are trees.
        """

    @abstractmethod
    def edges(self) -> NDArray[np.int32]:
        """The overlay's links (m, 2), in both directions."""

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The source alone: it is the root."""
        return np.array([source], np.int32)

    def control_hops(self, topic: int, node: int) -> int:
        """One message to each of the other nodes."""
        return self.nodes - 1

    def control_requests(self, topic: int, node: int) -> int:
        """One message to each of the other nodes: everybody that gets it passes it on."""
        return self.nodes - 1

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        """Raises ScenarioError: joins travel to all nodes, not to one root."""
        raise ScenarioError(
            'network.join: trees that are rooted at the publisher have no one root to ask (allowed: "instant")'
        )

    def join(self, topic: int, node: int) -> None:
        """Put the node on the topic's trees. Raises ValueError where it has joined already."""
        if topic not in self._joined:
            self._joined[topic] = np.zeros(self.nodes, np.bool_)
        if self._joined[topic][node]:
            raise ValueError(f"node {node} is on the tree of topic {topic} already")
        self._joined[topic][node] = True
        self._forget(topic)

    def leave(self, topic: int, node: int) -> None:
        """Take the node off the topic's trees; it stays as a relay where it is on the path to others.

        Raises ValueError where it has not joined.
        """
        if topic not in self._joined or not self._joined[topic][node]:
            raise ValueError(f"node {node} is not on the tree of topic {topic}")
        self._joined[topic][node] = False
        self._forget(topic)

    def _forget(self, topic: int) -> None:
        for tree in self._snapshots.pop(topic, {}).values():
            self._remembered -= len(tree) + _OVERHEAD

    def tree(self, topic: int, source: int) -> TopicTree:
        """The tree of the topic as it stands now, rooted at the source; the same object while the topic stays as it is.

        When too many are remembered, all are forgotten: there may be as many as topics times nodes.
        """
        if topic not in self._joined:
            return EMPTY_TREE
        tree = self._snapshots.get(topic, {}).get(source)
        if tree is None:
            parents = self.parents(topic, source)
            tree = TopicTree(*compact_tree(mark_routes(self._joined[topic], parents, source), parents, source))
            if self._remembered > _REMEMBERED:
                self._snapshots.clear()
                self._remembered = 0
            self._snapshots.setdefault(topic, {})[source] = tree
            self._remembered += len(tree) + _OVERHEAD
        return tree
