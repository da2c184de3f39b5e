"""From positions to brokers: the broker of a cell, the nearest broker, clusters of neighbouring brokers."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sim.overlay.latency import great_circle_km
from sim.policies.views import SelectionSetting


class PlaceIndex:
    """Finds the broker for a position: that of the position's cell where brokers are cells, else the nearest (lowest id on ties)."""

    def __init__(self, setting: SelectionSetting) -> None:
        self._latitude, self._longitude, self._cell = setting.latitude, setting.longitude, setting.cell
        self._broker_of: dict[tuple[int, int], int] = {}
        if self._cell is not None:
            for broker, (row, column) in enumerate(zip(*grid_cells(setting), strict=True)):
                self._broker_of[int(row), int(column)] = broker
        # users are looked up repeatedly at the same position, and return to earlier ones
        self.broker = lru_cache(maxsize=1 << 14)(self._broker)

    def _broker(self, latitude: float, longitude: float) -> int:
        """The broker for a position in degrees."""
        if self._cell is not None:
            broker = self._broker_of.get((math.floor(latitude / self._cell), math.floor(longitude / self._cell)))
            if broker is not None:
                return broker
        return int(np.argmin(great_circle_km(self._latitude, self._longitude, latitude, longitude)))


def grid_cells(setting: SelectionSetting) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of each broker's cell, from its centre."""
    assert setting.cell is not None
    rows = np.floor(setting.latitude / setting.cell).astype(np.int64)
    columns = np.floor(setting.longitude / setting.cell).astype(np.int64)
    return rows, columns


def clusters(setting: SelectionSetting, size: int) -> NDArray[np.int32]:
    """The cluster of each broker, numbered from 0 in the order of their lowest broker.

    Cells: blocks of the grid, as near to square as `size` allows (4: 2×2, 10: 2×5, 20: 4×5, 50: 5×10); where only some cells
    have brokers, blocks vary in size. Other places: k-d bisection into groups of at most `size`. No places: blocks of `size` ids.
    """
    if setting.cell is not None:
        height = max(d for d in range(1, math.isqrt(size) + 1) if size % d == 0)
        rows, columns = grid_cells(setting)
        labels = list(zip((rows // height).tolist(), (columns // (size // height)).tolist(), strict=True))
    elif setting.has_places:
        labels = [(0, 0)] * setting.brokers
        for number, group in enumerate(_bisect(np.arange(setting.brokers), setting, size)):
            for broker in group.tolist():
                labels[broker] = (0, number)
    else:
        labels = [(0, broker // size) for broker in range(setting.brokers)]
    numbers: dict[tuple[int, int], int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int32)


def _bisect(brokers: NDArray[np.int64], setting: SelectionSetting, size: int) -> list[NDArray[np.int64]]:
    if len(brokers) <= size:
        return [brokers]
    latitude = setting.latitude[brokers]
    longitude = setting.longitude[brokers]
    width = np.ptp(longitude) * math.cos(math.radians(float(latitude.mean())))
    along = longitude if width > np.ptp(latitude) else latitude
    order = brokers[np.lexsort((brokers, along))]
    middle = len(order) // 2
    return _bisect(order[:middle], setting, size) + _bisect(order[middle:], setting, size)
