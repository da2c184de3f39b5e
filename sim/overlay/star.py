"""Star: one broker is the hub, and all others are linked to it alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.errors import ScenarioError, unknown_of_many
from sim.overlay.geometry import GeometrySetting
from sim.overlay.trees import RendezvousTrees, ascending_links

CENTRAL = "central"


class Star(RendezvousTrees):
    """One broker as the hub, all others linked to it alone; it is the root of all topics."""

    class Parameters(plugins.Parameters):
        hub: str = CENTRAL
        """A broker's name, or "central": the broker with the smallest sum of round-trip times to the others."""

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where no broker has the hub's name."""
        self.hub = _hub(parameters.hub, setting)
        super().__init__(np.full(setting.topics, self.hub, np.int32), setting.nodes)

    def next_hops(self, target: int) -> NDArray[np.int32]:
        """The hub; the target for the hub and for the target itself."""
        hops = np.full(self.nodes, self.hub, np.int32)
        hops[[self.hub, target]] = target
        return hops

    def last_hops(self, source: int) -> NDArray[np.int32]:
        """The hub; the source for the hub."""
        hops = np.full(self.nodes, self.hub, np.int32)
        hops[self.hub] = source
        hops[source] = -1
        return hops

    def edges(self) -> NDArray[np.int32]:
        """The links from the hub to all others, and back."""
        others = np.delete(np.arange(self.nodes), self.hub)
        hub = np.full_like(others, self.hub)
        return ascending_links(np.append(hub, others), np.append(others, hub))


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
    sums = [math.fsum(times) for times in setting.round_trips]  # summed exactly, so that ties are exact
    return sums.index(min(sums))
