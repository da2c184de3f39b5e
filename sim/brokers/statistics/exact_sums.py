"""Exact sums of floats, whatever the order: three integers that kernels add to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import inlined

UNIT = 1 << 72
"""Exact sums are whole numbers of 1 / UNIT."""


@inlined
def add_exactly(sums: NDArray[np.int64], value: float) -> None:
    """Add a float from 0 to 2^75 to an exact sum of three integers: of 2^12, of 2^-20 and of 2^-72, the last below 2^52."""
    if value >= 4398046511104.0:  # 2^42: rare, so that slow divisions do not matter
        large = np.floor(value / 4096.0)
        sums[0] += np.int64(large)
        value -= large * 4096.0
    scaled = value * 1048576.0
    whole = np.floor(scaled)
    sums[2] += np.int64((scaled - whole) * 4503599627370496.0)
    sums[1] += np.int64(whole) + (sums[2] >> 52)
    sums[2] &= 4503599627370495
    if sums[1] >= 4611686018427387904:  # 2^62: before it is full
        sums[0] += sums[1] >> 32
        sums[1] &= 4294967295


def exact_sums(parts: NDArray[np.int64]) -> list[int]:
    """The sums (n) of n times three integers, in units of 1 / UNIT."""
    return [(large << 84) + (middle << 52) + small for large, middle, small in parts.tolist()]
