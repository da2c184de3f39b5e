"""The compiled part of the mobility workload. Slow twin: tests/oracles/mobility.py."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

_T = TypeVar("_T", float, NDArray[np.float64])

KM_PER_DEGREE = 111.195


@kernel
def fold(value: _T, low: float, high: float) -> _T:
    """Fold a number or an array into low..high by reflection at both ends."""
    width = high - low
    folded: _T = high - np.abs((value - low) % (2.0 * width) - width)
    return folded


@kernel
def walk(
    indptr: NDArray[np.int64],
    latitude: NDArray[np.float64],
    longitude: NDArray[np.float64],
    box: tuple[float, float, float, float],
    habits: tuple[float, float, float],
    draws: NDArray[np.float64],
) -> NDArray[np.int64]:
    """For each check-in, the user's first check-in at the same place; fills in the positions (degrees).

    User u's check-ins are `indptr[u]..indptr[u + 1] - 1` in order of time; the first is at home, its position is given. `habits`
    are home_share, rho and gamma; `draws` (4, check-ins) are used as follows. The uniform `decision` chooses home (probability
    home_share) or, otherwise, a new place (probability rho S^-gamma with S places seen so far) or a return; the uniform `pick`
    chooses an earlier check-in to repeat, so that places are chosen in proportion to earlier visits. A new place lies `north`,
    `east` km from the last, reflected at the box (south, west, north, east).
    """
    home_share, rho, gamma = habits
    decision, pick, north, east = draws[0], draws[1], draws[2], draws[3]
    place = np.empty(decision.size, np.int64)
    for u in range(indptr.size - 1):
        start, places = indptr[u], 1
        place[start : indptr[u + 1]] = start
        for i in range(start + 1, indptr[u + 1]):
            if decision[i] >= home_share:
                if decision[i] < home_share + (1.0 - home_share) * rho * places**-gamma:
                    place[i] = i
                    places += 1
                else:
                    place[i] = place[start + int(pick[i] * (i - start))]
            if place[i] == i:
                degrees = KM_PER_DEGREE * max(0.01, math.cos(math.radians(latitude[i - 1])))
                latitude[i] = fold(latitude[i - 1] + north[i] / KM_PER_DEGREE, box[0], box[2])
                longitude[i] = fold(longitude[i - 1] + east[i] / degrees, box[1], box[3])
            else:
                latitude[i], longitude[i] = latitude[place[i]], longitude[place[i]]
    return place
