"""Ten thousand brokers that take time, a million users, ten million subscriptions and a million publications, in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, cpu_seconds
from benchmarks.networks import network_of, still_workload
from sim.brokers.fabric.stations import StationSetting
from sim.brokers.network import Network
from sim.overlay.chord import Chord
from sim.overlay.geometry import GeometrySetting
from sim.workloads.format.workload import Interests

BROKERS, USERS, TOPICS, WANTING, PER_USER, PUBLICATIONS = 10_000, 1_000_000, 2_000, 60, 10, 1_000_000
SECONDS, BYTES = 300.0, 6e9


def network() -> Network:
    """A Chord ring whose brokers host a hundred users each, with ten subscriptions to what is wanted there; not saturated."""
    random = np.random.default_rng(1)
    each = TOPICS * WANTING // BROKERS
    wanted = random.permuted(np.tile(np.arange(TOPICS, dtype=np.int32), (BROKERS, 1)), axis=1)[:, :each]
    host = np.arange(USERS) // (USERS // BROKERS)
    picked = np.argsort(random.random((USERS, each), np.float32), axis=1)[:, :PER_USER]
    wants = np.sort(np.take_along_axis(wanted[host], picked, axis=1), axis=1)
    horizon = float(PUBLICATIONS)
    workload = still_workload(
        Interests(np.arange(USERS + 1) * PER_USER, wants.ravel()),
        TOPICS,
        horizon,
        np.sort(random.uniform(0, 0.99 * horizon, PUBLICATIONS)),
        random.integers(0, TOPICS, PUBLICATIONS),
        random.integers(0, USERS, PUBLICATIONS),
    )
    return network_of(
        Chord(Chord.Parameters(), GeometrySetting(BROKERS, TOPICS, 1)),
        workload,
        host,
        np.full((BROKERS, BROKERS), 0.05),
        stations=StationSetting("exponential", 2.0),
        plane="compiled",
    )


def measure() -> None:
    """Run it, and print the CPU time (s), hops and peak memory (bytes)."""
    made: list[Network] = []

    def run() -> None:
        made.append(network())
        made[0].run()

    seconds, metrics = cpu_seconds(run), made[0].metrics()
    assert metrics["saturated_brokers"] == 0, metrics["saturated_brokers"]
    status = Path("/proc/self/status").read_text().splitlines()  # Linux
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    print(seconds, int(metrics["notification_overhead"] + metrics["uplink_messages"]), peak)  # type: ignore[operator]


def figures() -> list[Figure]:
    """CPU time from the drawing of the workload to the last table, and peak memory, of a process of its own."""
    command = [sys.executable, "-c", "from benchmarks.million import measure; measure()"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    seconds, hops, peak = float(out[0]), int(out[1]), int(out[2])
    what = f"{BROKERS:,} brokers, {USERS:,} users, {USERS * PER_USER:,} subscriptions, {PUBLICATIONS:,} publications"
    return [
        Figure(f"{what}, {hops:,} hops: CPU time", f"{seconds:.0f} s", f"≤ {SECONDS:.0f} s", seconds <= SECONDS),
        Figure("the same: peak memory", f"{peak / 1e9:.1f} GB", f"≤ {BYTES / 1e9:.0f} GB", peak <= BYTES),
    ]
