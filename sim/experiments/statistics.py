"""Statistics over replications: means with Student's t confidence intervals, tests and effect sizes, Holm's correction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sim.base.naming import Raw

ROUNDING = 1e-9
"""Relative difference up to which values count as equal: delays are differences of large times, and sums are in any order."""


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
        """Whether there is a confidence interval."""
        return self.low is not None

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the confidence interval, or the mean twice if there is none."""
        return (self.mean if self.low is None else self.low), (self.mean if self.high is None else self.high)

    def as_json(self) -> Raw:
        """The interval as JSON."""
        return {"replications": self.n, "mean": self.mean, "low": self.low, "high": self.high}

    def excludes(self, value: float) -> bool:
        """Whether there is a confidence interval and `value` is outside it."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of independent replications and its Student's t confidence interval: mean ± t(n − 1) · s / √n.

    `values` has one number per replication (any unit); NaN (undefined) is left out.
    """
    x = _defined(values)
    if not varies(x):
        return Interval(float(x[0]) if x.size else math.nan, None, None, x.size, varies=False)
    return _interval(float(x.mean()), float(x.std(ddof=1)) / math.sqrt(x.size), x.size - 1, confidence, x.size)


def half_width(
    error: float | NDArray[np.float64], freedom: float | NDArray[np.int_], confidence: float
) -> NDArray[np.float64]:
    """Half the width of Student's t interval around a mean with standard error `error`: t(freedom) · error."""
    if not 0 < confidence < 1:
        raise ValueError(f"expected a confidence between 0 and 1, found {confidence}")
    return np.asarray(np.multiply(scipy.special.stdtrit(freedom, (1 + confidence) / 2), error), dtype=np.float64)


def varies(values: NDArray[np.float64]) -> bool:
    """Whether the values (none of them NaN) differ by more than rounding errors."""
    return bool(values.size and np.ptp(values) > ROUNDING * np.abs(values).max())


def paired_difference_percent(values: ArrayLike, baseline: ArrayLike) -> NDArray[np.float64]:
    """Relative difference to the baseline in %, 100 · (x − b) / b, one per replication.

    Both have one number per replication, in the same order: a pair shares its replication's random numbers, which makes the
    interval of the differences narrow. NaN where either is undefined or the baseline is 0.
    """
    x, b = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if x.shape != b.shape:
        raise ValueError(f"expected one baseline value per value, found {b.shape} for {x.shape}")
    usable = ~np.isnan(x) & ~np.isnan(b) & (b != 0)
    difference = np.full(x.shape, np.nan)
    difference[usable] = 100 * _minus(x[usable], b[usable]) / b[usable]
    return difference


@dataclass(frozen=True)
class Test:
    """Whether two means differ, and by how much.

    `difference` is that of the means with its t interval, in the values' unit; its `n` counts the pairs, or the values
    of the smaller sample. `p` is two-sided, and below 1 − confidence exactly where the interval excludes 0. `effect` is
    the difference in standard deviations, `freedom` the degrees of freedom. The last three are None where nothing
    varies or values are too few: below two for `p`, below three pairs for the effect.
    """

    difference: Interval
    p: float | None
    effect: float | None
    freedom: float | None
    paired: bool


def paired_t(values: ArrayLike, baseline: ArrayLike, confidence: float = 0.95) -> Test:
    """Student's t test of values − baseline, pair by pair.

    Both have one number per replication, in the same order (use a baseline of 0 to test given differences);
    pairs with a NaN are left out. The effect is d_z, the differences' mean over their standard deviation, times Hedges'
    correction.
    """
    x, b = np.broadcast_arrays(np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64))
    usable = ~np.isnan(x) & ~np.isnan(b)
    differences = _minus(x[usable], b[usable])
    interval = mean_interval(differences, confidence)
    if not interval.varies:
        return Test(interval, None, None, None, paired=True)
    n, deviation = interval.n, float(differences.std(ddof=1))
    p = _two_sided(interval.mean / (deviation / math.sqrt(n)), n - 1)
    return Test(interval, p, _hedges(interval.mean / deviation, n - 1), n - 1, paired=True)


