"""Latency models: round-trip times between brokers, from their physical positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim import plugins
from sim.base.errors import refuse
from sim.base.units import Duration, Sigma
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites

EARTH_RADIUS_KM = 6371.0088
TABULATED = 2048
"""Up to this many brokers have a table of their times, which is faster than computing them; for more it would take too much memory."""


def great_circle_km(
    latitude: NDArray[np.float64],
    longitude: NDArray[np.float64],
    to_latitude: float | NDArray[np.float64],
    to_longitude: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Great-circle distances (km) between points in degrees, with broadcasting (haversine on the mean Earth radius)."""
    phi, to_phi = np.radians(latitude), np.radians(to_latitude)
    chord = (
        np.sin((phi - to_phi) / 2) ** 2
        + np.cos(phi) * np.cos(to_phi) * np.sin(np.radians(longitude - to_longitude) / 2) ** 2
    )
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(chord, 1.0))))


@dataclass(frozen=True, eq=False)
class LatencySetting:
    """What a latency model is built from: the brokers' sites, and the key for its random draws."""

    sites: Sites
    key: int


class LatencyModel(Protocol):
    """Round-trip times between brokers. `jitter` is the σ of a lognormal factor with mean 1 on every hop; 0 is none.

    Plug-in group `brokersim.latency`: a class with a nested `Parameters(sim.plugins.Parameters)`, created by `Model(parameters,
    setting)` with a LatencySetting. `round_trips` (n, n) are seconds between all brokers, symmetric, diagonal 0, as an array, or as
    PairTimes where that takes less memory; `notes` are sentences about how they were obtained, for the user.
    """

    @property
    def round_trips(self) -> NDArray[np.float64] | PairTimes: ...

    @property
    def jitter(self) -> float: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class UnitLatency:
    """The same round-trip time between any two brokers, so that delays count hops."""

    class Parameters(plugins.Parameters):
        rtt: Duration = 1.0
        """Round-trip time between two brokers."""

    jitter = 0.0
    notes = ()

    def __init__(self, parameters: Parameters, setting: LatencySetting) -> None:
        self.round_trips = PairTimes.of_groups(np.zeros(len(setting.sites), np.int32), np.full((1, 1), parameters.rtt))


class DistanceLatency:
    """Round-trip times that grow with the great-circle distance: base + per_km · distance (DYNATOPS IV-A1)."""

    class Parameters(plugins.Parameters):
        base: Duration = 0.001
        """Round-trip time at distance 0."""
        per_km: Duration = 0.00002
        """Round-trip time per kilometre."""
        jitter: Sigma = 0.0
        """σ of a lognormal factor with mean 1 on every hop; messages on one link keep their order."""

        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            if sites is None or sites.have_places:
                return None
            return (
                'network.latency: kind "distance" needs the brokers\' positions, which neither the workload nor a file gives '
                '(allowed without positions: kind = "unit")'
            )

    notes = ()

    def __init__(self, parameters: Parameters, setting: LatencySetting) -> None:
        """Raises ScenarioError where a broker has no position."""
        sites = setting.sites
        refuse(parameters.unfit(len(sites), sites))
        self.jitter = parameters.jitter
        if len(sites) > TABULATED:
            per_radian = parameters.per_km * EARTH_RADIUS_KM
            self.round_trips = PairTimes.on_sphere(sites.latitude, sites.longitude, parameters.base, per_radian)
            return
        times = np.empty((len(sites), len(sites)))
        for i, place in enumerate(zip(sites.latitude, sites.longitude, strict=True)):
            times[i] = parameters.base + parameters.per_km * great_circle_km(sites.latitude, sites.longitude, *place)
        for i in range(len(sites)):  # the last bit of the distance may depend on the direction
            times[i, i:] = times[i:, i] = (times[i, i:] + times[i:, i]) / 2
        self.round_trips = PairTimes.of(times)
