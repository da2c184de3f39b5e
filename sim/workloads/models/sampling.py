"""Draws that several generators need, over all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_distinct(rows: int, count: int, pool: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """A uniformly drawn set of `count` of the numbers 0..pool-1 for each row, ascending; shape (rows, count).

    Floyd's sampling (Bentley and Floyd 1987) over all rows at once: `count` draws per row, regardless of their values.
    """
    chosen = np.empty((rows, count), np.int32)
    for k in range(count):
        last = pool - count + k
        drawn = generator.integers(0, last, size=rows, dtype=np.int32, endpoint=True)
        taken = (chosen[:, :k] == drawn[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, last, drawn)
    chosen.sort(axis=1)
    return chosen
