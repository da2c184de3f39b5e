"""Peak memory of a whole process that runs 100,000 users with a million subscriptions, on 200 brokers and on many (Linux: VmHWM)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Figure
from benchmarks.networks import crowd
from sim.workloads.format.folder import write_workload

USERS, PER_USER, TOPICS = 100_000, 10, 10_000
MANY, BYTES = ((10_000, 1_000), (20_000, 1_000), (10_000, 100_000)), 2e9
"""Brokers and topics, and the most memory that they may take."""
_RUN = """
import sys
from pathlib import Path
from sim.scenario.reader import load_scenario
from sim.simulation import simulate
from sim.workloads.format.folder import load_workload
scenario = load_scenario({"network": {"brokers": int(sys.argv[3]), "data_plane": sys.argv[4]}, "selection": {"kind": sys.argv[2]}}).base
record = simulate(scenario, load_workload(Path(sys.argv[1])), 0)
assert record.metrics["publications"] == 1000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def _peak(workload: Path, policy: str, brokers: int = 200, plane: str = "auto") -> float:
    """Peak memory (MB) of a process that runs the workload."""
    command = [sys.executable, "-c", _RUN, str(workload), policy, str(brokers), plane]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024 / 1e6


def figures() -> list[Figure]:
    """Peak resident memory, interpreter and libraries included, for static and for similarity-based selection, and with many brokers.

    As everywhere here, kernels have been compiled before: the compiler takes some 40 MB the first time.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / "w"
        write_workload(crowd(USERS, PER_USER, TOPICS), workload)
        for policy in ("static", "similarity"):
            _peak(workload, policy)
            peak = _peak(workload, policy)
            name = f"{USERS:,} users, {USERS * PER_USER:,} subscriptions, {policy}: peak memory"
            found.append(Figure(name, f"{peak:,.0f} MB", "< 300 MB", peak < 300))
        for brokers, topics in MANY:
            many = Path(folder) / f"{brokers}-{topics}"
            write_workload(crowd(USERS, PER_USER, topics), many)
            peak = _peak(many, "static", brokers, "compiled")
            name = f"{brokers:,} brokers, {topics:,} topics, {USERS * PER_USER:,} subscriptions: peak memory"
            found.append(Figure(name, f"{peak:,.0f} MB", f"≤ {BYTES / 1e6:,.0f} MB", 1e6 * peak <= BYTES))
    return found
