"""Publisher-rooted trees: one per topic and root, computed on demand, over paths from every node or over links of the topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import ScenarioError
from sim.overlay.cuts import Cuts, no_cuts, with_changed_links
from sim.overlay.floods import NO_FLOOD, FloodParameters, flood_tree
from sim.overlay.geometry import EMPTY_TREE, TopicTree
from sim.overlay.healing import Repair
from sim.overlay.pair_times import PairTimes
from sim.overlay.tree_kernels import compact_tree, mark_routes

_REMEMBERED = 1 << 21  # positions of all cached trees
_OVERHEAD = 32  # the fixed cost of a tree, in positions
_ALL = -1  # stands for all topics, where all nodes are on all trees


class PublisherTrees(ABC):
    """Topic trees for geometries in which a topic has no root of its own: a publication starts from wherever it is published.

    The tree for one root is computed on demand, and cached until the topic changes.
    """

    nodes_are_brokers = True
    single_root = False
    floods = False
    positions: NDArray[np.float64] | None = None
    round_trips: NDArray[np.float64] | PairTimes | None = None
    period: float | None = None

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._joined: dict[int, NDArray[np.bool_]] = {}
        self._snapshots: dict[int, dict[int, TopicTree]] = {}
        self._remembered = 0

    @abstractmethod
    def edges(self) -> NDArray[np.int32]:
        """The overlay's links (m, 2), in both directions."""

    @abstractmethod
    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The nodes from the source to the root of its publications, both included."""

    @abstractmethod
    def grown(self, topic: int, root: int) -> TopicTree:
        """The tree of a topic that some node has joined at some time, as it stands now."""

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        """Raise ScenarioError: joins travel to all nodes, not to one root."""
        raise ScenarioError(
            'network.join: trees that are rooted at the publisher have no single root to ask (allowed: "instant")'
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
        """The node unsubscribes. Raises ValueError where it has not joined."""
        if topic not in self._joined or not self._joined[topic][node]:
            raise ValueError(f"node {node} is not on the tree of topic {topic}")
        self._joined[topic][node] = False
        self._forget(topic)

    def _forget(self, topic: int) -> None:
        for tree in self._snapshots.pop(topic, {}).values():
            self._remembered -= _room(tree)

    def tree(self, topic: int, root: int) -> TopicTree:
        """The tree of the topic as it stands now, from this root; the same object while the topic stays as it is.

        When the cache is full, it is cleared: there may be as many trees as topics times nodes.
        """
        if topic not in self._joined:
            return EMPTY_TREE
        tree = self._snapshots.get(topic, {}).get(root)
        if tree is None:
            tree = self.grown(topic, root)
            if self._remembered > _REMEMBERED:
                self._snapshots.clear()
                self._remembered = 0
            self._snapshots.setdefault(topic, {})[root] = tree
            self._remembered += _room(tree)
        return tree


def _room(tree: TopicTree) -> int:
    """The positions that a tree takes in the cache."""
    return len(tree) + sum(map(len, tree.neighbours)) + _OVERHEAD


class SourceTrees(PublisherTrees):
    """Topic trees over paths from every node, for geometries in which a publisher's broker is the root.

    A tree is the union of the paths from the source to all subscribers. Every node knows who subscribes: a join or leave is sent
    to all others, along the paths from the node. With `to_everybody`, as for floods, a tree reaches all nodes, and no node knows
    who subscribes.
    """

    def __init__(self, nodes: int, flooding: FloodParameters = NO_FLOOD, to_everybody: bool = False) -> None:
        super().__init__(nodes)
        self.floods, self._hop_limit = flooding.floods, flooding.hop_limit
        self._to_everybody = to_everybody or self.floods
        if self._to_everybody:
            self._joined[_ALL] = np.ones(nodes, np.bool_)

    @abstractmethod
    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """The node before each one (nodes) on its path from the source; the source's own entry is ignored.

        Every prefix of a path must be the path to the prefix's end, so that unions of paths are trees.
        """

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The source alone: it is the root."""
        return np.array([source], np.int32)

    def tree(self, topic: int, root: int) -> TopicTree:
        """The tree of the topic as it stands now, from this root; the same for all topics where trees reach all nodes."""
        return super().tree(_ALL if self._to_everybody else topic, root)

    def grown(self, topic: int, root: int) -> TopicTree:
        """The union of the paths from the root to all nodes that have joined, with others as relays; or the tree of a flood."""
        if self.floods:
            return flood_tree(root, root, self._joined[topic], *self._adjacency, self._hop_limit)
        parents = self.parents(topic, root)
        return TopicTree(*compact_tree(mark_routes(self._joined[topic], parents, root), parents, root))

    @cached_property
    def _adjacency(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The links as CSR: those of node v lead to `neighbours[first[v]:first[v + 1]]`, ascending."""
        source, target = self.edges().T
        return np.searchsorted(source, np.arange(self.nodes + 1)), target.copy()

    def control_hops(self, topic: int, node: int) -> int:
        """One message to each of the other nodes, unless no node knows who subscribes."""
        return 0 if self._to_everybody else self.nodes - 1

    def control_requests(self, topic: int, node: int) -> int:
        """The number of `control_hops`, as every node that gets a message forwards it."""
        return self.control_hops(topic, node)

    def adjust(self) -> int:
        """No messages: links are fixed."""
        return 0

    def topic_diameters(self) -> None:
        """None: topics have no links of their own."""

    def tree_state(self) -> None:
        """None: a tree follows from the paths and the subscribers, which all nodes know or none needs to."""


class HealingSourceTrees(SourceTrees):
    """Topic trees over paths from every node, which avoid nodes that are down and links that are cut."""

    def __init__(self, nodes: int, flooding: FloodParameters = NO_FLOOD, to_everybody: bool = False) -> None:
        super().__init__(nodes, flooding, to_everybody)
        self.around = self._absent = np.zeros(nodes, np.bool_)
        self.cuts = no_cuts(nodes)

    @abstractmethod
    def route_around(self, nodes: NDArray[np.bool_], failed: int, back: int, apart: int) -> int:
        """Change `parents` and `edges` so that paths avoid these nodes (n) and the `cuts`.

        `failed` nodes more than before are avoided, `back` are up again, and `apart` of the others have other cut links. Returns the
        messages that it takes.
        """

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A heartbeat from each node to each neighbour."""
        return int(np.count_nonzero(~down[self.edges()[:, 0]]))

    def heal(self, down: NDArray[np.bool_], absent: NDArray[np.bool_], cuts: Cuts | None = None) -> Repair:
        """Route around these nodes (n), and through all others again."""
        cuts = no_cuts(self.nodes) if cuts is None else cuts
        if down.all() or (np.array_equal(down, self.around) and cuts.same(self.cuts)):
            return Repair(self.around, 0)
        failed, back = (int(np.count_nonzero(those)) for those in (down & ~self.around, self.around & ~down))
        apart = with_changed_links(self.cuts, cuts, down)
        self.around, self._absent, self.cuts = down.copy(), absent.copy(), cuts
        for topic, joined in self._joined.items():
            joined[:] = ~down if topic == _ALL else joined & ~down
        self._snapshots.clear()
        self._remembered = 0
        vars(self).pop("_adjacency", None)
        return Repair(self.around, self.route_around(self.around, failed, back, apart))

    def routes_from(self, topic: int, node: int) -> NDArray[np.int32]:
        """The paths from the node."""
        before = self.parents(topic, node).copy()
        before[node] = -1
        return before

    def grown(self, topic: int, root: int) -> TopicTree:
        """The tree from the root; from one that is routed around only while it is leaving, as publications don't set out elsewhere."""
        leaving = self._absent[root] and not self.floods
        return EMPTY_TREE if self.around[root] and not leaving else super().grown(topic, root)

    def control_hops(self, topic: int, node: int) -> int:
        """One message to each of the other nodes that are not routed around, unless no node knows who subscribes."""
        return max(super().control_hops(topic, node) - int(np.count_nonzero(self.around)), 0)
