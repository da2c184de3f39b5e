"""Draws by identity, in compiled code and outside.

They serve things that happen in an order that depends on the model (a service time, a jitter): they are functions of the thing's
identity alone, which is (a, b) under a key of its kind.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.compiled import inlined, kernel


@inlined
def keyed_mix(key: int, a: int, b: int) -> np.uint64:
    """The hash of (key, a, b) to 64 bits: SplitMix64's finaliser (Steele et al. 2014) over each part in turn."""
    step = np.uint64(0x9E3779B97F4A7C15)
    word = np.uint64(key)
    for part in (np.uint64(a), np.uint64(b)):
        word += part * step + step
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return word


@inlined
def keyed_uniform(key: int, a: int, b: int) -> float:
    """The uniform draw in (0, 1) determined by (key, a, b)."""
    # 52 bits: with 53 the sum would need 54, and the largest would round to 1
    return float((np.float64(keyed_mix(key, a, b) >> np.uint64(12)) + 0.5) * 2.0**-52)


@inlined
def keyed_exponential(key: int, a: int, b: int) -> float:
    """The exponential draw with mean 1 determined by (key, a, b)."""
    return -math.log(keyed_uniform(key, a, b))


@kernel
def keyed_normal(key: int, a: int, b: int) -> float:
    """The standard normal draw determined by (key, a, b) (Box–Muller on two keyed uniforms)."""
    radius = math.sqrt(-2.0 * math.log(keyed_uniform(key, a, b)))
    return radius * math.cos(2.0 * math.pi * keyed_uniform(key ^ 0x5851F42D4C957F2D, a, b))


@kernel
def keyed_subkey(key: int, a: int, b: int) -> int:
    """The 63-bit key derived from (key, a, b), for further draws by the same identity."""
    return int(keyed_mix(key, a, b) >> np.uint64(1))


@kernel
def keyed_gamma(key: int, a: int, b: int, shape: float) -> float:
    """The gamma draw of this shape and scale 1 determined by (key, a, b): Marsaglia and Tsang (2000), with draws keyed by attempt."""
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    part = keyed_subkey(key, a, b)
    attempt = 0
    while True:
        x = keyed_normal(part, attempt, 0)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(keyed_uniform(part, attempt, 1)) < 0.5 * x * x + d - d * v + d * math.log(v):
                break
        attempt += 1
    if shape >= 1.0:
        return d * v
    return d * v * math.exp(math.log(keyed_uniform(part, 0, 2)) / shape)
