"""How far users, who move, are from brokers, and the time that messages take over that distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import accessor
from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.statistics.recorder import Recorder
from sim.overlay.latency import EARTH_RADIUS_KM
from sim.overlay.pair_times import on_unit_sphere, time_over
from sim.workloads.format.workload import Workload

POINT = np.dtype([("since", "f8"), ("x", "f8"), ("y", "f8"), ("z", "f8")], align=True)
"""Where a user is from a time (s) on, or a broker: a point on the unit sphere."""

point_at = accessor(POINT)


@dataclass(frozen=True, eq=False)
class DistanceSetting:
    """Messages between users and brokers, which stand at these places (degrees), take `per_km` (s) for each kilometre."""

    per_km: float
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


class Distances:
    """The times over the distances between all users and brokers.

    `places` (POINT) are those of all users, user by user in order of time: of user u from `first[u]` up to `first[u + 1]`. `sites`
    (POINT) are the brokers' places; `per_arc` is the time (s) for half a radian of the great circle, as in `time_over`.
    """

    def __init__(self, setting: DistanceSetting, workload: Workload, recorder: Recorder) -> None:
        """Let the recorder note where publications enter."""
        users, moves = workload.users, workload.movements
        who = np.concatenate([np.arange(len(users)), moves.user])
        since = np.concatenate([np.full(len(users), -np.inf), moves.time])
        order = np.lexsort((since, who))
        latitude = np.concatenate([users.latitude, moves.latitude])[order]
        longitude = np.concatenate([users.longitude, moves.longitude])[order]
        self.places = _points(since[order], latitude, longitude)
        self.first = np.searchsorted(who[order], np.arange(len(users) + 1))
        self.sites = _points(np.zeros(len(setting.latitude)), setting.latitude, setting.longitude)
        self.per_arc = 2.0 * setting.per_km * EARTH_RADIUS_KM
        self._publications = workload.publications
        self._entered = recorder.entered = np.full(len(workload.publications), -1, np.int32)

    def up(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The times (s) of publications over the distance from the publisher to the broker; 0 from outside."""
        publications = self._publications
        about = publications.publisher[numbers], publications.time[numbers], self._entered[numbers]
        return ways_up(self.places.ctypes.data, self.first, self.sites, *about, self.per_arc)


def _points(since: NDArray[np.float64], latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Items:
    found = np.zeros(len(since), POINT)
    found["since"] = since
    found["x"], found["y"], found["z"] = on_unit_sphere(latitude, longitude).T
    return found


@kernel
def seconds_between(places: int, first: int, end: int, site: Item, time: float, per_arc: float) -> float:
    """The time (s) over the distance at a time (s) between a broker's site and a user with places from `first` up to `end`."""
    low, high = first + 1, end
    while low < high:  # the first place after that time
        middle = (low + high) // 2
        if point_at(places, middle).since <= time:
            low = middle + 1
        else:
            high = middle
    here = point_at(places, low - 1)
    return float(time_over(here.x - site.x, here.y - site.y, here.z - site.z, 0.0, per_arc))


@kernel
def ways_up(
    places: int,
    first: NDArray[np.int64],
    sites: Items,
    publishers: NDArray[np.int32],
    times: NDArray[np.float64],
    brokers: NDArray[np.int32],
    per_arc: float,
) -> NDArray[np.float64]:
    """The times (s) over the distances between publishers and brokers at some times (s); 0 for those from outside."""
    found = np.zeros(publishers.size)
    for i in range(publishers.size):
        user, broker = publishers[i], brokers[i]
        if user >= 0 and broker >= 0:
            found[i] = seconds_between(places, first[user], first[user + 1], sites[broker], times[i], per_arc)
    return found
