"""DYNATOPS at full size: three systems in the Poisson model for 100 hours, CPU time and memory of all processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Figure

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "dynatops" / "fig-7.toml"
SYSTEMS = ("Bayeux", "TCO", "DYNATOPS")
SECONDS, MEGABYTES = 20.0, 500.0
_RUN = """
import json, resource, sys, time, tomllib
import sim

file, out, systems, jobs = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
with open(file, "rb") as opened:
    scenario = tomllib.load(opened)
scenario["variant"] = [variant for variant in scenario["variant"] if variant["name"] in systems]
scenario["workload"]["publication_rate"], scenario["replications"] = 1.0, 1
start = time.perf_counter()
results = sim.run(scenario, out, jobs=jobs)
wall = time.perf_counter() - start
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
cpu = sum(each.ru_utime + each.ru_stime for each in used)
print(json.dumps([len(results.failed), wall, cpu, max(each.ru_maxrss for each in used)]))
"""


def figures() -> list[Figure]:
    """Bayeux, TCO rebuilt on each break, and DYNATOPS in turn, with one publication per topic and hour and one replication."""
    cpu, wall, peak = measured(1)
    name = "Bayeux, TCO and DYNATOPS, 50,000 users, 500,553 changes, 100 h"
    return [
        Figure(f"{name}: CPU", f"{cpu:.1f} s ({wall:.1f} s by the clock)", f"≤ {SECONDS:g} s", cpu <= SECONDS),
        Figure(f"{name}: peak memory", f"{peak:,.0f} MB", f"≤ {MEGABYTES:g} MB", peak <= MEGABYTES),
    ]


def measured(jobs: int) -> tuple[float, float, float]:
    """CPU time of all processes and wall-clock time (s), and the peak memory of one of them (MB)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _RUN, str(SCENARIO), f"{folder}/results", ",".join(SYSTEMS), str(jobs)]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    failed, wall, cpu, peak = json.loads(shown)
    assert not failed
    return cpu, wall, peak * 1024 / 1e6
