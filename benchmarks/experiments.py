"""Experiments at scale: the overhead of a run, the gain of a second process, and the memory of ten thousand runs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sim
from benchmarks.measure import Figure, cpu_seconds
from sim.experiments.plan import RunSpec, plan
from sim.scenario.reader import load_scenario
from sim.simulation import prepare_workload, simulate

SHORT: dict[str, Any] = {
    "horizon": "4h",
    "workload": {"kind": "poisson", "users": 12, "topics": 9},
    "network": {"brokers": 4},
}
LONG: dict[str, Any] = {
    "horizon": "48h",
    "workload": {"kind": "poisson", "users": 2000, "topics": 400, "change_rate": 0.5},
    "network": {"brokers": 50},
    "selection": {"kind": "similarity", "update_period": "1h", "cluster_size": 4},
}
MANY: dict[str, Any] = {
    **SHORT,
    "replications": 10,
    "sweep": {"network.brokers": {"from": 1, "to": 1000, "steps": 1000}},
}
FEW, MORE = 50, 250
"""The number of short runs: the time of those beyond the first is without start-up costs."""
LONG_RUNS = 16
_RESUME = """
import json, resource, sys
import sim
source, out = sys.argv[1:]
sim.run(json.loads(source), out)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _simulated(specs: Sequence[RunSpec]) -> None:
    for spec in specs:
        simulate(spec.scenario, prepare_workload(spec.scenario, spec.replication, None), spec.replication)


def _overhead(folder: Path, jobs: int) -> float:
    """CPU time (ms) of a short run, in all processes, beyond that of its simulation."""

    def processes() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def all_runs(count: int) -> float:
        before = processes()
        engine = "pool" if jobs > 1 else "in-process"
        sim.run({**SHORT, "replications": count}, folder / f"{jobs}-{count}", jobs=jobs, engine=engine)
        return processes() - before

    specs = plan(load_scenario({**SHORT, "replications": MORE}), {})
    _simulated(specs[:1])  # kernels are loaded
    taken = -all_runs(FEW) + all_runs(MORE)
    alone = cpu_seconds(lambda: _simulated(specs[FEW:]))
    return 1000 * (taken - alone) / (MORE - FEW)


def _speed_up(folder: Path) -> tuple[float, float]:
    """How many times as fast long runs are in a pool of two as in one process, and how long one takes (s)."""

    def seconds(jobs: int, count: int = LONG_RUNS) -> float:
        began = time.perf_counter()
        sim.run({**LONG, "replications": count}, folder / f"long-{jobs}-{count}", jobs=jobs)
        return time.perf_counter() - began

    seconds(1, 1)  # kernels are compiled, or loaded
    one = seconds(1)
    return one / seconds(2), one / LONG_RUNS


def _memory(folder: Path) -> float:
    """The most memory (MB) of a command that finds ten thousand runs in its folder, and makes their table."""
    out = folder / "many"
    sim.run({**SHORT, "replications": 1}, out)
    (made,) = (entry for entry in (out / "runs").iterdir() if entry.is_dir())
    manifest, timing = (made / "manifest.json").read_text(), (made / "timing.json").read_text()
    for spec in plan(load_scenario(MANY), {}):
        run = out / "runs" / spec.hash
        run.mkdir(exist_ok=True)
        (run / "manifest.json").write_text(manifest.replace(made.name, spec.hash))
        (run / "timing.json").write_text(timing)
    command = [sys.executable, "-c", _RESUME, json.dumps(MANY), str(out)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(shown.stdout) * 1024 / 1e6


def figures() -> list[Figure]:
    """Overheads, the gain of a second process, and memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here, pool = _overhead(folder, 1), _overhead(folder, 2)
        gain, seconds = _speed_up(folder)
        memory = _memory(folder)
    return [
        Figure("a run in this process, beside its simulation", f"{here:.1f} ms of CPU", "≤ 20 ms", here <= 20),
        Figure("a run in a pool of 2, beside its simulation", f"{pool:.1f} ms of CPU", "≤ 50 ms", pool <= 50),
        Figure(
            f"runs of {seconds:.1f} s in a pool of 2, beside one process",
            f"{gain:.2f} times",
            "≥ 1.8 times",
            gain >= 1.8,
        ),
        Figure("a command that finds its 10,000 runs there: memory", f"{memory:,.0f} MB", "≤ 500 MB", memory <= 500),
    ]
