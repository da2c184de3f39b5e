"""Draws by identity in whole numbers without bounds, cut to 64 bits."""

from __future__ import annotations

import math

_MASK = (1 << 64) - 1


def mix(key: int, a: int, b: int = 0) -> int:
    """Hash (key, a, b) to 64 bits: SplitMix64's finaliser (Steele et al. 2014) over each part in turn."""
    state = key
    for part in (a, b):
        state = (state + part * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def subkey(key: int, a: int, b: int = 0) -> int:
    """A 63-bit key derived from (key, a, b), for further draws by the same identity."""
    return mix(key, a, b) >> 1


def uniform(key: int, a: int, b: int = 0) -> float:
    """A uniform draw in (0, 1), determined by (key, a, b)."""
    # 52 bits: with 53 the sum would need 54, and the largest would round to 1
    return ((mix(key, a, b) >> 12) + 0.5) * 2.0**-52


def exponential(key: int, a: int, b: int = 0) -> float:
    """An exponential draw with mean 1, determined by (key, a, b)."""
    return -math.log(uniform(key, a, b))


def normal(key: int, a: int, b: int = 0) -> float:
    """A standard normal draw, determined by (key, a, b) (Box–Muller on two keyed uniforms)."""
    radius = math.sqrt(-2.0 * math.log(uniform(key, a, b)))
    return radius * math.cos(2.0 * math.pi * uniform(key ^ 0x5851F42D4C957F2D, a, b))


def gamma(key: int, a: int, b: int, shape: float) -> float:
    """A gamma draw of this shape and scale 1, determined by (key, a, b): Marsaglia and Tsang (2000), with draws keyed by attempt."""
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    part = subkey(key, a, b)
    attempt = 0
    while True:
        x = normal(part, attempt, 0)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(uniform(part, attempt, 1)) < 0.5 * x * x + d - d * v + d * math.log(v):
                break
        attempt += 1
    if shape >= 1.0:
        return d * v
    return d * v * math.exp(math.log(uniform(part, 0, 2)) / shape)
