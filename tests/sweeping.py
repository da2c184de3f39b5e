"""A small sweep for the tests of experiments, and helpers to inspect its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.simulation import RunRecord, simulate
from sim.workloads.format.workload import Workload

SWEEP = """\
title = "Small"
replications = 2
warm_up = "1h"
horizon = "4h"
workload = { kind = "poisson", users = 12, topics = 9 }
[sweep]
"network.brokers" = [2, 4]
[[variant]]
name = "static"
[[variant]]
name = "one broker"
network = { brokers = 1 }
"""
"""Two points, two variants, of which one is the same at both; 6 runs differ."""

Run = tuple[int, int]
"""A run as tests tell it: its number of brokers and its replication."""


class Spy:
    """Counts the runs that are done in this process; those that `fails` names raise an error."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.fails: dict[Run, Exception] = {}

    def __call__(self, scenario: Any, workload: Workload, replication: int, progress: Any) -> RunRecord:
        run = (scenario.network.brokers, replication)
        self.runs.append(run)
        if run in self.fails:
            raise self.fails[run]
        return simulate(scenario, workload, replication, progress)

    def told(self, work: Callable[[], Any]) -> list[Run]:
        """The runs that some work performs."""
        before = len(self.runs)
        work()
        return self.runs[before:]


def contents(folder: Path) -> dict[str, bytes]:
    """All files of results but the lock and those that depend on the clock."""
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    return {
        name: file.read_bytes()
        for name, file in sorted(files.items())
        if name != ".lock" and not name.endswith(("timing.json", "timing.parquet"))
    }
