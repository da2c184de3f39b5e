"""GeoPS, a reconstruction: geocast over the quadrants of a map, as suggested by DYNATOPS (section IV.B) and the name.

The original paper cannot be found. Known from it are only the map of 2^k × 2^k cells, the geography-aware hierarchy and geocast.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim import plugins
from sim.base.errors import refuse
from sim.overlay.geometry import GeometrySetting
from sim.overlay.latency import great_circle_km
from sim.overlay.prefixes import Prefixes, PrefixTrees
from sim.overlay.sites import Sites

QUADRANTS = 4
MOST_LEVELS = 26  # finer than a metre on Earth, and exact in float64
_NO_PLACES = (
    'network.geometry: kind "geographic" needs positions of all brokers and topics, which this workload does not have '
    '(allowed without positions: "chord", "tapestry" and others)'
)


class Geographic(PrefixTrees):
    """GeoPS, a reconstruction: a grid over the brokers' bounding box, with one representative known in each sibling quadrant per level.

    No two brokers share a cell; a broker's id is the path of quadrants to its cell. A publication goes to the broker that is nearest to
    the topic's place, digit by digit, and from there one copy goes to each quadrant in which a broker wants it, again level by level.
    """

    class Parameters(plugins.Parameters):
        levels: int | None = Field(None, ge=0, le=MOST_LEVELS, json_schema_extra={"default": "as needed"})
        """The grid has 2^levels × 2^levels cells; by default the fewest levels at which no two brokers share a cell."""
        representative: Literal["centre", "random", "closest"] = "centre"
        """The broker known in a quadrant: the one nearest to its centre, a random one, or the nearest by round-trip time."""

        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            if sites is None:
                return None
            if not sites.have_places:
                return _NO_PLACES
            levels = _levels_needed(_shares(sites))
            if levels is None:
                return _sharing(sites)
            if self.levels is None or self.levels >= levels:
                return None
            return f"network.geometry.levels: with 2^{self.levels} cells a side, brokers share cells (allowed: {levels} or more)"

    nodes_are_brokers = True

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where brokers or topics have no places, or brokers share a cell."""
        refuse(parameters.unfit(setting.nodes, setting.sites))
        assert setting.sites is not None
        assert setting.round_trips is not None
        assert setting.topic_places is not None
        refuse(_NO_PLACES if np.isnan(setting.topic_places).any() else None)
        across = _shares(setting.sites)
        needed = _levels_needed(across)
        assert needed is not None
        self.levels = needed if parameters.levels is None else parameters.levels
        prefixes = Prefixes(_paths(_cells(across, self.levels), self.levels), self.levels, QUADRANTS)
        match parameters.representative:
            case "centre":
                table = prefixes.leading(_off_centre(across, self.levels))
            case "random":
                table = prefixes.drawn(np.random.default_rng(setting.key))
            case "closest":
                table = prefixes.nearest(setting.round_trips)
        self.ids, self._sites, self._places = prefixes.ids, setting.sites, setting.topic_places
        super().__init__(self.roots_among(np.arange(setting.nodes)), prefixes, table)

    def roots_among(self, live: NDArray[np.int64]) -> NDArray[np.int32]:
        """The broker nearest to each topic's position (topics) of those that are live, the lowest number on ties."""
        latitude, longitude = self._sites.latitude[live], self._sites.longitude[live]
        nearest = [np.argmin(great_circle_km(latitude, longitude, *place)) for place in self._places.tolist()]
        return live[nearest].astype(np.int32) if nearest else np.empty(0, np.int32)


def _shares(sites: Sites) -> NDArray[np.float64]:
    """Each broker's relative position in the brokers' bounding box (n, 2), from 0 to 1."""
    places = np.stack([sites.latitude, sites.longitude], 1)
    sides = np.ptp(places, axis=0)
    shares: NDArray[np.float64] = (places - places.min(axis=0)) / np.where(sides > 0, sides, 1.0)
    return shares


def _cells(across: NDArray[np.float64], levels: int) -> NDArray[np.int64]:
    """Row and column of each broker's cell (n, 2); the upper and right borders belong to the last ones."""
    return np.minimum((across * (1 << levels)).astype(np.int64), (1 << levels) - 1)


def _levels_needed(across: NDArray[np.float64]) -> int | None:
    """The fewest levels with one broker per cell; None where even the most do not suffice."""
    every = range(MOST_LEVELS + 1)
    return next((levels for levels in every if len(np.unique(_cells(across, levels), axis=0)) == len(across)), None)


def _sharing(sites: Sites) -> str:
    """The sentence about a broker that stands where another does."""
    _, first = np.unique(_cells(_shares(sites), MOST_LEVELS), axis=0, return_index=True)
    other = int(np.setdiff1d(np.arange(len(sites)), first)[0])
    return f"network.geometry: kind \"geographic\" has one broker per cell, but broker '{sites.names[other]}' stands where another does"


def _paths(cells: NDArray[np.int64], levels: int) -> NDArray[np.int64]:
    """The path to a cell as a number, a base-4 digit per level: 2 for the upper half plus 1 for the right one."""
    paths = np.zeros(len(cells), np.int64)
    for level in range(levels - 1, -1, -1):
        paths = QUADRANTS * paths + 2 * (cells[:, 0] >> level & 1) + (cells[:, 1] >> level & 1)
    return paths


def _off_centre(across: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """The squared distance of each broker from the centre of its quadrant at each level (n, levels), in sides of the quadrant."""
    off = np.empty((len(across), levels))
    for level in range(levels):
        within = across * (2 << level) - _cells(across, level + 1)
        off[:, level] = ((within - 0.5) ** 2).sum(axis=1)
    return off
