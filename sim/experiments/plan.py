"""What is to be run: every variant of every point in every replication, each with a hash that tells it from every other run."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

from sim import plugins
from sim.scenario import Experiment, Scenario

SOURCE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class RunSpec:
    """One run to do. `workload_hash` is that of the prepared workload, "" where the run generates its own.

    `point` is the number of the sweep's point, from 0, and `label` what it stands for, "" without a sweep.
    """

    point: int
    label: str
    variant: str
    replication: int
    scenario: Scenario
    workload_hash: str
    version: str
    hash: str

    def __str__(self) -> str:
        at = f"{self.label}, " if self.label else ""
        return f"{at}variant {self.variant}, replication {self.replication}"


def plan(experiment: Experiment, workload_hashes: Mapping[Path, str]) -> list[RunSpec]:
    """All runs, replication by replication, so that comparisons come early; hashes are by the workloads' folders."""
    runs = []
    for replication in range(experiment.base.replications):
        for number, point in enumerate(experiment.points):
            for variant, scenario in point.variants.items():
                workload = workload_hashes[scenario.workload.path] if scenario.workload.path else ""
                identity = run_hash(scenario, replication, workload)
                runs.append(RunSpec(number, point.label, variant, replication, scenario, workload, version(), identity))
    return runs


def run_hash(scenario: Scenario, replication: int, workload_hash: str) -> str:
    """Identity of a run: resolved scenario, replication, workload and the code that runs it (32 hexadecimal digits)."""
    identity = {
        "scenario": scenario.identity(),
        "replication": replication,
        "workload": workload_hash,
        "version": version(),
        "plugins": foreign_plugins(scenario),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


@cache
def version() -> str:
    """The package's version and, in a source checkout, a hash of the files of `sim`: changed code is another version."""
    number = installed_version("brokersim")
    return f"{number}+source.{_digest(SOURCE)[:16]}" if (SOURCE.parent / "pyproject.toml").is_file() else number


def foreign_plugins(scenario: Scenario) -> dict[str, str]:
    """Hashes of the sources of plug-ins from elsewhere, of which the version of this package says nothing."""
    tables = {
        "workload": scenario.workload,
        "geometry": scenario.network.geometry,
        "latency": scenario.network.latency,
        "selection": scenario.selection,
    }
    found = {}
    for group, table in tables.items():
        if table.kind in plugins.names(group):
            root = sys.modules[plugins.load(group, table.kind).__module__.partition(".")[0]]
            if root.__name__ != "sim" and root.__file__:
                file = Path(root.__file__)
                found[f"{group}:{table.kind}"] = _digest(file.parent if file.name == "__init__.py" else file)
    return found


def _digest(source: Path) -> str:
    """SHA-256 of a module, or of all modules of a package."""
    digest = hashlib.sha256()
    for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
        digest.update(f"{file.relative_to(source.parent).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()
