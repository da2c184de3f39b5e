"""Compiled kernel for shortest paths. Slow twin: tests/oracles/overlays.py."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def shortest_paths(
    starts: NDArray[np.int64], neighbours: NDArray[np.int64], times: NDArray[np.float64]
) -> NDArray[np.int32]:
    """The node before v on the fastest path from u, for all u and v: `parent[u, v]`, -1 for v = u and where there is no path.

    The neighbours of v are `neighbours[starts[v]:starts[v + 1]]`, as far away as `times` (0 or more) say. Times are added up from u
    on. Of equally fast paths the one with the fewest hops is taken, and of these the one whose last node but one is the lowest
    (Dijkstra, n times).
    """
    n = starts.size - 1
    parent = np.full((n, n), -1, np.int32)
    time = np.empty(n, np.float64)
    hops = np.empty(n, np.int32)
    done = np.empty(n, np.bool_)
    for source in range(n):
        before = parent[source]
        time[:], hops[:], done[:] = np.inf, n, False
        time[source], hops[source] = 0.0, 0
        heap = [(0.0, 0, source)]
        while heap:
            _, _, here = heappop(heap)
            if done[here]:
                continue
            done[here] = True
            for link in range(starts[here], starts[here + 1]):
                there = neighbours[link]
                if done[there]:
                    continue
                after, steps = time[here] + times[link], hops[here] + 1
                if after < time[there] or (after == time[there] and steps < hops[there]):
                    time[there], hops[there], before[there] = after, steps, here
                    heappush(heap, (after, steps, there))
                elif after == time[there] and steps == hops[there] and here < before[there]:
                    before[there] = here
    return parent
