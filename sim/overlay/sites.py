"""The physical positions of brokers, for latency models and for geometries whose nodes are brokers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import frozen
from sim.files.inputs import CsvRow, csv_rows


@dataclass(frozen=True, eq=False)
class Sites:
    """The brokers of a network, one entry each: names, positions in degrees (NaN where unknown), and regions where they have any.

    `capacity` is the relative speed of each (service times are divided by it); None where all are alike.
    """

    names: tuple[str, ...]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    regions: tuple[str, ...] | None = None
    capacity: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def have_places(self) -> bool:
        """Whether all positions are known."""
        return not bool(np.isnan(self.latitude).any() or np.isnan(self.longitude).any())


def parse_sites(text: str) -> Sites:
    """Parse brokers: CSV with the column broker and optionally latitude and longitude, region, capacity.

    An empty capacity is 1; positions and regions are given for all brokers or for none. Raises ValueError with the line of a mistake.
    """
    lines: dict[str, int] = {}
    latitude, longitude, regions, capacity = [], [], [], []
    for row in csv_rows(text, ["broker"], ["latitude", "longitude", "region", "capacity"]):
        name = row.text("broker")
        if name in lines:
            raise row.wrong("broker", f"'{name}' is already on line {lines[name]}")
        lines[name] = row.line
        position = _position(row)
        latitude.append(position[0])
        longitude.append(position[1])
        regions.append(row.text("region") if "region" in row.fields else None)
        capacity.append(_capacity(row))
    return Sites(
        tuple(lines),
        frozen(np.array(latitude, np.float64)),
        frozen(np.array(longitude, np.float64)),
        tuple(region for region in regions if region) or None,
        frozen(np.array(capacity, np.float64)),
    )


def _position(row: CsvRow) -> tuple[float, float]:
    has = [name for name in ("latitude", "longitude") if name in row.fields]
    if len(has) == 1:
        raise ValueError(f"column '{has[0]}' without the other one (allowed: latitude and longitude, or none)")
    return (row.number("latitude", -90, 90), row.number("longitude", -180, 180)) if has else (np.nan, np.nan)


def _capacity(row: CsvRow) -> float:
    if not row.fields.get("capacity"):
        return 1.0
    return row.number("capacity", above=0)