def welch_t(values: ArrayLike, baseline: ArrayLike, confidence: float = 0.95) -> Test:
    """Welch's t test of mean(values) − mean(baseline) for independent samples.

    They may differ in size and variance; NaN is left out. Source: Welch (1947), with Satterthwaite's degrees of freedom.
    The effect is Hedges' g (1981): the difference over the pooled standard deviation, times his correction.
    """
    x, b = _defined(values), _defined(baseline)
    n = min(x.size, b.size)
    difference = float(_minus(x.mean(), b.mean())) if n else math.nan
    if n < 2 or not (varies(x) or varies(b)):
        return Test(Interval(difference, None, None, n, varies=False), None, None, None, paired=False)
    shares = np.array([x.var(ddof=1) / x.size, b.var(ddof=1) / b.size])
    freedom = float(shares.sum() ** 2 / (shares**2 / [x.size - 1, b.size - 1]).sum())
    error = math.sqrt(shares.sum())
    pooled = x.size + b.size - 2
    deviation = math.sqrt((x.var() * x.size + b.var() * b.size) / pooled)
    return Test(
        _interval(difference, error, freedom, confidence, n),
        _two_sided(difference / error, freedom),
        _hedges(difference / deviation, pooled),
        freedom,
        paired=False,
    )


def welch_percent(values: ArrayLike, baseline: ArrayLike, confidence: float = 0.95) -> Test:
    """`welch_t` with its difference in % of the baseline's mean: 100 · (mean(values) / mean(baseline) − 1).

    The interval is Fieller's (1954), which allows for the baseline's mean being an estimate too; it excludes 0 exactly where
    Welch's does, and is missing where the baseline's true mean may be 0. Where its observed mean is 0, there is no difference (NaN,
    n = 0).
    """
    test = welch_t(values, baseline, confidence)
    x, b = _defined(values), _defined(baseline)
    if test.difference.n == 0 or b.mean() == 0:
        return replace(test, difference=Interval(math.nan, None, None, 0, varies=test.difference.varies))
    mean = float(100 * _minus(x.mean(), b.mean()) / b.mean())
    difference = Interval(mean, None, None, test.difference.n, test.difference.varies)
    if test.freedom is None:
        return replace(test, difference=difference)
    # The ratios ρ for which a test of mean(values) − ρ · mean(baseline) = 0 does not reject are between the roots of a parabola.
    x_square, b_square = (
        y.mean() ** 2 - float(half_width(y.std(ddof=1) / math.sqrt(y.size), test.freedom, confidence)) ** 2
        for y in (x, b)
    )
    middle = x.mean() * b.mean()
    if b_square > 0:
        root = math.sqrt(middle**2 - x_square * b_square)
        low, high = (100 * float((middle + side) / b_square - 1) for side in (-root, root))
        difference = replace(difference, low=low, high=high)
    return replace(test, difference=difference)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p values by Holm's method, so that the family-wise error rate is at most α under any dependence.

    One per test, in their order; NaN (no test was possible) stays NaN and is not counted. Source: Holm (1979): the
    k-th smallest of m is multiplied by m − k + 1, and is at least the previous one.
    """
    p = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    p[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return p


def _defined(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    return x[~np.isnan(x)]


def _minus(x: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """The difference x − b, exactly 0 where the two differ only by rounding errors."""
    difference = np.subtract(x, b)
    return np.where(np.abs(difference) > ROUNDING * np.maximum(np.abs(x), np.abs(b)), difference, 0.0)


def _interval(mean: float, error: float, freedom: float, confidence: float, n: int) -> Interval:
    half = float(half_width(error, freedom, confidence))
    return Interval(mean, mean - half, mean + half, n, varies=True)


def _two_sided(t: float, freedom: float) -> float:
    return float(2 * scipy.special.stdtr(freedom, -abs(t)))


def _hedges(effect: float, freedom: int) -> float | None:
    """An effect size with Hedges' exact small-sample correction; None where its mean does not exist."""
    if freedom < 2:
        return None
    log_gamma = scipy.special.gammaln
    return effect * math.exp(log_gamma(freedom / 2) - log_gamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
