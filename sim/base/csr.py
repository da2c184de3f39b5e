"""Rows of different lengths in one array (compressed sparse rows): row r is `indices[indptr[r]:indptr[r + 1]]`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def row_starts(lengths: ArrayLike) -> NDArray[np.int64]:
    """The `indptr` of rows of these lengths: where each begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
