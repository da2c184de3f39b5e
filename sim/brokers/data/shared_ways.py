"""Ways of publications on topics with shared subscriptions: the part of the tree that leads to those who get them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.due import Due, DueByTopic
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.users.sharing import Chosen
from sim.overlay.geometry import TopicTree

MOST_WAYS = 1 << 10
"""The most ways from a root that are kept."""


class SharedWay(NamedTuple):
    """The tree that a publication takes, its brokers by position (as an array and as a list), and to whom it is due."""

    tree: TopicTree
    brokers: NDArray[np.int32]
    listed: list[int]
    due: Due


class SharedWays:
    """Caches the ways from each root by the members that were chosen, as long as tree and subscriptions are the same."""

    def __init__(self, fabric: Fabric, due: DueByTopic) -> None:
        self._fabric, self._due = fabric, due
        self._known: dict[tuple[int, int], tuple[TopicTree, int, dict[Chosen, SharedWay]]] = {}

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        self._known.clear()

    def of(self, topic: int, root: int, chosen: Chosen) -> SharedWay:
        """The way on a topic from a root (a broker) now, to the chosen members and those with a subscription of their own."""
        fabric, version = self._fabric, self._due.subscriptions.version.item(topic)
        tree = fabric.overlay.tree(topic, int(fabric.node_of[root]))
        known = self._known.get((topic, root))
        if known is None or known[0] is not tree or known[1] != version or len(known[2]) >= MOST_WAYS:
            known = self._known[topic, root] = tree, version, {}
        way = known[2].get(chosen)
        if way is None:
            brokers = fabric.broker_of[tree.nodes]
            due = self._due.leaving_with(topic, brokers, chosen)
            onward = tree.pruned(due.on_tree > 0)
            if onward is not tree:
                brokers = fabric.broker_of[onward.nodes]
                due = self._due.leaving_with(topic, brokers, chosen)
            way = known[2][chosen] = SharedWay(onward, brokers, brokers.tolist(), due)
        return way
