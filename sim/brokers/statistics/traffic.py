"""Tables of traffic: messages and bytes per link and between regions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics.tallies import Tallies


def link_table(links: Tallies, brokers: int) -> dict[str, Any]:
    """Messages and bytes of every link that carried any after the warm-up."""
    keys, messages, size = links.columns()
    source, destination = np.divmod(keys, brokers)
    return {"source": source, "destination": destination, "messages": messages, "bytes": size}


def cross_region_bytes(links: Tallies, regions: NDArray[np.int64] | None) -> int | None:
    """Bytes between brokers of different `regions` (brokers), None where there are none."""
    if regions is None:
        return None
    table = link_table(links, len(regions))
    return int(table["bytes"][regions[table["source"]] != regions[table["destination"]]].sum())
