"""Times between pairs of brokers: from a table by groups of brokers, or computed from their positions."""

from __future__ import annotations

import math
from collections.abc import Iterator

# Any: the protocols of NumPy, which let an array be asked for by anything.
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.compiled import inlined, kernel


class TimesRecord(NamedTuple):
    """Times between n brokers (s) for kernels (see time_between); 0 from a broker to itself.

    `between` (g, g) are times between groups, `group` (n) is each broker's group. Where brokers have `places` (n, 3), points
    on a unit sphere, the time is `base` plus `per_arc` for each half radian of the great circle instead.
    """

    group: NDArray[np.int32]
    between: NDArray[np.float64]
    places: NDArray[np.float64]
    base: float
    per_arc: float


def on_unit_sphere(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points (n, 3) on a unit sphere of positions in degrees (n)."""
    phi, theta = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], 1)


@inlined
def time_over(x: float, y: float, z: float, base: float, per_arc: float) -> float:
    """The time over a chord of the unit sphere with these coordinates."""
    return base + per_arc * math.asin(min(0.5 * math.sqrt(x * x + y * y + z * z), 1.0))


@inlined
def time_between(times: TimesRecord, here: int, there: int) -> float:
    """The time (s) from a broker to another."""
    if here == there:
        return 0.0
    if times.places.size == 0:
        return float(times.between[times.group[here], times.group[there]])
    a, b = times.places[here], times.places[there]
    return time_over(a[0] - b[0], a[1] - b[1], a[2] - b[2], times.base, times.per_arc)


@kernel
def _times_between(times: TimesRecord, here: NDArray[np.int64], there: NDArray[np.int64]) -> NDArray[np.float64]:
    found = np.empty(here.size)
    for i in range(here.size):
        found[i] = time_between(times, here[i], there[i])
    return found


class PairTimes:
    """Times between n brokers (s), which take memory per pair only if they were given by pair: `times[here, there]`, also of arrays.

    `times[here]` is the row of a broker; NumPy converts it to the matrix (n, n), which is computed each time.
    """

    def __init__(self, record: TimesRecord) -> None:
        self.record = record

    @classmethod
    def of(cls, times: NDArray[np.float64] | PairTimes) -> PairTimes:
        """The times as PairTimes, from a matrix (n, n) or PairTimes."""
        return times if isinstance(times, PairTimes) else cls.of_groups(np.arange(len(times)), times)

    @classmethod
    def of_groups(cls, group: Integers, between: NDArray[np.float64]) -> PairTimes:
        """Create times from those between groups (g, g), where `group` (n) is each broker's group."""
        table = np.require(between, np.float64, ["C", "W"])
        return cls(TimesRecord(group.astype(np.int32), table, np.empty((0, 3)), 0.0, 0.0))

    @classmethod
    def on_sphere(
        cls, latitude: NDArray[np.float64], longitude: NDArray[np.float64], base: float, per_radian: float
    ) -> PairTimes:
        """Create times of a base (s) plus seconds per radian of the great circle; positions are in degrees."""
        places = on_unit_sphere(latitude, longitude)
        return cls(TimesRecord(np.zeros(len(places), np.int32), np.zeros((1, 1)), places, base, 2 * per_radian))

    def __len__(self) -> int:
        return len(self.record.group)

    def __getitem__(self, pair: Any) -> Any:
        here, there = pair if isinstance(pair, tuple) else (pair, np.arange(len(self)))
        pairs = np.broadcast_arrays(np.asarray(here, np.int64), np.asarray(there, np.int64))
        found = _times_between(self.record, *(np.array(each).ravel() for each in pairs))
        return found.reshape(pairs[0].shape)[()]

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        """The rows, broker by broker."""
        return (self[broker] for broker in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = np.empty((len(self), len(self)), dtype)
        for broker, row in enumerate(self):
            found[broker] = row
        return found

    def times(self, factor: float) -> PairTimes:
        """The times multiplied by a factor; exact if it is a power of two."""
        record = self.record
        scaled = record._replace(base=factor * record.base, per_arc=factor * record.per_arc)
        return PairTimes(scaled._replace(between=factor * record.between))
