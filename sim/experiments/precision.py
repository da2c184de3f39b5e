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

    `values` has one number per replication (any unit), NaN where the metric is undefined or the run failed. They suffice
    once there are `least` and the t interval is `precise`. Else, as many as make it so if mean and standard deviation stay
    what they are and NaN is as frequent; twice as many as there are at most, since the early s is rough. Applied again
    whenever those have run, it is a sequential procedure (Law & Kelton, Simulation Modeling and Analysis, 9.4.1), and one
    that depends on nothing but the values.

    A metric that is defined nowhere, or does not vary, is left at `least`. One whose mean is 0 has no relative precision, and
    ends at `max_replications` as all do that do not get there before; the limit never takes back replications that are there.
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
    """Whether the mean's relative error is at most `relative`, with that confidence; NaN is left out.

    The error is relative to the true mean, so that the interval's half-width must be within γ' = γ / (1 + γ) of the mean
    that was found (Law & Kelton, 9.4.1). Two values or more that do not vary are precise, one or none is not.
    """
    interval = mean_interval(values, confidence)
    if interval.high is None:
        return interval.n > 1
    return interval.high - interval.mean <= _allowed(relative) * abs(interval.mean)


def _allowed(relative: float) -> float:
    return relative / (1 + relative)
