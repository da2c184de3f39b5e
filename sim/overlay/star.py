"""One broker in the middle: all others are linked to it alone."""

from __future__ import annotations

import math

import numpy as np

from sim import plugins
from sim.base.errors import ScenarioError, unknown_of_many
from sim.overlay.geometry import GeometrySetting
from sim.overlay.trees import RendezvousTrees

CENTRAL = "central"


class Star(RendezvousTrees):
    """One broker as the hub, all others linked to it alone; it is the root of all topics."""

    class Parameters(plugins.Parameters):
        hub: str = CENTRAL
        """A broker's name, or "central": the broker with the smallest sum of round-trip times to the others."""

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where no broker has the hub's name."""
        nodes = np.arange(setting.nodes, dtype=np.int32)
        self.hub = _hub(parameters.hub, setting)
        at_hub = nodes == self.hub
        next_hop = np.where(at_hub[:, None] | at_hub[None, :], nodes[None, :], np.int32(self.hub))
        parent = np.where(at_hub[:, None] | at_hub[None, :], nodes[:, None], np.int32(self.hub))
        np.fill_diagonal(next_hop, nodes)
        np.fill_diagonal(parent, -1)
        super().__init__(np.full(setting.topics, self.hub, np.int32), next_hop, parent)


def _hub(wanted: str, setting: GeometrySetting) -> int:
    """The broker of this name, or the central one: the lowest number on ties."""
    assert setting.sites is not None
    assert setting.round_trips is not None
    names = setting.sites.names
    if wanted in names:
        return names.index(wanted)
    if wanted != CENTRAL:
        raise ScenarioError(
            f"network.geometry.hub: {unknown_of_many('broker', wanted, names)} (allowed: a broker's name, '{CENTRAL}')"
        )
    sums = [math.fsum(times) for times in setting.round_trips]  # exact, so that ties are
    return sums.index(min(sums))
