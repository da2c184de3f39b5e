"""Topics sharded over the brokers: each has one owner, which sends its publications straight to all who want them."""

from __future__ import annotations

import numpy as np

from sim import plugins
from sim.overlay.chord import hashed_topics
from sim.overlay.geometry import GeometrySetting
from sim.overlay.trees import RendezvousTrees

_BITS = 32


class OwnerShard(RendezvousTrees):
    """Every topic is owned by one broker, by the topic's hash, which sends publications straight to all brokers that want it.

    All brokers are linked to each other, and own equal parts of the hashes, in the order of their numbers.
    """

    class Parameters(plugins.Parameters):
        pass

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        nodes = np.arange(setting.nodes, dtype=np.int32)
        next_hop = np.tile(nodes, (len(nodes), 1))
        parent = next_hop.T.copy()
        np.fill_diagonal(parent, -1)
        owners = hashed_topics(setting, _BITS) * len(nodes) >> _BITS
        super().__init__(owners.astype(np.int32), next_hop, parent)
