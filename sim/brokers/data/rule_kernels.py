"""The compiled part of what brokers do with copies: where copies on their way may still get to, and how they go down a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def reach(
    first: NDArray[np.int32], onward: NDArray[np.int32], served: NDArray[np.float64], front: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The positions not served yet (NaN) that copies at the positions `front` may still get to, these among them.

    Position p sends copies on to `onward[first[p]:first[p + 1]]`, once it is served.
    """
    reached = np.zeros(served.size, np.bool_)
    stack = np.empty(served.size, np.int64)
    for start in front:
        size = 0
        if np.isnan(served[start]) and not reached[start]:
            reached[start] = True
            stack[0], size = start, 1
        while size:
            size -= 1
            position = stack[size]
            for link in range(first[position], first[position + 1]):
                there = onward[link]
                if np.isnan(served[there]) and not reached[there]:
                    reached[there] = True
                    stack[size] = there
                    size += 1
    return reached


@kernel
def fold_tree(
    rooted: float,
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    hop_delay: NDArray[np.float64],
    horizon: float,
) -> tuple[NDArray[np.float64], float]:
    """Arrivals at the positions of a tree (NaN from the horizon on), and when the last one arrives.

    What is carried leaves the root at `rooted`; `brokers` and `parents` are by position, there is a root at least.
    """
    times = np.full(brokers.size, rooted)
    for i in range(1, brokers.size):
        above = parents[i]
        times[i] = times[above] + hop_delay[brokers[above], brokers[i]]
    return np.where(times < horizon, times, np.nan), times.max()
