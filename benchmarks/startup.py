"""CPU time of `brokersim --help`."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.measure import Figure


def _cpu_seconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([Path(sys.executable).with_name("brokersim"), "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures() -> list[Figure]:
    """The median of seven starts."""
    seconds = median(_cpu_seconds() for _ in range(7))
    return [Figure("brokersim --help", f"{seconds:.2f} s of CPU", "< 0.5 s", seconds < 0.5)]
