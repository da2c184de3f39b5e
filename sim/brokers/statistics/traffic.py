"""Tables of traffic: messages and bytes per link and between regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics.records import Statistics


def link_table(statistics: Statistics) -> dict[str, Any]:
    """Messages and bytes of every link that carried any after the warm-up."""
    sources, destinations = np.nonzero(statistics.links[:, :, 0])
    used = statistics.links[sources, destinations]
    return {"source": sources, "destination": destinations, "messages": used[:, 0], "bytes": used[:, 1]}


def cross_region_bytes(statistics: Statistics, regions: NDArray[np.int64] | None) -> int | None:
    """Bytes between brokers of different `regions` (brokers), None where there are none."""
    return None if regions is None else int(statistics.links[regions[:, None] != regions, 1].sum())
