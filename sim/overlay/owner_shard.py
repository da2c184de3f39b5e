"""Topics sharded over the brokers: each has one owner, which sends its publications directly to all brokers that want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.overlay.chord import hashed_topics
from sim.overlay.geometry import GeometrySetting
from sim.overlay.trees import RendezvousTrees

_BITS = 32


class OwnerShard(RendezvousTrees):
    """Every topic is owned by one broker, chosen by the topic's hash, which sends publications directly to all brokers that want it.

    All brokers are linked to each other, and own equal ranges of the hashes, in the order of their numbers.
    """

    class Parameters(plugins.Parameters):
        pass

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        owners = hashed_topics(setting, _BITS) * setting.nodes >> _BITS
        super().__init__(owners.astype(np.int32), setting.nodes)

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
        return np.argwhere(~np.eye(self.nodes, dtype=np.bool_)).astype(np.int32)
