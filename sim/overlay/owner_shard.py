"""Topics sharded over the brokers: each has one owner, which sends its publications directly to all brokers that want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.overlay.chord import hashed_topics
from sim.overlay.full_mesh import live_pairs
from sim.overlay.geometry import GeometrySetting
from sim.overlay.healing import HealingTrees

_BITS = 32


class OwnerShard(HealingTrees):
    """Every topic is owned by one broker, chosen by the topic's hash, which sends publications directly to all brokers that want it.

    All brokers are linked to each other, and own equal ranges of the hashes, in the order of their numbers.
    While an owner is down, the next broker owns its topics.
    """

    class Parameters(plugins.Parameters):
        pass

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        self._owners = (hashed_topics(setting, _BITS) * setting.nodes >> _BITS).astype(np.int32)
        super().__init__(self._owners, setting.nodes)

    def next_hops(self, target: int) -> NDArray[np.int32]:
        """The next hop from every node is the target."""
        return np.full(self.nodes, target, np.int32)

    def last_hops(self, source: int) -> NDArray[np.int32]:
        """The source, everywhere."""
        hops = np.full(self.nodes, source, np.int32)
        hops[source] = -1
        return hops

    def edges(self) -> NDArray[np.int32]:
        """All pairs of nodes (m, 2), ascending."""
        return live_pairs(self.around)

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A heartbeat from each node to each other."""
        return int(np.count_nonzero(~down)) * (int(np.count_nonzero(~self.around)) - 1)

    def returning(self, live: int, back: int) -> int:
        """A node that is up again sends a message to each other, which answers."""
        return 2 * back * (live - 1)

    def route_around(self, nodes: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The owners, or the next nodes by number, cyclically, where they are routed around."""
        live = np.flatnonzero(~nodes).astype(np.int32)
        return live[np.searchsorted(live, self._owners) % len(live)]
