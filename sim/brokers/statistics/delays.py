"""The histogram of delays: exact counts in bins 1 % wide, per window, for brokers and for users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics.record_kernels import BIN_WIDTH, BINS, FIRST_BIN
from sim.brokers.statistics.tallies import Tallies


class Delays(Tallies):
    """Deliveries to brokers and to users by delay; the key is window · BINS + bin."""

    def __init__(self, brokers: int) -> None:
        super().__init__(max(1 << 15, 4 * brokers + 1))  # enough for one publication that is delivered everywhere

    def table(self) -> dict[str, Any]:
        """One row per window and bin that is not empty: window, lower, upper (s), brokers, users."""
        keys, brokers, users = self.columns()
        bins = keys % BINS
        return {
            "window": keys // BINS,
            "lower": np.where(bins == 0, 0.0, FIRST_BIN * (1 + BIN_WIDTH) ** (bins - 1.0)),
            "upper": FIRST_BIN * (1 + BIN_WIDTH) ** bins.astype(float),
            "brokers": brokers,
            "users": users,
        }

    def quantiles(self, measured: NDArray[np.bool_], percents: Sequence[int]) -> dict[int, float | None]:
        """Quantiles (%) over brokers and the windows that are measured: the middle of the bin that holds the pair of that rank."""
        keys, brokers, _ = self.columns()
        kept = measured[keys // BINS]
        ranks = np.cumsum(np.bincount(keys[kept] % BINS, brokers[kept], minlength=1))
        if ranks[-1] == 0:
            return dict.fromkeys(percents)
        bins = {q: int(np.searchsorted(ranks, math.ceil(ranks[-1] * q / 100))) for q in percents}
        return {q: FIRST_BIN * (1 + BIN_WIDTH) ** (b - 0.5) if b else 0.0 for q, b in bins.items()}
