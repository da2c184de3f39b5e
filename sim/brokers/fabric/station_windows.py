"""The record of stations by window: the differences between their sums at the beginning and at the end of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.fabric.window_ends import WindowEnds

LOOKED_AT = (
    "served",
    "control_served",
    "wait",
    "control_wait",
    "busy",
    "waiting_area",
    "offered",
    "dropped",
    "most_waiting",
)
"""The state of a station at the end of a window: sums since the warm-up, and the most messages waiting in this window."""
_COUNTS = ("served", "control_served", "dropped", "most_waiting")


class StationWindows(WindowEnds):
    """What stations did in each window that is measured, rows for brokers that did anything."""

    def __init__(self, edges: Sequence[float], measured: Sequence[bool]) -> None:
        super().__init__(edges, measured)
        self._before: NDArray[np.float64] | None = None
        self._rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = []

    def look(self, so_far: NDArray[np.float64]) -> None:
        """Record the window that ends; `so_far` (LOOKED_AT, brokers)."""
        done = so_far.copy()
        if self._before is not None:
            done[:-1] -= self._before[:-1]
        window = self.end()
        if window is not None:
            brokers = np.flatnonzero(done.any(axis=0))
            self._rows.append((window, brokers, done[:, brokers]))
        self._before = so_far

    def most_waiting(self, brokers: int) -> NDArray[np.int64]:
        """The most messages that waited at each broker."""
        found = np.zeros(brokers, np.int64)
        for _, where, done in self._rows:
            found[where] = np.maximum(found[where], done[-1].astype(np.int64))
        return found

    def columns(self, servers: int) -> Columns:
        """Window, broker, and what the broker did in it, NaN for means over nothing; empty where brokers take no time.

        Each broker has `servers` servers.
        """
        if not self._rows:
            return {}
        window = np.repeat([window for window, _, _ in self._rows], [len(brokers) for _, brokers, _ in self._rows])
        broker = np.concatenate([brokers for _, brokers, _ in self._rows])
        done = np.concatenate([rows for _, _, rows in self._rows], axis=1)
        found = dict(zip(LOOKED_AT, done, strict=True))
        found |= {name: found[name].astype(np.int64) for name in _COUNTS}
        seconds = np.diff(self.edges)[window]
        publications = found["served"] - found["control_served"]
        return {
            "window": window,
            "broker": broker,
            "served": found["served"],
            "queue_wait": mean(found["wait"], found["served"]),
            "publication_wait": mean(found["wait"] - found["control_wait"], publications),
            "control_wait": mean(found["control_wait"], found["control_served"]),
            "utilisation": found["busy"] / servers / seconds,
            "offered_load": found["offered"] / servers / seconds,
            "queue_length": found["waiting_area"] / seconds,
            "queue_max": found["most_waiting"],
            "queue_full": found["dropped"],
        }


def mean(total: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means, NaN where the count is 0."""
    return total / np.where(count > 0, count, np.nan)
