"""Broadcast: every publication is sent to every broker, whether it is wanted there or not."""

from __future__ import annotations

from sim import plugins
from sim.overlay.full_mesh import Mesh
from sim.overlay.geometry import GeometrySetting


class Broadcast(Mesh):
    """Every broker linked to every other; a publisher's broker sends to all others, whether they want the topic or not."""

    class Parameters(plugins.Parameters):
        pass

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        super().__init__(setting.nodes, to_everybody=True)
