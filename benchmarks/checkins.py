"""One replication of a real trace on 1,200 brokers, every check-in a publication: CPU time and peak memory of the whole process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Figure

TRACE = Path(__file__).resolve().parents[2] / "shared" / "data" / "gowalla-world" / "checkins.tsv.gz"
_RUN = """
import sys, time
from pathlib import Path
from sim.scenario.reader import load_scenario
from sim.simulation import simulate
from sim.workloads.format.folder import load_workload
selection = {"kind": sys.argv[2]} | ({"update_period": "7d"} if sys.argv[2] == "similarity" else {})
network = {"brokers": 1200, "latency": {"kind": "distance"}}
scenario = load_scenario({"network": network, "selection": selection}).base
record = simulate(scenario, load_workload(Path(sys.argv[1])), 0)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), peak, record.metrics["publications"], record.metrics["delivered"])
"""


def figures() -> list[Figure]:
    """Static and similarity-based selection on gowalla-world, cells of 0.02°; nothing where the trace is missing."""
    if not TRACE.is_file():
        print(f"(checkins: not measured, {TRACE.name} of gowalla-world is not here)", file=sys.stderr)
        return []
    found = []
    with tempfile.TemporaryDirectory() as folder:
        prepare = ["prepare", "checkins", str(TRACE), "--format", "gowalla", "--cell", "0.02", "--quiet"]
        code = "from sim.cli.app import main; main()"
        options = ["--publications", "per-check-in", "--out", f"{folder}/w"]
        subprocess.run([sys.executable, "-c", code, *prepare, *options], check=True, capture_output=True)
        for policy in ("static", "similarity"):
            command = [sys.executable, "-c", _RUN, f"{folder}/w", policy]
            shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            seconds, megabytes = float(shown[0]), int(shown[1]) * 1024 / 1e6
            name = f"{int(shown[2]):,} check-ins published, 1,200 brokers, {int(shown[3]):,} deliveries, {policy}"
            found.append(Figure(f"{name}: CPU", f"{seconds:.1f} s", "≤ 60 s", seconds <= 60))
            found.append(Figure(f"{name}: peak memory", f"{megabytes:,.0f} MB", "≤ 2,000 MB", megabytes <= 2000))
    return found
