"""Times of a trace that lie far from all others, such as those of a clock that was not set, or seconds among milliseconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.files.columns import int64_values
from sim.workloads.traces.judging import beyond
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.sources import Source
from sim.workloads.traces.times import Window, iso

_DAY = 86_400_000_000  # µs
_QUIET = 30  # days from one row to the next that are always plausible
_FEW = 0.01  # share of all rows from which on those beyond are strays only if more than a year away
_YEAR = 366  # days
_FACTOR = 2  # longer gaps are plausible up to this multiple of the days on this side of the gap
_LONG = 20 * 366  # days; no broker log is longer
DayCounts = tuple[int, NDArray[np.int64]]
"""A day, since 1970, and how many rows there are on it and on each day that follows."""


class TraceWarning(UserWarning):
    """A warning about implausible data in a trace that can be used."""


@dataclass(frozen=True)
class PlausibleSpan:
    """The days on which a trace has rows, in days since 1970: of the rows that belong together, [first, end), and of all."""

    first: int
    end: int
    least: int
    most: int
    before: int  # rows
    after: int


def rows_per_day(times: Sequence[NDArray[np.int64]]) -> DayCounts:
    """How many rows with these times (µs since 1970) there are on each day from the first on, and which day that is."""
    some_times = [some for some in times if len(some)]
    if not some_times:
        return 0, np.zeros(0, np.int64)
    least = min(int(some.min()) for some in some_times) // _DAY
    most = max(int(some.max()) for some in some_times) // _DAY
    counts = np.zeros(most - least + 1, np.int64)
    for some in some_times:
        for start in range(0, len(some), 1 << 20):
            counts += np.bincount(some[start : start + (1 << 20)] // _DAY - least, minlength=len(counts))
    return least, counts


def days_of_all(counts: Sequence[DayCounts]) -> DayCounts:
    """The sum of counts by day."""
    some = [(first, count) for first, count in counts if len(count)]
    least, end = min(first for first, _ in some), max(first + len(count) for first, count in some)
    total = np.zeros(end - least, np.int64)
    for first, count in some:
        total[first - least : first - least + len(count)] += count
    return least, total


def find_span(least: int, counts: NDArray[np.int64]) -> PlausibleSpan:
    """The plausible span of rows, `rows_per_day`, of which there are some.

    From the median row's day it grows to the nearer of the next days with rows, as long as that is no further away than twice the
    days it takes by then, or than a month; or than a year, where 1 % of all rows lie beyond.
    """
    most = least + len(counts) - 1
    days = np.flatnonzero(counts)
    before = np.cumsum(counts[days])
    low = high = int(np.searchsorted(before, (before[-1] + 1) // 2))
    gaps = np.diff(days)

    def near(gap: int, beyond: int) -> bool:
        quiet = _QUIET if beyond < _FEW * before[-1] else _YEAR
        return gap <= max(quiet, _FACTOR * int(days[high] - days[low] + 1))

    while True:
        left = gaps[low - 1] if low > 0 and near(gaps[low - 1], before[low - 1]) else np.inf
        right = gaps[high] if high < len(gaps) and near(gaps[high], before[-1] - before[high]) else np.inf
        if left == right == np.inf:
            break
        low, high = (low - 1, high) if left <= right else (low, high + 1)
    first, end = int(days[low]) + least, int(days[high]) + least + 1
    rows_before = int(before[low - 1]) if low else 0
    return PlausibleSpan(first, end, least, most, rows_before, int(before[-1] - before[high]))


def warn_of_strays(per_day: DayCounts, what: str, shelves: Sequence[Shelf], sources: Sequence[Source]) -> None:
    """Warn, with a place and a value, of times that lie far from all others, and of a trace that takes decades without them.

    `per_day` counts the usable rows, which are `what`; those on the shelves that have micros are of `sources`, numbered from 0.
    """
    if not (total := int(per_day[1].sum())):
        return
    span = find_span(*per_day)
    first_day, end = span.first * _DAY, span.end * _DAY
    for count, within, side, days, limit in (
        (span.before, (None, first_day), "before", span.first - span.least, f"--from {iso(first_day)}"),
        (span.after, (end, None), "after", span.most - span.end + 1, f"--to {iso(end)}"),
    ):
        if count:
            first = _said(next(_rows(shelves, within)), shelves, sources)
            _warn(
                f"{first}, far {side} most others: {count:,} of {total:,} {what} lie up to {days:,} days {side} the rest, and the "
                f"trace takes {span.most - span.least + 1:,} days instead of {span.end - span.first:,}; {limit} leaves them out"
            )
    if span.end - span.first > _LONG:
        first, last = (
            _said(
                min(_extremes(shelves, (first_day, end), sign), key=lambda row: (sign * row[2], *row[:2])),
                shelves,
                sources,
            )
            for sign in (1, -1)
        )
        years = (span.end - span.first) / 365.25
        _warn(f"{first}, and {last}: the trace takes {years:.0f} years; --from and --to choose a part of it")


def _warn(message: str) -> None:
    warnings.warn(message, TraceWarning, stacklevel=3)


def _rows(shelves: Sequence[Shelf], window: Window) -> Iterator[tuple[int, int, int]]:
    """The source, line and time of the first row with a time in a window in each batch of rows, by source and line."""
    for source, line, micros in _times(shelves):
        if len(at := np.flatnonzero(~beyond(micros, window))):
            yield source, int(line[at[0]]), int(micros[at[0]])


def _extremes(shelves: Sequence[Shelf], window: Window, sign: int) -> Iterator[tuple[int, int, int]]:
    """The source, line and time of the first row with the earliest time, or the latest if `sign` is -1."""
    for source, line, micros in _times(shelves):
        if len(at := np.flatnonzero(~beyond(micros, window))):
            best = at[(sign * micros[at]).argmin()]
            yield source, int(line[best]), int(micros[best])


def _times(shelves: Sequence[Shelf]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    for shelf in shelves:
        for source, line, batch in shelf.usable():
            if "micros" in batch.schema.names:
                yield source, line, int64_values(batch["micros"])


def _said(row: tuple[int, int, int], shelves: Sequence[Shelf], sources: Sequence[Source]) -> str:
    source, line, micros = row
    numbered = any(piece.numbered for shelf in shelves for piece in shelf.pieces if piece.source == source)
    return f"{sources[source].path}: {'row' if numbered else 'line'} {line}: the time is {iso(micros)}"
