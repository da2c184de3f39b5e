"""Faults: the cost of possible failures on both planes, and the speed of brokers while others fail."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.measure import Figure, alternate, cpu_seconds
from benchmarks.networks import Plane, loaded, relay
from sim.workloads.faults.fault import Fault, Outage
from sim.workloads.faults.schedule import FaultSchedule, resolve_faults

BROKERS, TOPICS, WANTING, PUBLICATIONS = 1_000, 200, 200, 60_000
CHURN, DOWN = 0.1, 600.0  # shares of brokers that crash per hour, and seconds for which each is down
ROUNDS = 5


def _never(brokers: int, horizon: float) -> FaultSchedule:
    """A schedule in which a broker is down for the last second of a run, in which nothing else happens."""
    return resolve_faults([Outage(horizon - 1.0, horizon, 0)], brokers, horizon)


def _relayed(plane: Plane, publications: int, fails: bool) -> float:
    """CPU time of the relay whose brokers take time (s)."""
    quiet = relay(200, 6, publications, plane, 0.001)
    faults = _never(200, quiet.setting.horizon) if fails else None
    network = relay(200, 6, publications, plane, 0.001, faults)
    seconds = cpu_seconds(network.run)
    assert network.metrics()["delivered"] == publications
    return seconds


def _churn() -> FaultSchedule:
    """Brokers that crash at any time, independently of each other."""
    random, horizon = np.random.default_rng(1), float(PUBLICATIONS)
    faults: list[Fault] = []
    for broker in range(BROKERS):
        time = random.exponential(3600.0 / CHURN)
        while time < horizon:
            faults.append(Outage(time, time + DOWN, broker))
            time += DOWN + random.exponential(3600.0 / CHURN)
    return resolve_faults(faults, BROKERS, horizon)


def _hops_per_second(faults: FaultSchedule | None) -> tuple[float, float]:
    """Hops/s once all users have joined, and how many hops."""
    network = loaded(BROKERS, TOPICS, WANTING, PUBLICATIONS, faults)
    marks: list[float] = []
    network.run(lambda _: marks.append(time.process_time()))
    seconds = time.process_time() - marks[0]
    metrics = network.metrics()
    hops = metrics["notification_overhead"] + metrics["uplink_messages"]  # type: ignore[operator]
    return float(hops) / seconds, float(hops)


def figures() -> list[Figure]:
    """Ratios of CPU time, and hops/s."""
    found = []
    planes: dict[Plane, int] = {"events": 2_000, "compiled": 200_000}
    for plane, publications in planes.items():
        for fails in (False, True):
            _relayed(plane, 100, fails)  # compiles the kernels
        failing, quiet = (partial(_relayed, plane, publications, fails) for fails in (True, False))
        _, _, ratio = alternate(failing, quiet, ROUNDS)
        name = f"{plane}: CPU time where a broker may fail, and none does, relative to where none may"
        found.append(Figure(name, f"{ratio:.3f}", "≤ 1.05", ratio <= 1.05))
    rate, hops = _hops_per_second(_churn())
    name = f"{BROKERS:,} brokers, {CHURN:.0%} of which crash per hour, {hops / 1e6:.1f} M hops, compiled"
    return [*found, Figure(name, f"{rate / 1e6:.2f} M hops/s", "≥ 1.5 M", rate >= 1.5e6)]
