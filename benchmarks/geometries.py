"""Geometries of the systems that DYNATOPS is compared with: routing tables of 1,200 brokers, and links that follow 80,000 changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Figure, cpu_seconds
from sim.overlay.geographic import Geographic
from sim.overlay.geometry import GeometrySetting
from sim.overlay.latency import DistanceLatency, LatencySetting
from sim.overlay.sites import Sites
from sim.overlay.tapestry import Tapestry
from sim.scenario.reader import load_scenario
from sim.simulation import prepare_workload, simulate

POISSON = {"users": 50_000, "topics": 1000, "pattern": "multimodal", "change_rate": 0.1, "horizon": "100h"}


def figures() -> Iterator[Figure]:
    """CPU time of building Tapestry and the grid of GeoPS, and of the Poisson model on overlays rebuilt on each break."""
    rows, columns = np.divmod(np.arange(1200), 60)
    sites = Sites(tuple(map(str, range(1200))), rows + 30.5, columns - 125.5)
    times = DistanceLatency(DistanceLatency.Parameters(), LatencySetting(sites, 1)).round_trips
    setting = GeometrySetting(1200, 1200, 1, sites, times, np.stack([sites.latitude, sites.longitude], 1))
    makers: dict[str, partial[Any]] = {
        "tapestry": partial(Tapestry, Tapestry.Parameters()),
        "tapestry, nearest neighbours": partial(Tapestry, Tapestry.Parameters(pns=True)),
        "geographic": partial(Geographic, Geographic.Parameters()),
    }
    for name, make in makers.items():
        make(setting)  # compiles the kernels
        seconds = cpu_seconds(partial(make, setting))
        yield Figure(f"{name}, 1,200 brokers: CPU time to build", f"{seconds:.2f} s", "≤ 2 s", seconds <= 2)
    yield _broken()


def _broken() -> Figure:
    scenario = load_scenario(
        {
            "workload": {"kind": "poisson", **POISSON},
            "network": {
                "brokers": 100,
                "geometry": {"kind": "topic-connected", "design": "dcb-m", "on_change": "break"},
                "latency": {"kind": "unit"},
            },
            "selection": {"kind": "static"},
        }
    ).base
    record: list[Any] = []
    seconds = cpu_seconds(lambda: record.append(simulate(scenario, prepare_workload(scenario, 0, None), 0)))
    changes = record[0].metrics["broker_subscription_changes"]
    name = f"dcb-m rebuilt on each break, 100 brokers, {changes:,} changes, 100,000 publications: CPU time"
    return Figure(name, f"{seconds:.0f} s", "≤ 90 s", seconds <= 90)
