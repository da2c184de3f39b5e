"""The compiled part of follows: joins the touching intervals of each pair. Slow twin: tests/oracles/follows.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def join_intervals(
    pair: NDArray[np.int64],
    since: NDArray[np.int64],
    until: NDArray[np.int64],
    needed: NDArray[np.bool_],
    first: NDArray[np.int64],
    end: NDArray[np.int64],
) -> int:
    """Join the intervals [since, until) of each pair that overlap or touch; returns how many are left.

    Rows ascend by pair, then since, then descend by until. `needed` is set to false for rows that earlier ones cover. For each
    remaining interval, `first` is the row at which it begins, and `end` the time at which it ends.
    """
    count = 0
    for row in range(pair.size):
        if count and pair[row] == pair[first[count - 1]] and since[row] <= end[count - 1]:
            if until[row] > end[count - 1]:
                end[count - 1] = until[row]
            else:
                needed[row] = False
        else:
            first[count], end[count] = row, until[row]
            count += 1
    return count
