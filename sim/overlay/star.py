"""Star: one broker is the hub, and all others are linked to it alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.errors import refuse, unknown_of_many
from sim.overlay.geometry import GeometrySetting
from sim.overlay.healing import HealingTrees
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites
from sim.overlay.trees import ascending_links

CENTRAL = "central"


class Star(HealingTrees):
    """One broker as the hub, all others linked to it alone; it is the root of all topics.

    While it is down, the most central of the others takes its place.
    """

    class Parameters(plugins.Parameters):
        hub: str = CENTRAL
        """A broker's name, or "central": the broker with the smallest sum of round-trip times to the others."""

        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            if sites is None or self.hub in (CENTRAL, *sites.names):
                return None
            wrong = unknown_of_many("broker", self.hub, sites.names)
            return f"network.geometry.hub: {wrong} (allowed: a broker's name, '{CENTRAL}')"

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where no broker has the hub's name."""
        refuse(parameters.unfit(setting.nodes, setting.sites))
        self.hub = self._first = _hub(parameters.hub, setting)
        assert setting.round_trips is not None
        self._times = setting.round_trips
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
        others = np.flatnonzero(~self.around)
        others = others[others != self.hub]
        hub = np.full_like(others, self.hub)
        return ascending_links(np.append(hub, others), np.append(others, hub))

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """A heartbeat over each link, from both ends."""
        return int(np.count_nonzero(~down[self.edges()[:, 0]]))

    def returning(self, live: int, back: int) -> int:
        """A node that is up again sends a message to the hub, which answers."""
        return 2 * back

    def route_around(self, nodes: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The first hub, or the most central of the nodes that are left."""
        self.hub = _most_central(self._times, np.flatnonzero(~nodes)) if nodes[self._first] else self._first
        return np.full(len(self.roots), self.hub, np.int32)


def _most_central(times: NDArray[np.float64] | PairTimes, live: NDArray[np.int64]) -> int:
    """The node of those that are live with the least sum of times to the others, the lowest number on ties."""
    sums = [math.fsum(times[node, live]) for node in live.tolist()]  # summed exactly, so that ties are exact
    return int(live[sums.index(min(sums))])


def _hub(wanted: str, setting: GeometrySetting) -> int:
    """The broker of this name, or the central one: the lowest number on ties."""
    assert setting.sites is not None
    assert setting.round_trips is not None
    names = setting.sites.names
    if wanted in names:
        return names.index(wanted)
    return _most_central(setting.round_trips, np.arange(len(names)))
