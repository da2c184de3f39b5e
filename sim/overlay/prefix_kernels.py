"""Compiled kernels of prefix routing. Slow twin: tests/oracles/overlays.py.

`table[x, l, d]` is the node that x knows for digit d at level l: one that agrees with x in the first l digits and has d next; x
itself where d is its own digit, -1 where there is none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.overlay.pair_times import TimesRecord, time_between


@kernel
def nearest_candidates(order: NDArray[np.int32], bounds: NDArray[np.int64], times: TimesRecord) -> NDArray[np.int32]:
    """The nearest candidate of each entry (n, levels, base), the lowest node on ties; -1 where there is none.

    Those of entry (x, l, d) are `order[bounds[x, l, d]:bounds[x, l, d + 1]]`; `times` are their distances.
    """
    n, levels, base = bounds.shape[0], bounds.shape[1], bounds.shape[2] - 1
    nearest = np.full((n, levels, base), -1, np.int32)
    for x in range(n):
        for level in range(levels):
            for digit in range(base):
                best, least = -1, 0.0
                for i in range(bounds[x, level, digit], bounds[x, level, digit + 1]):
                    v, time = order[i], time_between(times, x, order[i])
                    if best < 0 or time < least or (time == least and v < best):
                        best, least = v, time
                nearest[x, level, digit] = best
    return nearest


@kernel
def _next_hop(digits: NDArray[np.int64], table: NDArray[np.int32], here: int, target: int) -> int:
    """The entry for the target's first digit (n, levels) that differs; the node itself at the target.

    Later nodes of a route agree with the target in that digit, so that every prefix of a route is the route to the prefix's end.
    """
    if here == target:
        return here
    level = 0
    while digits[here, level] == digits[target, level]:
        level += 1
    return int(table[here, level, digits[target, level]])


@kernel
def prefix_next_hops(digits: NDArray[np.int64], table: NDArray[np.int32], target: int) -> NDArray[np.int32]:
    """The next hop (n) of every node on its route to the target; the target itself for the target."""
    hops = np.empty(digits.shape[0], np.int32)
    for node in range(hops.size):
        hops[node] = _next_hop(digits, table, node, target)
    return hops


@kernel
def prefix_last_hops(
    digits: NDArray[np.int64], table: NDArray[np.int32], source: int, around: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """The node before each node (n) on the route to it from the source; -1 for the source, and for nodes that are routed `around`."""
    hops = np.full(digits.shape[0], -1, np.int32)
    for node in range(hops.size):
        here = source
        while here != node and not around[node]:
            hops[node] = here
            here = _next_hop(digits, table, here, node)
    return hops


@kernel
def backed_up(
    table: NDArray[np.int32], order: NDArray[np.int32], bounds: NDArray[np.int64], away: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """The routing table with entries that are `away` (n) replaced by their next candidates in the order of ids, cyclically.

    Candidates of entry (x, l, d) are `order[bounds[x, l, d]:bounds[x, l, d + 1]]`; -1 where all of them are away.
    """
    repaired, place = table.copy(), np.empty(order.size, np.int64)
    for i in range(order.size):
        place[order[i]] = i
    n, levels, base = table.shape
    for x in range(n):
        for level in range(levels):
            for digit in range(base):
                entry = table[x, level, digit]
                if entry < 0 or not away[entry]:
                    continue
                first, after = bounds[x, level, digit], bounds[x, level, digit + 1]
                at, repaired[x, level, digit] = place[entry], -1
                for step in range(1, after - first):
                    other = order[first + (at - first + step) % (after - first)]
                    if not away[other]:
                        repaired[x, level, digit] = other
                        break
    return repaired


@kernel
def surrogate_roots(table: NDArray[np.int32], digits: NDArray[np.int64], start: int) -> NDArray[np.int32]:
    """The root of each id, given as digits (ids, levels): where routes to it end, from `start` as from anywhere else.

    Digit by digit; an empty entry is replaced by that of the next higher digit, cyclically. Which entries are empty depends only on
    the digits resolved so far, so all routes end at the same node.
    """
    levels, base = table.shape[1], table.shape[2]
    roots = np.full(len(digits), start, np.int32)
    for i in range(len(digits)):
        for level in range(levels):
            digit = digits[i, level]
            while table[roots[i], level, digit] < 0:
                digit = (digit + 1) % base
            roots[i] = table[roots[i], level, digit]
    return roots
