"""Measured satisfaction: what the back end delivered to each user in a period, relative to the need (ODS eq. 1 to 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Outcome(NamedTuple):
    """The satisfaction of a period, over the `subscribers` who needed anything in it.

    `satisfied` of them received what they needed; `satisfaction` is the sum of the shares received, at most 1 each.
    """

    subscribers: int
    satisfied: int
    satisfaction: float


class Satisfaction:
    """Counts what becomes due to each user in a period, and how much of it the back end delivers, at any time.

    A user needs tau notifications in a period, or all that are due where these are fewer. Publications belong to the period in which
    they are published; `times` (ascending, s) are theirs. Periods of `period` seconds that end by the horizon are measured, each as
    soon as all its publications have been counted.
    """

    def __init__(self, times: NDArray[np.float64], users: int, tau: float, period: float, horizon: float) -> None:
        self.periods = int(horizon / period) + 1
        while self.periods * period > horizon:
            self.periods -= 1
        ends = np.arange(1, self.periods + 1) * period
        self.period_of: NDArray[np.int64] = np.searchsorted(ends, times, side="right")  # the period of each publication
        self.outcomes: dict[int, Outcome] = {}
        self._left = np.bincount(self.period_of[: np.searchsorted(times, horizon)], minlength=self.periods + 1)
        self._users, self._tau = users, tau
        self._counts: dict[int, NDArray[np.int64]] = {}  # period → due and received (2, users)

    def receive(self, period: int, users: NDArray[np.int64], publications: int, received: NDArray[np.int64]) -> None:
        """Count publications of a period that became due to these users, and the arrivals at each."""
        if period < self.periods:
            counts = self._counts.get(period)
            if counts is None:
                counts = self._counts[period] = np.zeros((2, self._users), np.int64)
            counts[0, users] += publications
            counts[1, users] += received

    def record_periods(self, numbers: NDArray[np.int64]) -> None:
        """Record the outcomes of these publications."""
        for period, publications in enumerate(np.bincount(self.period_of[numbers]).tolist()):
            if publications:
                self.count(period, publications)

    def count(self, period: int, publications: int) -> None:
        """Record that the outcomes of `publications` publications of a period are known."""
        self._left[period] -= publications
        if not self._left[period] and period < self.periods:
            self._measure(period)

    def count_all(self, publications: NDArray[np.int64]) -> None:
        """Record the outcomes of all periods at once (periods, or more)."""
        for period in np.flatnonzero(publications).tolist():
            self.count(period, int(publications[period]))

    def _measure(self, period: int) -> None:
        due, received = self._counts.pop(period, np.zeros((2, 0), np.int64))
        need = np.minimum(due, self._tau)
        those = np.flatnonzero(need > 0)
        satisfied = int(np.count_nonzero(received[those] >= need[those]))
        share = np.minimum(received[those] / need[those], 1.0)
        self.outcomes[period] = Outcome(len(those), satisfied, float(share.sum()))
