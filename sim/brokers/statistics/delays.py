"""The histogram of delays: exact counts in bins 1 % wide, per window, for brokers and for users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics.record_kernels import BIN_WIDTH, BINS, FIRST_BIN


class Delays:
    """Counts by key (window · BINS + bin): first in a hash table that kernels fill, `keys` and `counts`, of which `used` are taken.

    Whenever that is half full it is emptied into the histogram, so that memory grows with the bins that are in use only.
    """

    def __init__(self, brokers: int) -> None:
        slots = 1 << max(15, (4 * brokers).bit_length())  # enough for one publication that is delivered everywhere
        self.keys = np.full(slots, -1, np.int64)
        self.counts = np.empty((slots, 2), np.int64)  # brokers, users
        self.used = 0
        self._histogram = np.empty((3, 0), np.int64)  # key, brokers, users; ascending keys
        self._emptied: list[NDArray[np.int64]] = []  # such columns in any order, still to be merged

    def empty(self) -> None:
        """Empty the hash table; what was in it is merged once it is as much as the histogram, so that this happens rarely."""
        taken = self.keys >= 0
        self._emptied.append(np.stack([self.keys[taken], *self.counts[taken].T]))
        self.keys[:] = -1
        self.used = 0
        if sum(part.shape[1] for part in self._emptied) > self._histogram.shape[1]:
            self._merge()

    def close(self) -> None:
        """Nothing more is counted."""
        self.empty()
        self._merge()

    def _merge(self) -> None:
        parts = np.concatenate([self._histogram, *self._emptied], axis=1)
        self._emptied = []
        parts = parts[:, np.argsort(parts[0], kind="stable")]
        unique, first = np.unique(parts[0], return_index=True)
        if len(unique):
            self._histogram = np.stack([unique, *np.add.reduceat(parts[1:], first, axis=1)])

    def table(self) -> dict[str, Any]:
        """One row per window and bin that is not empty: window, lower, upper (s), brokers, users."""
        keys, brokers, users = self._histogram
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
        keys, brokers, _ = self._histogram
        kept = measured[keys // BINS]
        ranks = np.cumsum(np.bincount(keys[kept] % BINS, brokers[kept], minlength=1))
        if ranks[-1] == 0:
            return dict.fromkeys(percents)
        bins = {q: int(np.searchsorted(ranks, math.ceil(ranks[-1] * q / 100))) for q in percents}
        return {q: FIRST_BIN * (1 + BIN_WIDTH) ** (b - 0.5) if b else 0.0 for q, b in bins.items()}
