"""Rows of different lengths in one array (compressed sparse rows): row r is `indices[indptr[r]:indptr[r + 1]]`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.compiled import kernel


def row_starts(lengths: ArrayLike) -> NDArray[np.int64]:
    """The `indptr` (rows + 1) of rows of these lengths: where each begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


@kernel
def transpose(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Transpose a CSR of columns by row into one of rows by column, ascending for each column."""
    starts = np.zeros(columns + 1, np.int64)
    for i in range(indices.size):
        starts[indices[i] + 1] += 1
    for column in range(columns):
        starts[column + 1] += starts[column]
    free = starts[:-1].copy()
    rows = np.empty(indices.size, np.int32)
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            column = indices[i]
            rows[free[column]] = row
            free[column] += 1
    return starts, rows
