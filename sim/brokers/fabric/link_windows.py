"""What links did, window by window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.fabric.station_windows import mean
from sim.brokers.fabric.window_ends import WindowEnds

LINK_COLUMNS = ("messages", "bytes", "queue_full", "lost", "most_waiting", "waited", "busy", "waiting_area")
"""What is seen of a link when a window ends: what it did in it. `waited` is what messages sent in it wait, even beyond its end (s)."""
_COUNTS = LINK_COLUMNS[:5]


class LinkWindows(WindowEnds):
    """What links did in each window that is measured, rows for links that did anything.

    Links are known by source · brokers + destination.
    """

    def __init__(self, edges: Sequence[float], measured: Sequence[bool], brokers: int) -> None:
        super().__init__(edges, measured)
        self._brokers = brokers
        self._rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = []

    def look(self, links: NDArray[np.int64], done: NDArray[np.float64]) -> None:
        """Keep what links (k) did in the window that ends; `done` (k, LINK_COLUMNS)."""
        window, busy = self.end(), done.any(axis=1)
        if window is not None and busy.any():
            order = np.argsort(links[busy])
            self._rows.append((window, links[busy][order], done[busy][order]))

    def table(self) -> Columns:
        """A row for each window and link, sorted by these; means are NaN where they are over nothing."""
        sizes = [len(links) for _, links, _ in self._rows]
        window = np.repeat(np.array([window for window, _, _ in self._rows], np.int64), sizes)
        links = np.concatenate([np.empty(0, np.int64), *(links for _, links, _ in self._rows)])
        done = np.concatenate([np.empty((0, len(LINK_COLUMNS))), *(rows for _, _, rows in self._rows)])
        source, destination = np.divmod(links, self._brokers)
        seconds = np.diff(self.edges)[window]
        return {"window": window, "source": source, "destination": destination, **_columns(done, seconds)}

    def by_link(self, links: NDArray[np.int64], seconds: float) -> Columns:
        """The same of each of these links, ascending, over all windows, which last `seconds` together."""
        total = np.zeros((len(links), len(LINK_COLUMNS)))
        for _, there, done in self._rows:
            known = np.isin(there, links)
            at, rows = np.searchsorted(links, there[known]), done[known]
            most = np.maximum(total[at, 4], rows[:, 4])
            total[at] += rows
            total[at, 4] = most
        return _columns(total, np.array(seconds))


def _columns(done: NDArray[np.float64], seconds: NDArray[np.float64]) -> Columns:
    """What links did in `seconds` each, as columns of a table; `done` (rows, LINK_COLUMNS)."""
    found: Columns = dict(zip(LINK_COLUMNS, done.T, strict=True))
    found |= {name: found[name].astype(np.int64) for name in _COUNTS}
    return {
        "messages": found["messages"],
        "bytes": found["bytes"],
        "utilisation": np.minimum(found["busy"] / seconds, 1.0),
        "queue_wait": mean(found["waited"], found["messages"]),
        "queue_length": found["waiting_area"] / seconds,
        "queue_max": found["most_waiting"],
        "queue_full": found["queue_full"],
        "lost": found["lost"],
    }
