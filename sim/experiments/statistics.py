"""What replications say: means with Student's t intervals, and paired differences under common random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

# Delays are differences of times late in a run, their sums come in any order: replications that do not differ by more do not vary.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Interval:
    """A mean over `n` values with its two-sided confidence interval, in the values' unit.

    `low` and `high` are None where there is no interval: fewer than two values, or values that do not vary. `mean` is
    NaN where there is no value at all.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    varies: bool

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None

    def excludes(self, value: float) -> bool:
        """Whether there is an interval and `value` lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of independent replications and its Student's t interval: mean ± t(n − 1) · s / √n.

    `values` has one number per replication (any unit); NaN (the metric is undefined there) is left out.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"expected a confidence between 0 and 1, found {confidence}")
    x = np.asarray(values, dtype=np.float64)
    x = x[~np.isnan(x)]
    if x.size == 0:
        return Interval(math.nan, None, None, 0, varies=False)
    varies = bool(np.ptp(x) > _ROUNDING * np.abs(x).max())
    if not varies:
        return Interval(float(x[0]), None, None, x.size, varies=False)
    mean = float(x.mean())
    half = float(stdtrit(x.size - 1, (1 + confidence) / 2) * x.std(ddof=1) / math.sqrt(x.size))
    return Interval(mean, mean - half, mean + half, x.size, varies=True)


def paired_difference_percent(values: ArrayLike, baseline: ArrayLike) -> NDArray[np.float64]:
    """Relative difference to the baseline in %, 100 · (x − b) / b, one per replication.

    Both have one number per replication, in the same order: a pair shares its replication's random numbers, which is
    what makes the interval of the differences narrow. NaN where either is undefined or the baseline is 0.
    """
    x, b = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if x.shape != b.shape:
        raise ValueError(f"expected one baseline value per value, found {b.shape} for {x.shape}")
    usable = ~np.isnan(x) & ~np.isnan(b) & (b != 0)
    difference = np.full(x.shape, np.nan)
    difference[usable] = 100 * (x[usable] - b[usable]) / b[usable]
    return difference
