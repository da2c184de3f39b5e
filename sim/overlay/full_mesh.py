"""Full mesh: every broker is linked to every other, and publications go directly to all that want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.overlay.floods import FloodParameters
from sim.overlay.geometry import GeometrySetting
from sim.overlay.source_trees import SourceTrees


class Mesh(SourceTrees):
    """Every broker linked to every other."""

    def parents(self, topic: int, source: int) -> NDArray[np.int32]:
        """Each node's parent is the source itself."""
        return np.full(self.nodes, source, np.int32)

    def edges(self) -> NDArray[np.int32]:
        """All pairs of nodes (m, 2), ascending."""
        return np.argwhere(~np.eye(self.nodes, dtype=np.bool_)).astype(np.int32)


class FullMesh(Mesh):
    """Every broker linked to every other; a publisher's broker sends to all brokers that subscribe, in one hop, or floods."""

    class Parameters(FloodParameters):
        pass

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        super().__init__(setting.nodes, parameters)
