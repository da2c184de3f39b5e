"""How evenly user subscriptions are spread over brokers: time averages by window, integrated as they change."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import accessor, reals
from sim.base.arrays import Item
from sim.base.compiled import kernel

BALANCE = np.dtype(
    [
        ("since", "f8"),  # s; the time from which the two figures are valid
        ("deviation", "f8"),
        ("jain", "f8"),
        ("window", "i8"),  # the window of that time, or an earlier one
        ("edges", "i8"),  # addresses: of windows (s), and their areas
        ("areas", "i8"),
        ("windows", "i8"),
    ]
)
"""The present relative standard deviation and Jain's index of brokers' load, and the addresses of their integrals."""

balance_at = accessor(BALANCE)


class LoadBalance:
    """Integrates both figures over windows between `edges` (s); `areas` (windows, 2) are the integrals."""

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = np.array(edges)
        self.areas: NDArray[np.float64] = np.zeros((len(edges) - 1, 2))
        self.records = np.zeros(1, BALANCE)
        addresses = self._edges.ctypes.data, self.areas.ctypes.data
        self.records[0] = (0.0, 0.0, 1.0, 0, *addresses, len(self.areas))

    def close(self, horizon: float) -> None:
        """Account for the time up to the end."""
        integrate_load(self.records[0], horizon)


@kernel
def changed(balance: Item, now: float, brokers: int, total: int, squares: int) -> None:
    """Record that from `now` on brokers host `total` user subscriptions with the sum of squares `squares`."""
    integrate_load(balance, now)
    everything, spread = float(total) * float(total), float(brokers) * float(squares)
    balance.jain = everything / spread if squares else 1.0
    balance.deviation = math.sqrt(max(spread / everything - 1.0, 0.0)) if total else 0.0


@kernel
def integrate_load(balance: Item, until: float) -> None:
    """Account for the time up to `until`, which is not before the last one."""
    edges, areas = reals(balance.edges, balance.windows + 1), reals(balance.areas, 2 * balance.windows)
    start, window = balance.since, balance.window
    while start < until:
        while start >= edges[window + 1]:
            window += 1
        end = min(edges[window + 1], until)
        areas[2 * window] += balance.deviation * (end - start)
        areas[2 * window + 1] += balance.jain * (end - start)
        start = end
    balance.since, balance.window = max(balance.since, until), window
