"""The ledger: what became of everything that was due, and of every publication, per window."""

from __future__ import annotations

import numpy as np

from sim.base.errors import ConservationError
from sim.metrics import CAUSES

# rows of due pairs: all of them, then the outcomes, exactly one for each pair
DUE, DELIVERED, IN_FLIGHT = range(3)
LOST = {cause: IN_FLIGHT + 1 + row for row, cause in enumerate(CAUSES)}
ROWS = IN_FLIGHT + 1 + len(LOST)
# causes by which copies are lost, the first that is true first where there are several
LOST_COPIES = tuple(cause for cause in CAUSES if CAUSES[cause].of_copies)
# columns of the publications
PUBLISHED, ROOTED, DROPPED, CLIMBING = range(4)


class Ledger:
    """`pairs` (windows, ROWS, 2) counts pairs due to brokers and to users, `publications` (windows, 4) publications.

    Each of the `copies` of a publication reaches its root, is dropped on the way, or is still on its way at the end.
    """

    def __init__(self, windows: int, copies: int) -> None:
        self.pairs = np.zeros((windows, ROWS, 2), np.int64)
        self.publications = np.zeros((windows, 4), np.int64)
        self._copies = copies
        # the same memory, with ten times faster access to single items
        self._pairs, self._publications = self.pairs.reshape(-1).data, self.publications.reshape(-1).data

    def count(self, window: int, row: int, brokers: int, users: int) -> None:
        """Add brokers and users to a row."""
        place = 2 * (window * ROWS + row)
        self._pairs[place] += brokers
        self._pairs[place + 1] += users

    def count_publication(self, window: int, column: int, copies: int = 1) -> None:
        """Add a publication, or copies of one, to a column."""
        self._publications[4 * window + column] += copies

    def check(self) -> None:
        """Raise ConservationError where the counts do not add up."""
        published = self._copies * self.publications[:, PUBLISHED]
        accounted = self.publications[:, ROOTED:].sum(axis=1)
        for window in np.flatnonzero(published != accounted)[:1].tolist():
            raise ConservationError(
                f"window {window}: {published[window]} publications were published, but {accounted[window]} are accounted for"
            )
        outcomes = self.pairs[:, DELIVERED:].sum(axis=1)
        for window, whom in np.argwhere(self.pairs[:, DUE] != outcomes)[:1].tolist():
            due, delivered, in_flight, *lost = self.pairs[window, :, whom].tolist()
            raise ConservationError(
                f"window {window}: {due} notifications were due to {('brokers', 'users')[whom]}, but {delivered} were delivered, "
                f"{sum(lost)} lost and {in_flight} in flight at the end"
            )
