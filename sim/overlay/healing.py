"""Healing: the optional ability of a geometry to route around nodes that are down, and what this takes in messages."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sim.overlay.cuts import Cuts, hung_elsewhere, no_cuts
from sim.overlay.geometry import EMPTY_TREE, TopicTree
from sim.overlay.tree_kernels import SELF, compact_tree, count_members, edges_not_in, mark_routes
from sim.overlay.trees import RendezvousTrees, TreeState


@dataclass(frozen=True, eq=False)
class Repair:
    """The outcome of healing: the nodes (n) that are routed around from now on, and the messages between brokers that it took.

    Also, where topics have one root each: how many `topics` have another one, and on how many `trees` a node has another parent.
    """

    around: NDArray[np.bool_]
    messages: int
    topics: int = 0
    trees: int = 0


@runtime_checkable
class Healing(Protocol):
    """An optional ability of a geometry, which `[network.healing]` needs."""

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """The messages by which nodes check each other once, while these nodes (n) are down and send none."""

    def heal(self, down: NDArray[np.bool_], absent: NDArray[np.bool_], cuts: Cuts | None = None) -> Repair:
        """Route around these nodes (n), and through all others again; who has joined a topic, stays on it unless routed around.

        Nodes that cannot be routed around stay as they are: they are not in `Repair.around`, which is a subset of `down`. Those of
        them that are `absent` (n), as they are to join or have left as planned, always can. Without another node nothing changes.
        Routes and trees avoid cut links where other links lead to a node, and lead over them where none does.
        """

    def routes_from(self, topic: int, node: int) -> NDArray[np.int32]:
        """The node before each one (n) on the present route for a topic from a node that is not routed around.

        -1 for the node itself, and where there is no route; a route may still pass through nodes that are routed around, and
        over cut links.
        """


class Detour(NamedTuple):
    """The routes from a node to others as a tree, and at which positions (k) nodes wait, as no route leads there now.

    These are children of the node, without a link to it.
    """

    tree: TopicTree
    waits: NDArray[np.bool_]


def detour(
    before: NDArray[np.int32], node: int, to: Sequence[int], around: NDArray[np.bool_], cuts: Cuts | None = None
) -> Detour:
    """The present routes from a node to others, with `before` from `Healing.routes_from`; `around` (n) and `cuts` are to be avoided."""
    before, wanted, waiting = before.copy(), np.zeros(around.size, np.bool_), np.zeros(around.size, np.bool_)
    wanted[list(to)] = True
    for other in to:
        here = other
        while here >= 0 and here != node and not around[here]:
            above = int(before[here])
            here = -1 if cuts is not None and above >= 0 and cuts.cut(here, above) else above
        waiting[other] = here != node
    before[waiting] = node
    tree = TopicTree(*compact_tree(mark_routes(wanted, before, node), before, node))
    return Detour(tree, waiting[tree.nodes])


def below(node: int, tree: TopicTree) -> TopicTree:
    """The tree with another root above its own."""
    return TopicTree(
        np.concatenate([[node], tree.nodes]).astype(np.int32),
        np.concatenate([[-1], tree.parents + 1]).astype(np.int32),
        np.concatenate([[1], tree.first_child + 1]).astype(np.int32),
        np.concatenate([[0], tree.depth + 1]).astype(np.int32),
    )


def rejoining(nodes: int, back: int) -> int:
    """The messages by which nodes rejoin a structured overlay of this many: ⌈log₂² nodes⌉ each."""
    return back * math.ceil(math.log2(max(nodes, 1)) ** 2)


class HealingTrees(RendezvousTrees):
    """Rendezvous trees that heal: they are routed again, and every broker whose parent on a tree is another one rejoins there.

    That takes a request and its answer for each new edge of a tree. A publication that reaches a former root is sent from there to
    all members, along the routes from the former root; or to the present root first, if the former one is leaving.
    """

    def __init__(self, roots: NDArray[np.int32], nodes: int, state: TreeState = "children") -> None:
        super().__init__(roots, nodes, state)
        self.around = self._absent = np.zeros(nodes, np.bool_)
        self._cuts = no_cuts(nodes)
        self._former: dict[int, dict[int, TopicTree | None]] = {}  # topic → former root → its tree, once it is needed

    @abstractmethod
    def route_around(self, nodes: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Change `next_hops`, `last_hops` and `edges` so that routes avoid these nodes (n); returns the new roots (topics)."""

    def out_of_reach(self, down: NDArray[np.bool_], absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The nodes (n) among those that are down, but not absent, that cannot be routed around: by default none."""
        return np.zeros_like(down)

    def returning(self, live: int, back: int) -> int:
        """The messages by which nodes that are up again rejoin, with `live` nodes in all."""
        return rejoining(live, back)

    def _from(self, root: int) -> NDArray[np.int32]:
        """The node before each one on the route from a root, where no cut link is passed if that is possible."""
        if root not in self._last_hops:
            self._last_hops[root] = self.routes_from(-1, root)
        return self._last_hops[root]

    def _to(self, root: int) -> NDArray[np.int32]:
        """The node after each one on the route to a root, where no cut link is passed if that is possible."""
        if root not in self._next_hops:
            self._next_hops[root] = self._hung(self.next_hops(root), root)
        return self._next_hops[root]

    def _hung(self, before: NDArray[np.int32], root: int) -> NDArray[np.int32]:
        return hung_elsewhere(before, root, self.around, self._cuts) if self._cuts.any() else before

    def heal(self, down: NDArray[np.bool_], absent: NDArray[np.bool_], cuts: Cuts | None = None) -> Repair:
        """Route around these nodes (n), and through all others again."""
        around = down & ~self.out_of_reach(down, absent)
        cuts = no_cuts(self.nodes) if cuts is None else cuts
        if down.all() or (np.array_equal(around, self.around) and cuts.same(self._cuts)):
            return Repair(self.around, 0)
        self._cuts = cuts
        back = int(np.count_nonzero(self.around & ~around))
        messages = self.returning(int(np.count_nonzero(~around)), back)
        former, before = self.roots, self._last_hops
        self.around, self._absent, self._next_hops, self._last_hops = around, absent, {}, {}
        self.roots = self.route_around(around).tolist()
        vars(self).pop("parent", None)
        vars(self).pop("hops", None)
        moved = [topic for topic, root in enumerate(self.roots) if root != former[topic]]
        for topic in moved:
            self._former.setdefault(topic, {})[former[topic]] = None
        self._snapshots.clear()
        for topic in self._former:
            self._forget(topic)
        trees = 0
        for topic in range(len(self.roots)):
            standing = self._members.row(topic)
            if standing.any():
                parents = before.get(former[topic], np.empty(0, np.int32)), self._from(self.roots[topic])
                counts = count_members((standing & SELF > 0) & ~around, parents[1])
                edges = edges_not_in(standing, parents[0], counts, parents[1])
                messages += 2 * edges
                trees += edges > 0
                self._members.replace(topic, counts)
        return Repair(around, messages, len(moved), trees)

    def routes_from(self, topic: int, node: int) -> NDArray[np.int32]:
        """By the rule of routes, which is the same for all topics."""
        return self._hung(self.last_hops(node), node)

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The route to the root; from a node that is routed around, where publications wait until it is back, directly."""
        return np.array([source, self.roots[topic]], np.int32) if self.around[source] else super().uplink(topic, source)

    def _forget(self, topic: int) -> None:
        if topic in self._former:
            self._former[topic] = dict.fromkeys(self._former[topic])

    def _shift(self, topic: int, node: int, change: int) -> bool:
        if self.around[node]:
            raise ValueError(f"node {node} is routed around, and on no tree")
        self._forget(topic)
        return super()._shift(topic, node, change)

    def tree(self, topic: int, root: int) -> TopicTree:
        """The present tree of the topic from its root, or from a former one, to which a publication was on its way."""
        known = self._former.get(topic, {})
        if root == self.roots[topic] or root not in known:
            return super().tree(topic, root)
        tree = known[root]
        if tree is None:
            tree = known[root] = self._from_former(topic, root)
        return tree

    def _from_former(self, topic: int, root: int) -> TopicTree:
        joined = (self._members.row(topic) & SELF).astype(np.bool_)
        if not joined.any() or (self.around[root] and not self._absent[root]):
            return EMPTY_TREE
        if self.around[root]:
            return below(root, self.tree(topic, self.roots[topic]))
        parents = self._from(root)
        return TopicTree(*compact_tree(mark_routes(joined, parents, root), parents, root))
