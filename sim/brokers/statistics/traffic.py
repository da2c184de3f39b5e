"""Traffic of publications: by broker and window, by link, and between regions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.brokers.statistics.tallies import Tallies

# columns of what kernels count of a broker; bytes between brokers, and those of copies to users
RECEIVED, SENT, DELIVERED_HERE, RELAYED, BYTES_IN, BYTES_OUT, COPIES, COPIED_BYTES = range(8)
TRAFFIC_COLUMNS = 8
# and beside them: publications that come from users, and their bytes
PUBLISHED_HERE, PUBLISHED_BYTES = 8, 9
_SHOWN = {
    "received": (RECEIVED,),
    "sent": (SENT,),
    "delivered": (DELIVERED_HERE,),
    "relayed": (RELAYED,),
    "published": (PUBLISHED_HERE,),
    "copies": (COPIES,),
    "bytes_in": (BYTES_IN, PUBLISHED_BYTES),
    "bytes_out": (BYTES_OUT, COPIED_BYTES),
    "client_bytes_in": (PUBLISHED_BYTES,),
    "client_bytes_out": (COPIED_BYTES,),
}
_MOST_ROWS = 1 << 19  # that are kept for windows that are open


class Traffic:
    """The brokers' traffic by window of publication, with rows for brokers that did anything.

    Kernels count in `rows` (rows, TRAFFIC_COLUMNS), where the brokers of an open window begin at `first` (windows; -1: not open).
    Once many windows are open, those that are not `in_use()` are closed, so that memory grows only with actual traffic.
    """

    in_use: Callable[[], NDArray[np.int64]]

    def __init__(self, windows: int, brokers: int) -> None:
        self._brokers = brokers
        self.rows = np.zeros((min(windows, max(_MOST_ROWS // brokers, 1)) * brokers, TRAFFIC_COLUMNS), np.int64)
        self.first = np.full(windows, -1)
        self.in_use = lambda: np.empty(0, np.int64)
        self._open = 0
        self._published = Tallies(1)  # publications and their bytes, by window · brokers + broker
        self._closed: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # such keys, and rows

    def __len__(self) -> int:
        """How many brokers there are."""
        return self._brokers

    def publish(self, windows: NDArray[np.int64], brokers: NDArray[np.int32], size: NDArray[np.int64]) -> None:
        """Publications (columns) come to brokers from their users."""
        self._published.add(np.stack([windows * self._brokers + brokers, np.ones_like(windows), size]))

    def open(self, window: int) -> None:
        """Create rows for a window that has none."""
        if (self._open + 1) * self._brokers > len(self.rows):
            self._close()
            for other in np.unique(self.in_use()).tolist():
                if other != window:
                    self._take(other)
        self._take(window)

    def _take(self, window: int) -> None:
        if (self._open + 1) * self._brokers > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.first[window] = self._open * self._brokers
        self._open += 1

    def _close(self) -> None:
        """Keep the rows of brokers that did anything, and close all windows."""
        windows = np.flatnonzero(self.first >= 0)
        starts = self.first[windows]
        rows = self.rows.reshape(-1, self._brokers, TRAFFIC_COLUMNS)[starts // self._brokers]
        which, brokers = np.nonzero(rows.any(axis=2))
        self._closed.append((windows[which] * self._brokers + brokers, np.pad(rows[which, brokers], ((0, 0), (0, 2)))))
        self.rows[: self._open * self._brokers] = 0
        self.first[:], self._open = -1, 0

    def counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Windows and brokers, ascending, and what was counted there (rows, all columns); nothing more is counted."""
        self._close()
        published, self._published = self._published.columns(), Tallies(1)
        self._closed.append((published[0], np.pad(published[1:].T, ((0, 0), (TRAFFIC_COLUMNS, 0)))))
        keys, rows = (np.concatenate(parts) for parts in zip(*self._closed, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        unique, first = np.unique(keys, return_index=True)
        if len(unique) < len(keys):
            rows = np.add.reduceat(rows, first)
        self._closed = [(unique, rows)]
        windows, brokers = np.divmod(unique, self._brokers)
        return windows, brokers, rows

    def by_broker(self) -> NDArray[np.int64]:
        """The same over all windows (brokers, all columns)."""
        _, brokers, rows = self.counted()
        found = np.zeros((self._brokers, rows.shape[1]), np.int64)
        np.add.at(found, brokers, rows)
        return found


def traffic_columns(rows: NDArray[np.int64]) -> Columns:
    """What was counted of brokers (rows, all columns), as columns of a table."""
    return {name: rows[:, columns].sum(axis=1) for name, columns in _SHOWN.items()}


def link_table(links: Tallies, brokers: int) -> Columns:
    """Messages and bytes of every link that carried any after the warm-up."""
    keys, messages, size = links.columns()
    source, destination = np.divmod(keys, brokers)
    return {"source": source, "destination": destination, "messages": messages, "bytes": size}


def cross_region_bytes(links: Tallies, regions: NDArray[np.int64] | None) -> int | None:
    """Bytes between brokers of different `regions` (brokers), None where there are none."""
    if regions is None:
        return None
    table = link_table(links, len(regions))
    return int(table["bytes"][regions[table["source"]] != regions[table["destination"]]].sum())
