"""Compiled kernel for shortest paths. Slow twin: tests/oracles/overlays.py."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def fastest_paths(
    source: int,
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    times: NDArray[np.float64],
    barred: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """The node before each node (n) on the fastest path to it from the source, -1 for the source and where there is no path.

    The neighbours of v are `neighbours[starts[v]:starts[v + 1]]`, as far away as `times` (0 or more) say. Times are added up from the
    source on. Of equally fast paths the one with the fewest hops is taken, and of these the one whose second-to-last node is the
    lowest (Dijkstra). Before all, as few links as possible are `barred`.
    """
    n = starts.size - 1
    before = np.full(n, -1, np.int32)
    bars, time, hops = np.full(n, n, np.int32), np.full(n, np.inf), np.full(n, n, np.int32)
    done = np.zeros(n, np.bool_)
    bars[source], time[source], hops[source] = 0, 0.0, 0
    heap = [(0, 0.0, 0, source)]
    while heap:
        _, _, _, here = heappop(heap)
        if done[here]:
            continue
        done[here] = True
        for link in range(starts[here], starts[here + 1]):
            there = neighbours[link]
            if done[there]:
                continue
            passed, after, steps = bars[here] + int(barred[link]), time[here] + times[link], hops[here] + 1
            if (passed, after, steps) < (bars[there], time[there], hops[there]):
                bars[there], time[there], hops[there], before[there] = passed, after, steps, here
                heappush(heap, (passed, after, steps, there))
            elif (passed, after, steps) == (bars[there], time[there], hops[there]) and here < before[there]:
                before[there] = here
    return before
