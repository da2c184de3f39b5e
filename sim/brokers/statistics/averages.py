"""Averages over time of step functions, integrated by window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class TimeAverage:
    """Integrates a number over windows that lie between `edges` (s); `areas` (windows) are the integrals."""

    def __init__(self, edges: Sequence[float], value: float) -> None:
        self._edges, self._value, self._since, self._window = edges, value, 0.0, 0
        self.areas: NDArray[np.float64] = np.zeros(len(edges) - 1)

    def set(self, now: float, value: float) -> None:
        """Set the number from now on."""
        while self._since < now:
            while self._since >= self._edges[self._window + 1]:
                self._window += 1
            end = min(self._edges[self._window + 1], now)
            self.areas[self._window] += self._value * (end - self._since)
            self._since = end
        self._value = value
