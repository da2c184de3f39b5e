"""The log-linear histogram of delays: exact counts in bins at most 0.8 % wide, per window, for brokers and for users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.statistics.record_kernels import BINS, lower_edges
from sim.brokers.statistics.tallies import Tallies


class Delays(Tallies):
    """Deliveries to brokers and to users by delay; the key is window · BINS + bin."""

    def __init__(self, brokers: int) -> None:
        super().__init__(max(1 << 15, 4 * brokers + 1))  # enough for one publication that is delivered everywhere

    def table(self) -> Columns:
        """One row per window and bin that is not empty: window, lower, upper (s), brokers, users."""
        keys, brokers, users = self.columns()
        bins = keys % BINS
        return {
            "window": keys // BINS,
            "lower": lower_edges(bins),
            "upper": lower_edges(bins + 1),
            "brokers": brokers,
            "users": users,
        }

    def quantiles(
        self, measured: NDArray[np.bool_], permilles: Sequence[int], of_users: bool = False
    ) -> list[float | None]:
        """Quantiles (‰) over brokers, or users, in measured windows: the middle of the bin with the value of that rank."""
        keys, *counts = self.columns()
        kept = measured[keys // BINS]
        ranks = np.cumsum(np.bincount(keys[kept] % BINS, counts[of_users][kept], minlength=1))
        if ranks[-1] == 0:
            return [None] * len(permilles)
        bins = np.searchsorted(ranks, [-(-int(ranks[-1]) * q // 1000) for q in permilles])
        middles: list[float | None] = np.where(bins > 0, (lower_edges(bins) + lower_edges(bins + 1)) / 2, 0.0).tolist()
        return middles
