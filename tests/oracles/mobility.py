"""Home, exploration and preferential return, one check-in after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence


def fold(value: float, low: float, high: float) -> float:
    """The value, reflected at both bounds until it lies between them."""
    while not low <= value <= high:
        value = 2 * low - value if value < low else 2 * high - value
    return value


def walk(
    home: tuple[float, float],
    box: tuple[float, float, float, float],
    home_share: float,
    rho: float,
    gamma: float,
    draws: Sequence[tuple[float, float, float, float]],
) -> list[tuple[float, float]]:
    """Positions of one user's check-ins; draws per further check-in: decision, pick, km north, km east."""
    south, west, north, east = box
    history = [home]
    for decision, pick, km_north, km_east in draws:
        explore = (1 - home_share) * rho * len(set(history)) ** -gamma
        latitude, longitude = history[-1]
        if decision < home_share:
            history.append(home)
        elif decision < home_share + explore:
            degree = 111.195 * max(0.01, math.cos(math.radians(latitude)))
            new = fold(latitude + km_north / 111.195, south, north), fold(longitude + km_east / degree, west, east)
            history.append(new)
        else:
            history.append(history[int(pick * len(history))])
    return history
