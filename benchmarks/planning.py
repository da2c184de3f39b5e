"""CPU time and memory of `brokersim plan` for 10,000 runs: of few points with many replications, and of as many points."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure

BASE = """
replications = {replications}
workload = {{ kind = "poisson", users = 100 }}
network.brokers = 10
selection = {{ kind = "similarity" }}
[[variant]]
name = "a"
{other}
[sweep]
"selection.cluster_size" = {{ from = 1, to = {sizes}, steps = {sizes} }}
"network.brokers" = {{ from = 1, to = {brokers}, steps = {brokers} }}
"""
OTHER = '[[variant]]\nname = "b"\nnetwork.geometry.kind = "tapestry"'
SHAPES = {
    "500 points × 2 variants × 10 replications": {"replications": 10, "other": OTHER, "sizes": 50, "brokers": 10},
    "10,000 points": {"replications": 1, "other": "", "sizes": 100, "brokers": 100},
}


def _planned(folder: str) -> tuple[float, float]:
    """CPU seconds and peak MB of one command."""
    command = [str(Path(sys.executable).with_name("brokersim")), "plan", "s.toml"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def figures() -> Iterator[Figure]:
    """The medians of five plans of each shape."""
    for name, shape in SHAPES.items():
        with TemporaryDirectory() as folder:
            (Path(folder) / "s.toml").write_text(BASE.format(**shape))
            seconds, memory = (median(values) for values in zip(*(_planned(folder) for _ in range(5)), strict=True))
        yield Figure(f"plan, {name}: CPU", f"{seconds:.2f} s", "≤ 2 s", seconds <= 2)
        yield Figure(f"plan, {name}: peak memory", f"{memory:.0f} MB", "≤ 500 MB", memory <= 500)
