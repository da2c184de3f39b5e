"""Compiled kernels of prefix routing. Slow twin: tests/oracles/overlays.py.

`table[x, l, d]` is the node that x knows for digit d at level l: one that agrees with x in the first l digits and goes on with d;
x itself where d is its own digit, -1 where there is none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def nearest_candidates(
    order: NDArray[np.int32], bounds: NDArray[np.int64], times: NDArray[np.float64]
) -> NDArray[np.int32]:
    """The nearest candidate of each entry (n, levels, base), the lowest node on ties; -1 where there is none.

    Those of entry (x, l, d) are `order[bounds[x, l, d]:bounds[x, l, d + 1]]`; `times` (n, n) are their distances.
    """
    n, levels, base = bounds.shape[0], bounds.shape[1], bounds.shape[2] - 1
    nearest = np.full((n, levels, base), -1, np.int32)
    for x in range(n):
        for level in range(levels):
            for digit in range(base):
                best = -1
                for i in range(bounds[x, level, digit], bounds[x, level, digit + 1]):
                    v = order[i]
                    if best < 0 or times[x, v] < times[x, best] or (times[x, v] == times[x, best] and v < best):
                        best = v
                nearest[x, level, digit] = best
    return nearest


@kernel
def prefix_tables(
    digits: NDArray[np.int64], table: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Next hop, last hop and hop count (n, n) of every route from node to node, as of `tree_kernels.chord_tables`.

    Each hop goes to the entry for the target's first digit (n, levels) that differs. All nodes of a route agree with its later ones in
    that digit, so that every prefix of a route is the route to the prefix's end.
    """
    n = digits.shape[0]
    next_hop = np.empty((n, n), np.int32)
    parent = np.full((n, n), -1, np.int32)
    hops = np.zeros((n, n), np.int32)
    for u in range(n):
        next_hop[u, u] = u
        for v in range(n):
            level = 0
            while u != v and digits[u, level] == digits[v, level]:
                level += 1
            if u != v:
                next_hop[u, v] = table[u, level, digits[v, level]]
    for u in range(n):
        for v in range(n):
            here = u
            while here != v:
                parent[u, v] = here
                hops[u, v] += 1
                here = next_hop[here, v]
    return next_hop, parent, hops


@kernel
def surrogate_roots(table: NDArray[np.int32], digits: NDArray[np.int64]) -> NDArray[np.int32]:
    """The root of each of some ids, given as digits (ids, levels): where routes to them end, from wherever they begin.

    Digit by digit; an entry that is empty gives way to the next digit up, after the last to 0. Which entries are empty depends on
    nothing but the digits resolved so far, hence the one end.
    """
    levels, base = table.shape[1], table.shape[2]
    roots = np.zeros(len(digits), np.int32)
    for i in range(len(digits)):
        for level in range(levels):
            digit = digits[i, level]
            while table[roots[i], level, digit] < 0:
                digit = (digit + 1) % base
            roots[i] = table[roots[i], level, digit]
    return roots
