"""The mobility workload: users with homes in cities, exploration and preferential return.

After Song, Koren, Wang and Barabási 2010, "Modelling the scaling properties of human mobility"; the defaults are chosen to match
the trace described in DYNATOPS, section IV.A.1: a third of the (user, cell) pairs are single visits, half of the stays last less
than a day, a tenth more than a week.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sim.base.csr import row_starts
from sim.base.randomness import Streams
from sim.base.units import SECONDS, PositiveDuration, Utc, unit
from sim.files.parquet import numbers
from sim.workloads.format.workload import Workload
from sim.workloads.models.location import (
    LARGEST_CELL,
    SMALLEST_CELL,
    Visits,
    location_workload,
    merge_checkins,
    number_cells,
    publish_each,
)
from sim.workloads.synthetic.checkins import SyntheticCheckins
from sim.workloads.synthetic.common import Generated, check_events
from sim.workloads.synthetic.mobility_kernels import KM_PER_DEGREE, fold, walk

_GAPS_AT_ONCE = 16
_NEAREST_KM = 1.0  # a shorter step leads to the same place


class MobilityWorkload:
    """A location workload of users who move: homes in cities, exploration and preferential return, lognormal gaps."""

    class Parameters(Generated):
        """Users, the region, movement and publications."""

        has_places: ClassVar[bool] = True

        users: int = Field(1000, gt=0, lt=2**31)
        """Number of users."""
        horizon: PositiveDuration = 92 * SECONDS["d"]
        """Length of the workload."""
        origin: Utc = "2010-08-01T00:00:00Z"
        """Time 0, UTC."""
        cell: float = Field(1.0, ge=SMALLEST_CELL, le=LARGEST_CELL, json_schema_extra=unit("°"))
        """Side of a grid cell."""
        friends: int = Field(4, ge=0)
        """Number of other users that each user follows."""
        box: tuple[float, float, float, float] = Field((30.0, -126.0, 50.0, -66.0), json_schema_extra=unit("°"))
        """The region: south, west, north, east."""
        cities: int = Field(50, gt=0)
        """Number of cities, spread evenly over the region."""
        city_exponent: float = Field(1.0, ge=0)
        """City i of 1..cities has a share of the homes proportional to i^-city_exponent (Zipf)."""
        city_radius: float = Field(20.0, ge=0, json_schema_extra=unit("km"))
        """Standard deviation of homes around their city, north and east."""
        gap: PositiveDuration = 10 * SECONDS["h"]
        """Median time between two check-ins of a typical user."""
        gap_sigma: float = Field(1.3, ge=0, le=5)
        """Spread of a user's gaps: standard deviation of their logarithm (lognormal, heavy-tailed)."""
        pace_sigma: float = Field(0.3, ge=0, le=5)
        """Spread between users: standard deviation of the logarithm of their median gaps."""
        home_share: float = Field(0.05, ge=0, le=1)
        """Share of check-ins that are always at home."""
        rho: float = Field(0.6, ge=0, le=1)
        """Away from home, a user who knows S places explores a new one with probability rho S^-gamma."""
        gamma: float = Field(0.21, ge=0)
        """How fast exploration declines; a user who does not explore repeats an earlier check-in at random."""
        jump_exponent: float = Field(0.55, gt=0)
        """A new place is farther than r km with probability about r^-jump_exponent (from 1 km to jump_limit)."""
        jump_limit: float = Field(4000.0, gt=_NEAREST_KM, json_schema_extra=unit("km"))
        """Longest jump."""
        publications: Literal["per-visit", "per-check-in"] = "per-visit"
        """The event that triggers a publication."""
        publisher: Literal["visitor", "any"] = "visitor"
        """Who publishes: the user who is there, or any user, drawn at random."""
        size: int = Field(100, ge=0, lt=2**31, json_schema_extra=unit("bytes"))
        """Size of a publication."""

        @field_validator("box")
        @classmethod
        def _is_land(cls, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
            south, west, north, east = box
            if not (-90 < south < north < 90 and -180 <= west < east <= 180):
                raise ValueError(
                    "expected south, west, north, east in degrees, south < north, west < east, without a pole"
                )
            return box

        @model_validator(mode="after")
        def _is_not_endless(self) -> MobilityWorkload.Parameters:
            check_events("users, horizon and gap", self.events, "check-ins")
            return self

        @property
        def events(self) -> float:
            return self.users * self.horizon / max(self.gap, 1.0)

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def checkins(self, streams: Streams) -> SyntheticCheckins:
        """All check-ins, at whole seconds, sorted by user and time; every user has at least one, the first at home."""
        p = self.parameters
        indptr, time = self._times(streams.generator("workload.gaps"))
        latitude, longitude = np.empty((2, len(time)))
        latitude[indptr[:-1]], longitude[indptr[:-1]] = self._homes(streams.generator("workload.homes"))
        generator = streams.generator("workload.walk")
        draws = generator.random((4, len(time)))
        _, _, step, bearing = draws
        nearest, farthest = _NEAREST_KM**-p.jump_exponent, p.jump_limit**-p.jump_exponent
        km = (nearest - step * (nearest - farthest)) ** (-1 / p.jump_exponent)
        angle = 2 * np.pi * bearing
        draws[2], draws[3] = km * np.cos(angle), km * np.sin(angle)
        place = walk(indptr, latitude, longitude, p.box, (p.home_share, p.rho, p.gamma), draws)
        user = np.repeat(np.arange(p.users, dtype=np.int32), np.diff(indptr))
        # precision as in files; never on the northern or eastern edge, which belongs to the next cells
        south, west, north, east = p.box
        latitude = np.clip(np.round(latitude, 6), south, north - 1e-6)
        longitude = np.clip(np.round(longitude, 6), west, east - 1e-6)
        place = np.unique(place, return_inverse=True)[1]
        return SyntheticCheckins(time, user, latitude, longitude, place, p.origin, p.horizon, p.box)

    def generate(self, streams: Streams) -> Workload:
        """The location workload of these check-ins."""
        p = self.parameters
        raw = self.checkins(streams)
        cells, cell = number_cells(raw.latitude, raw.longitude, p.cell)
        checkins = Visits(raw.time, raw.user, cell, raw.latitude, raw.longitude)
        visits = merge_checkins(checkins)
        published = visits
        if p.publications == "per-check-in":
            published = checkins.rows(np.lexsort((cell, raw.user, raw.time)))
        generator = {"name": "mobility", **p.model_dump(mode="json"), "replication": streams.replication}
        each = publish_each(published, p.size)
        if p.publisher == "any":
            drawn = streams.generator("workload.publishers").integers(0, p.users, len(published), dtype=np.int32)
            each = replace(each, publisher=drawn)
        return location_workload(
            visits, cells, numbers(p.users), each, p.friends, streams, generator, p.horizon, origin=p.origin
        )

    def _homes(self, generator: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        p = self.parameters
        south, west, north, east = p.box
        city_latitude, city_longitude = generator.uniform((south, west), (north, east), (p.cities, 2)).T
        weight = np.arange(1, p.cities + 1, dtype=np.float64) ** -p.city_exponent
        city = generator.choice(p.cities, p.users, p=weight / weight.sum())
        away = generator.normal(0.0, p.city_radius / KM_PER_DEGREE, (2, p.users))
        latitude = city_latitude[city] + away[0]
        longitude = city_longitude[city] + away[1] / np.cos(np.radians(city_latitude[city]))
        return fold(latitude, south, north), fold(longitude, west, east)

    def _times(self, generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Times of all check-ins by user (whole s), and the index of each user's first."""
        p = self.parameters
        location = np.log(p.gap) + generator.normal(0.0, p.pace_sigma, p.users)
        # the first check-in is at the end of a gap that has begun before time 0
        first_gap = np.minimum(generator.lognormal(location, p.gap_sigma), p.horizon)
        last = np.floor(generator.random(p.users) * first_gap)
        times, users = [last.copy()], [np.arange(p.users)]
        active = users[0]
        while len(active):
            gaps = generator.lognormal(location[active, None], p.gap_sigma, (len(active), _GAPS_AT_ONCE))
            # the order of two check-ins in one second would be undefined
            found = last[active, None] + np.cumsum(np.maximum(np.floor(gaps), 1.0), axis=1)
            inside = found < p.horizon
            times.append(found[inside])
            users.append(np.repeat(active, inside.sum(axis=1)))
            last[active] = found[:, -1]
            active = active[inside[:, -1]]
        time, user = np.concatenate(times), np.concatenate(users)
        return row_starts(np.bincount(user, minlength=p.users)), time[np.lexsort((time, user))]
