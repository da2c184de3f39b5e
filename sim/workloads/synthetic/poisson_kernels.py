"""The compiled part of workloads with changing interests; its slow twin is tests/oracles/poisson.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel


@kernel
def replacements(
    indptr: NDArray[np.int64],
    held: NDArray[np.int32],
    user: NDArray[np.int32],
    slot: NDArray[np.int32],
    other: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Per change the topic gained and the topic given up, shape (changes, 2).

    User u holds the topics `held[indptr[u]:indptr[u + 1]]`, ascending, updated; a change gives up the `slot`-th of its user's
    topics and gains the `other`-th of those that the user does not hold, both counted from 0 in ascending order.
    """
    out = np.empty((user.size, 2), np.int32)
    for change in range(user.size):
        row = held[indptr[user[change]] : indptr[user[change] + 1]]
        k = row.size
        gained = other[change]
        for i in range(k):
            if gained >= row[i]:
                gained += 1
        given_up = row[slot[change]]
        out[change, 0], out[change, 1] = gained, given_up
        place = slot[change]
        while place > 0 and row[place - 1] > gained:
            row[place] = row[place - 1]
            place -= 1
        while place < k - 1 and row[place + 1] < gained:
            row[place] = row[place + 1]
            place += 1
        row[place] = gained
    return out
