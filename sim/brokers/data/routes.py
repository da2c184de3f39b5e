"""Uplinks: the brokers on the paths of publications from their publishers' brokers to the roots of their trees."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.fabric import Fabric

_MOST = 1 << 17  # uplinks that are cached


class Uplink(NamedTuple):
    """The brokers of an uplink, from the publisher's to the root, as an array and as a list; `times` (s) of its hops, if asked for."""

    array: NDArray[np.int32]
    brokers: list[int]
    times: list[float]


class Uplinks:
    """Caches uplinks until brokers move or, if links follow interests, links change; `timed` ones with the times of their hops."""

    def __init__(self, fabric: Fabric, timed: bool = False) -> None:
        self._fabric, self._links, self._timed = fabric, fabric.links, timed
        self._known: dict[tuple[int, int], Uplink] = {}

    def of(self, topic: int, broker: int) -> Uplink:
        """The uplink of a topic from a broker."""
        uplink = self._known.get((topic, broker))
        if uplink is None:
            fabric = self._fabric
            array = fabric.broker_of.take(fabric.overlay.uplink(topic, fabric.node_of.item(broker)))
            brokers = array.tolist()
            if len(self._known) == _MOST:
                self._known.clear()
            hops = pairwise(brokers) if self._timed and len(brokers) > 1 else ()
            times = [self._links.times(here)[there] for here, there in hops]
            self._known[topic, broker] = uplink = Uplink(array, brokers, times)
        return uplink

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        self._known.clear()

    def trees_change(self) -> None:
        """Trees or links are about to change."""
        if not self._fabric.overlay.single_root:
            self._known.clear()
