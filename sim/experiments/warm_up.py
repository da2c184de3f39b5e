"""Detect the end of the warm-up by MSER-5 on a series averaged over replications."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sim.experiments.statistics import ROUNDING

BATCH = 5
FEWEST_VALUES = 100
"""The fewest values of a series: with fewer, too few batches remain between those that may be cut and the uninformative last ones."""


def mser5(series: ArrayLike) -> int | None:
    """The number of values to leave out at the beginning of a series, a multiple of 5; None where that cannot be determined.

    `series` has values (none NaN, any unit) at equal steps. They are averaged in batches of five, and the number d of batches left
    out minimises the standard error of the rest's mean: Σ (Y_i − Ȳ)² / (k − d)² over the batches d + 1…k. If that is more than half
    of them, the series has reached no steady state, or too late to detect it; a series of fewer than `LEAST` values is too short
    anyway. At least six batches are kept, since a few at the end that are similar by chance would look best.

    Source: White (1997), with the rules of Hoad, Robinson & Davies (2010) on the second half and the last five batches.
    """
    x = np.asarray(series, dtype=np.float64)
    if x.size < FEWEST_VALUES:
        return None
    batches = x[: x.size // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    k = batches.size
    variances = np.array([batches[d:].var() for d in range(k - BATCH)])
    variances[variances <= (ROUNDING * np.abs(batches).max()) ** 2] = 0.0
    cut = int(np.argmin(variances / np.arange(k, BATCH, -1)))
    return BATCH * cut if 2 * cut <= k else None


def warm_up_of(series: ArrayLike, starts: ArrayLike) -> float | None:
    """The end of the warm-up (s): the start of the first window that is kept; None where that cannot be determined.

    `series` has a row per replication and a column per window, NaN where nothing was observed; `starts` has the windows'
    starts (s). A window's values are averaged over the replications first, which keeps the common transient and smooths the rest
    (Welch 1983). Windows without observations in any replication are skipped.
    """
    x, start = np.asarray(series, dtype=np.float64), np.asarray(starts, dtype=np.float64)
    if x.ndim != 2 or start.shape != x.shape[1:]:
        raise ValueError(f"expected a start per window, found {start.shape} for {x.shape}")
    observed = ~np.isnan(x).all(axis=0)
    cut = mser5(np.nanmean(x[:, observed], axis=0))
    return None if cut is None else float(start[observed][cut])
