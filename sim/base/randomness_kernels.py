"""Keyed draws for compiled code, with the same bits as `sim.base.randomness`."""

from __future__ import annotations

import math

import numpy as np

from sim.base.compiled import kernel


@kernel
def keyed_uniform(key: int, a: int, b: int) -> float:
    """The draw in (0, 1) determined by (key, a, b), the same as `sim.base.randomness.uniform`."""
    step = np.uint64(0x9E3779B97F4A7C15)
    word = np.uint64(key)
    for part in (np.uint64(a), np.uint64(b)):
        word += part * step + step
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return float((np.float64(word >> np.uint64(12)) + 0.5) * 2.0**-52)


@kernel
def keyed_exponential(key: int, a: int, b: int) -> float:
    """The exponential draw with mean 1 determined by (key, a, b), the same as `sim.base.randomness.exponential`."""
    return -math.log(keyed_uniform(key, a, b))


@kernel
def keyed_normal(key: int, a: int, b: int) -> float:
    """The standard normal draw determined by (key, a, b), the same as `sim.base.randomness.normal`."""
    radius = math.sqrt(-2.0 * math.log(keyed_uniform(key, a, b)))
    return radius * math.cos(2.0 * math.pi * keyed_uniform(key ^ 0x5851F42D4C957F2D, a, b))
