"""How many replications a confidence interval needs to be narrow enough."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sim.experiments.statistics import half_width, mean_interval

FEWEST_REPLICATIONS = 10
"""Fewest replications before stopping: with fewer, s is so uncertain that mostly runs that underestimate it would stop."""


def replications_needed(
    values: ArrayLike,
    relative: float,
    confidence: float = 0.95,
    max_replications: int = 50,
    least: int = FEWEST_REPLICATIONS,
) -> int:
    """How many replications are needed, given the values of the existing ones; their number if they suffice.

    `values` has one number per replication (any unit), NaN where the metric is undefined or the run failed. They suffice once there
    are `least` and the t interval is `precise`. Otherwise the result is the number that would be precise with unchanged mean,
    standard deviation and share of NaN; at most twice the present number, since an early s is rough. Applied again whenever those
    have run, it is a sequential procedure (Law & Kelton, Simulation Modeling and Analysis, 9.4.1) that depends only on the values.

    A metric that is never defined, or does not vary, gets `least`. One whose mean is 0 has no relative precision, and gets
    `max_replications`, the limit for all; the limit never discards existing replications.
    """
    x = np.asarray(values, dtype=np.float64)
    n, defined = x.size, x[~np.isnan(x)]
    if n < least:
        wanted = least
    elif defined.size == 0 or precise(defined, relative, confidence):
        wanted = n
    elif defined.size == 1:
        wanted = 2 * n
    else:
        candidates = np.arange(defined.size + 1, 2 * defined.size)
        half = half_width(defined.std(ddof=1) / np.sqrt(candidates), candidates - 1, confidence)
        narrow = candidates[half <= _allowed(relative) * abs(defined.mean())]
        wanted = math.ceil(narrow[0] * n / defined.size) if narrow.size else 2 * n
    return max(n, min(wanted, max_replications))


def precise(values: ArrayLike, relative: float, confidence: float = 0.95) -> bool:
    """Whether the mean's relative error is at most `relative`, with this confidence; NaN is left out.

    The error is relative to the true mean, so that the interval's half-width must be within γ' = γ / (1 + γ) of the observed mean
    (Law & Kelton, 9.4.1). Two or more values that do not vary are precise; fewer are not.
    """
    interval = mean_interval(values, confidence)
    if interval.high is None:
        return interval.n > 1
    return interval.high - interval.mean <= _allowed(relative) * abs(interval.mean)


def _allowed(relative: float) -> float:
    return relative / (1 + relative)
