"""Orders of rows by several columns, which cost one sort where the columns fit into one key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST = 2**62  # keys


def lex_order(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """As `np.lexsort` of these columns, the most significant first: integers, or floats without NaN."""
    key, used = _packed(columns)
    if (key[1:] >= key[:-1]).all():
        order = np.arange(len(key))
    else:
        order = np.argsort(key, kind="stable")
        key = key[order]
    if rest := columns[used:]:
        equal = key[1:] == key[:-1]
        at = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        rows = order[at]
        order[at] = rows[np.lexsort((*(column[rows] for column in reversed(rest)), key[at]))]
    return order


def _packed(columns: tuple[NDArray[np.generic], ...]) -> tuple[NDArray[np.int64], int]:
    """One key for the first columns, as many as fit, and their number."""
    key, width = np.zeros(len(columns[0]), np.int64), 1
    for used, column in enumerate(columns):
        numbers = _integers(column)
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        step = 1
        if width * (high - low + 1) > _MOST and high - low < _MOST:  # times in µs are often whole seconds
            step = max(int(np.gcd.reduce(numbers - low)), 1)
        steps = (high - low) // step + 1
        if width * steps > _MOST:
            return (key, used) if used else (numbers, 1)
        key = key * steps + (numbers - low) // step
        width *= steps
    return key, len(columns)


def _integers(column: NDArray[np.generic]) -> NDArray[np.int64]:
    """Integers in the order of a column."""
    if column.dtype.kind != "f":
        return column.astype(np.int64)
    bits = (column.astype(np.float64) + 0.0).view(np.int64)  # -0.0 is no less than 0.0
    return bits ^ (bits >> 63 & np.iinfo(np.int64).max)
