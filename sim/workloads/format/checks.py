"""Checks of the workload format's tables: each raises WorkloadError naming the file and the first bad row (from 0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.errors import WorkloadError

_AT_ONCE = 8_000_000  # rows
_MOST_CHANGES = 2**32 - 1  # which 32 bits can number


@dataclass(frozen=True)
class Checks:
    """Checks of the columns of one file, or of a part of it that begins with row `first`.

    They process some millions of rows at a time to bound the memory of intermediate arrays.
    """

    file: str
    first: int = 0

    def reject(self, bad: NDArray[np.bool_], say: Callable[[int], str], start: int = 0) -> None:
        """Raise for the first bad row, with rows numbered from `start`."""
        if bad.any():
            row = start + int(bad.argmax())
            raise WorkloadError(f"{self.file}: row {self.first + row}: {say(row)}")

    def _each(self, rows: int, bad: Callable[[slice], NDArray[np.bool_]], say: Callable[[int], str]) -> None:
        for start in range(0, rows, _AT_ONCE):
            self.reject(bad(slice(start, min(start + _AT_ONCE, rows))), say, start)

    def lengths(self, columns: Mapping[str, Sized]) -> None:
        """All columns have equally many rows."""
        if len({len(values) for values in columns.values()}) > 1:
            found = ", ".join(f"{name} {len(values):,}" for name, values in columns.items())
            raise WorkloadError(f"{self.file}: columns of different lengths ({found} rows)")

    def between(self, column: str, values: Integers, low: int, high: int) -> None:
        """Ids are in low..high."""
        allowed = f"{low}..{high}" if high >= low else "none, there are none"
        self._each(
            len(values),
            lambda rows: (values[rows] < low) | (values[rows] > high),
            lambda row: f"{column} is {values[row]}, allowed: {allowed}",
        )

    def numbered(self, column: str, values: Integers) -> None:
        """Ids are the row numbers."""
        self._each(
            len(values),
            lambda rows: values[rows] != np.arange(rows.start, rows.stop),
            lambda row: f"{column} is {values[row]}, expected {row}",
        )

    def rising(self, first: str, major: Integers, second: str, minor: Integers) -> None:
        """Pairs of ids rise."""
        pairs = major.astype(np.int64) << 32 | minor
        self.reject(
            np.diff(pairs, prepend=-1) <= 0,
            lambda row: f"{first} {major[row]} and {second} {minor[row]} are not above those of the previous row",
        )

    def equal(self, column: str, values: Integers, expected: Integers) -> None:
        """Each value is the expected one."""
        self.reject(values != expected, lambda row: f"{column} is {values[row]}, expected {expected[row]}")

    def ascending(self, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> None:
        """The topics of each user of the CSR rise."""

        def fallen(rows: slice) -> NDArray[np.bool_]:
            fallen = np.diff(indices[rows], prepend=indices[max(rows.start - 1, 0)]) <= 0
            firsts = slice(*np.searchsorted(indptr, (rows.start, rows.stop)))
            fallen[indptr[firsts] - rows.start] = False  # the first topic of each user may be any
            return fallen

        self._each(
            len(indices), fallen, lambda row: f"topic {indices[row]} is not above the previous one of the same user"
        )

    def not_negative(self, column: str, values: Integers | NDArray[np.float64]) -> None:
        """Values are finite and at least 0."""
        self._each(
            len(values),
            lambda rows: ~((values[rows] >= 0) & np.isfinite(values[rows])),
            lambda row: f"{column} is {values[row]}, allowed: finite and at least 0",
        )

    def times(self, values: NDArray[np.float64], horizon: float, column: str = "time") -> None:
        """Times are in 0..horizon and do not decrease."""
        self.within(column, values, np.zeros(1), horizon)
        self._each(
            len(values),
            lambda rows: np.diff(values[rows], prepend=values[max(rows.start - 1, 0)]) < 0,
            lambda row: f"{column} is {values[row]} s after {values[row - 1]} s, rows must be sorted by {column}",
        )

    def within(self, column: str, values: NDArray[np.float64], least: NDArray[np.float64], horizon: float) -> None:
        """Times are in `least` (one for all, or one per row)..horizon."""
        least = np.broadcast_to(least, len(values))
        self._each(
            len(values),
            lambda rows: ~((values[rows] >= least[rows]) & (values[rows] <= horizon)),
            lambda row: f"{column} is {values[row]} s, allowed: {least[row]:.15g}..{horizon:.15g} s (the horizon)",
        )

    def apart(self, user: NDArray[np.int32], start: NDArray[np.float64], end: NDArray[np.float64]) -> None:
        """Spans of one user, sorted by start (s), do not overlap."""
        order = np.argsort(user, kind="stable")
        same = np.diff(user[order], prepend=-1) == 0
        before = np.empty_like(order)
        before[order] = np.roll(order, 1)
        again = np.zeros(len(user), np.bool_)
        again[order] = same & (start[order] < end[before[order]])
        self.reject(
            again,
            lambda row: f"start is {start[row]} s, before the end of the user's previous row ({end[before[row]]} s)",
        )

    def positions(
        self, latitude: NDArray[np.float64], longitude: NDArray[np.float64], *, required: bool = False
    ) -> None:
        """Positions are on Earth, in degrees, or (unless required) unknown: both NaN."""

        def bad(rows: slice) -> NDArray[np.bool_]:
            unknown = np.isnan(latitude[rows]) & np.isnan(longitude[rows]) & (not required)
            return ~((np.abs(latitude[rows]) <= 90) & (np.abs(longitude[rows]) <= 180) | unknown)

        self._each(
            len(latitude),
            bad,
            lambda row: (
                f"position is {latitude[row]}, {longitude[row]}, allowed: latitude -90..90, longitude -180..180"
            ),
        )

    def changes(
        self,
        user: NDArray[np.int32],
        topic: NDArray[np.int32],
        action: NDArray[np.int8],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        topics: int,
    ) -> None:
        """Every subscribe (+1) finds the user not subscribed, every unsubscribe (-1) subscribed; `topics` is how many there are."""
        self.reject(np.abs(action) != 1, lambda row: f"action is {action[row]}, allowed: 1, -1")
        if not len(user):
            return
        if len(user) > _MOST_CHANGES:
            raise WorkloadError(f"{self.file}: {len(user):,} rows, allowed: up to {_MOST_CHANGES:,}")
        from sim.workloads.format.change_kernels import first_void_change  # which takes half a second to import

        row = first_void_change((user, topic, action), (indptr, indices), topics)
        if row >= 0:
            verb, found = (
                ("subscribes to", "has already") if action[row] > 0 else ("unsubscribes from", "does not have")
            )
            raise WorkloadError(
                f"{self.file}: row {self.first + row}: user {user[row]} {verb} topic {topic[row]}, which it {found}"
            )
