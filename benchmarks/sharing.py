"""Memory of a run in two processes beside that of the same in one, on a workload of millions of publications (Linux)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Figure, family
from benchmarks.networks import crowd
from sim.workloads.format.folder import write_workload

PUBLICATIONS = 20_000_000
HORIZON = 100_000.0  # s, of which runs simulate a thousandth: what they hold counts here, not what they do
_RUN = """
import sys
from pathlib import Path
import sim
workload, out, jobs = sys.argv[1:]
scenario = {"replications": 2, "horizon": 100.0, "network": {"brokers": 20}}
def tell(spec, fraction):
    if 0 < fraction < 1:
        Path(out, "runs", "begun").touch()
sim.run(scenario, out, workload, jobs=int(jobs), progress=tell)
"""
PAUSE = 0.05  # s, between two looks at the processes


@dataclass(frozen=True)
class Held:
    """Memory (MB) of a process and all its descendants, what they share counted once: the most at any time, and during runs."""

    peak: float
    running: float


def _held(workload: Path, out: Path, jobs: int) -> Held:
    process = subprocess.Popen([sys.executable, "-c", _RUN, str(workload), str(out), str(jobs)])
    peak = running = 0.0
    while process.poll() is None:
        held = sum(map(_proportional, family(process.pid)))
        peak = max(peak, held)
        if (out / "runs" / "begun").exists():
            running = max(running, held)
        time.sleep(PAUSE)
    assert process.returncode == 0
    return Held(peak, running)


def _proportional(process: int) -> float:
    """The proportional set size (MB) of a process: of a page that n processes map, the nth part."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:  # ended meanwhile
        return 0.0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024 / 1e6


def figures() -> list[Figure]:
    """The most memory at any time that two replications take in two processes, as a multiple of what they take in one."""
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / "w"
        write_workload(crowd(20_000, 5, 5_000, PUBLICATIONS, HORIZON), workload)
        one, two = (_held(workload, Path(folder) / f"jobs-{jobs}", jobs) for jobs in (1, 2))
    ratio = two.peak / one.peak
    text = (
        f"{ratio:.2f} times ({two.peak:,.0f} MB against {one.peak:,.0f} MB; "
        f"while runs are in progress {two.running:,.0f} MB against {one.running:,.0f} MB)"
    )
    return [Figure(f"{PUBLICATIONS:,} publications, two jobs: peak memory of one", text, "< 1.3 times", ratio < 1.3)]
