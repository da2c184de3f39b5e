"""Distributions of the number of predicates per subscription: whole numbers from 1 on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Sizes = Callable[[np.random.Generator, int], NDArray[np.int64]]
"""Draws `count` sizes, each at least 1, from a generator, or gives them by a rule."""


def poisson(mean: float) -> Sizes:
    """Zero-truncated Poisson, by inversion; `mean` (above 0) is that of the untruncated distribution."""

    def draw(generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        most = int(mean + 12 * np.sqrt(mean) + 30)
        size = np.arange(1, most)
        logarithm = size * np.log(mean) - np.cumsum(np.log(size))
        return _inverted(np.exp(logarithm - logarithm.max()), generator, count)

    return draw


def constant(size: int) -> Sizes:
    """All the same."""
    return lambda _, count: np.full(count, size, np.int64)


def uniform_sizes(low: int, high: int) -> Sizes:
    """Uniform sizes from `low` to `high`, both included."""
    return lambda generator, count: generator.integers(low, high, count, endpoint=True)


def weighted_sizes(weights: Sequence[float]) -> Sizes:
    """Sizes 1, 2, 3, … with these weights, whose sum is above 0."""
    return lambda generator, count: _inverted(np.asarray(weights, np.float64), generator, count)


def _inverted(weights: NDArray[np.float64], generator: np.random.Generator, count: int) -> NDArray[np.int64]:
    reached = np.cumsum(weights)
    sizes: NDArray[np.int64] = 1 + np.searchsorted(reached, generator.random(count) * reached[-1], side="right")
    return sizes
