"""Full mesh: every broker is linked to every other, and publications go directly to all that want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.overlay.cuts import hung_elsewhere
from sim.overlay.floods import FloodParameters
from sim.overlay.geometry import GeometrySetting
from sim.overlay.source_trees import HealingSourceTrees


def live_pairs(around: NDArray[np.bool_]) -> NDArray[np.int32]:
    """All pairs (m, 2) of nodes that are not routed `around` (n), ascending."""
    live = np.flatnonzero(~around)
    return live[np.argwhere(~np.eye(len(live), dtype=np.bool_))].astype(np.int32)


class Mesh(HealingSourceTrees):
    """Every broker linked to every other."""

    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """Each node's parent is the source itself, or where that link is cut, another node."""
        parents = np.full(self.nodes, source, np.int32)
        return hung_elsewhere(parents, source, self.around, self.cuts) if self.cuts.any() else parents

    def edges(self) -> NDArray[np.int32]:
        """All pairs of nodes (m, 2), ascending."""
        return live_pairs(self.around)

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A heartbeat from each node to each other."""
        return int(np.count_nonzero(~down)) * (int(np.count_nonzero(~self.around)) - 1)

    def route_around(self, nodes: NDArray[np.bool_], failed: int, back: int, apart: int) -> int:
        """A node that is up again sends a message to each other, which answers; one whose links are cut or mended tells all others."""
        return (2 * back + apart) * (int(np.count_nonzero(~nodes)) - 1)


class FullMesh(Mesh):
    """Every broker linked to every other; a publisher's broker sends to all brokers that subscribe, in one hop, or floods."""

    class Parameters(FloodParameters):
        pass

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        super().__init__(setting.nodes, parameters)
