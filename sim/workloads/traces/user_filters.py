"""Filters of a trace's users: a sample, users present in every month, users with many visits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.workloads.models.location import Visits, merge_checkins, number_cells
from sim.workloads.traces.checkins import Checkins
from sim.workloads.traces.layouts import zone_of
from sim.workloads.traces.times import Window

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class UserFilters:
    """A share of the users, those with check-ins in every month of the trace, those with at least a number of visits."""

    sample: float = 1.0
    consistent: str | None = None
    min_visits: int = 0

    def __post_init__(self) -> None:
        check_sample(self.sample)
        if self.consistent not in (None, "monthly"):
            raise WorkloadError(f"--consistent is '{self.consistent}', allowed: monthly")
        if self.min_visits < 0:
            raise WorkloadError(f"--min-visits is {self.min_visits}, allowed: 0 and more")


def check_sample(share: float) -> None:
    """Raise WorkloadError where a share of the users is not valid."""
    if not 0 < share <= 1:
        raise WorkloadError(f"--sample is {share:g}, allowed: above 0 and up to 1")


def select_users(
    checkins: Checkins, filters: UserFilters, *, months: NDArray[np.int64], side: float, streams: Streams
) -> tuple[Checkins, dict[str, NDArray[np.int64]]]:
    """The remaining check-ins of `load_checkins`, and the numbers of the others' rows by reason.

    The reasons: `duplicate`, and of users who are left out, in this order, `not_sampled`, `not_every_month`, `few_visits`.
    `months` are the `calendar_months` of the whole trace, `side` is that of a cell, in degrees.
    """
    dropped: dict[str, NDArray[np.int64]] = {}
    left = checkins

    def keep(which: NDArray[np.bool_], reason: str) -> None:
        nonlocal left
        dropped[reason] = left.row[~which]
        left = left.where(which)

    keep(~left.repeated(), "duplicate")
    if filters.sample < 1:
        keep(sampled(left.names, filters.sample, streams)[left.user], "not_sampled")
    if filters.consistent == "monthly" and len(left):
        keep(present_monthly(left, months)[left.user], "not_every_month")
    if filters.min_visits > 1 and len(left):
        _, cell = number_cells(left.latitude, left.longitude, side)
        visits = merge_checkins(Visits(left.micros / 1e6, left.user, cell, left.latitude, left.longitude))
        keep((np.bincount(visits.user) >= filters.min_visits)[left.user], "few_visits")
    return left, dropped


def sampled(names: Sequence[str], share: float, streams: Streams) -> NDArray[np.bool_]:
    """Which users are in a sample of this share, determined by each user's name alone."""
    lots = b"".join(hashlib.blake2s(name.encode(), digest_size=8).digest() for name in names)
    drawn = _uniform(streams.key("workload.sample"), np.frombuffer(lots, "<u8").astype(np.uint64))
    return drawn < share


def _uniform(key: int, lots: NDArray[np.uint64]) -> NDArray[np.float64]:
    """`keyed_uniform` of each of these and 0, for executors, which have no compiler."""
    step = np.uint64(0x9E3779B97F4A7C15)
    word = np.full(len(lots), key, np.uint64)
    for part in (lots, np.uint64(0)):
        word += part * step + step
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return ((word >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def present_monthly(checkins: Checkins, months: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which users have a check-in in each of these months, given by their starts in µs since 1970; none is earlier."""
    month = np.searchsorted(months, checkins.micros, side="right")
    new = (np.diff(checkins.user, prepend=-1) != 0) | (np.diff(month, prepend=-1) != 0)  # they ascend by (user, time)
    present: NDArray[np.bool_] = np.bincount(checkins.user[new], minlength=len(checkins.names)) == len(months)
    return present


def calendar_months(first: int, last: int, window: Window, zone: str) -> NDArray[np.int64]:
    """The starts of the calendar months in `zone`, in µs since 1970, from that of the window's first time to that of its last.

    Where the window has no first time or no end, `first` and `last` hold.
    """
    first = first if window[0] is None else window[0]
    last = last if window[1] is None else window[1] - 1
    place = zone_of(zone)
    start, stop = ((_EPOCH + time * _MICROSECOND).astimezone(place) for time in (first, last))
    numbers = range(12 * start.year + start.month - 1, 12 * stop.year + stop.month)
    starts = (datetime(number // 12, number % 12 + 1, 1, tzinfo=place) for number in numbers)
    return np.array([(start - _EPOCH) // _MICROSECOND for start in starts], np.int64)
