"""The compiled part of follows: one interval for all those of a pair that touch; its slow twin is in tests/oracles/follows.py."""

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
    """Join the intervals [since, until) of each pair that overlap or touch; how many are left.

    Rows ascend by pair, then since, then descend by until. `needed` is made false for rows that those before them cover. For
    each interval that is left, `first` is the row at which it begins, and `end` when it ends.
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
