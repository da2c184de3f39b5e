"""The compiled part of rules: where copies in transit may still get to, and how they go down a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.overlay.pair_times import TimesRecord, time_between


@kernel
def reach(
    first: NDArray[np.int32], onward: NDArray[np.int32], served: NDArray[np.bool_], hops_left: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The unserved positions that copies may still reach, given the hops left of the copy at each position (-1: none).

    Position p sends copies on to `onward[first[p]:first[p + 1]]`, once it is served.
    """
    size = served.size
    left, waits, queue = np.full(size, -1, np.int64), np.zeros(size, np.bool_), np.empty(size, np.int64)
    head = waiting = 0
    for position in range(size):
        if not served[position] and hops_left[position] >= 0:
            left[position], waits[position], queue[waiting] = hops_left[position], True, position
            waiting += 1
    while waiting > 0:
        position = queue[head]
        head, waiting = (head + 1) % size, waiting - 1
        waits[position] = False
        for link in range(first[position], first[position + 1]):
            there = onward[link]
            if not served[there] and left[there] < left[position] - 1:
                left[there] = left[position] - 1
                if not waits[there]:
                    waits[there], queue[(head + waiting) % size] = True, there
                    waiting += 1
    return left >= 0


@kernel
def flood_front(
    first: NDArray[np.int32],
    onward: NDArray[np.int32],
    served: NDArray[np.bool_],
    depth: NDArray[np.int32],
    hop_limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The most hops left of copies sent to each unserved position (-1: none was sent), and the positions to which none was sent.

    All positions served have sent copies on, unless their first one, with `depth` hops, had reached the hop limit.
    """
    left, withheld = np.full(served.size, -1, np.int64), np.zeros(served.size, np.bool_)
    for position in np.flatnonzero(served):
        for link in range(first[position], first[position + 1]):
            there = onward[link]
            if served[there]:
                continue
            if depth[position] < hop_limit:
                left[there] = max(left[there], hop_limit - depth[position] - 1)
            else:
                withheld[there] = True
    return left, withheld


@kernel
def fold_tree(
    rooted: float,
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    hops: TimesRecord,
    horizon: float,
) -> tuple[NDArray[np.float64], float]:
    """Arrivals at the positions of a tree (NaN from the horizon on), and when the last one arrives.

    The publication leaves the root at `rooted`; `brokers` and `parents` are by position, and there is at least a root.
    """
    times = np.full(brokers.size, rooted)
    for i in range(1, brokers.size):
        above = parents[i]
        times[i] = times[above] + time_between(hops, brokers[above], brokers[i])
    return np.where(times < horizon, times, np.nan), times.max()
