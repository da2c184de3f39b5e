"""Plan an experiment's runs: every variant of every point in every replication, each with a hash that identifies it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

from sim import plugins
from sim.scenario.experiment import Experiment
from sim.scenario.model import Scenario

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
    texts: dict[int, str] = {}
    foreign = cache(_foreign)
    rows = []
    for number, point in enumerate(experiment.points):
        for variant, scenario in point.variants.items():
            workload = workload_hashes[scenario.workload.path] if scenario.workload.path else ""
            rows.append(
                (number, point.label, variant, scenario, workload, _identity(scenario, workload, texts, foreign))
            )
    return [
        RunSpec(number, label, variant, replication, scenario, workload, version(), _hash(identity, replication))
        for replication in range(experiment.base.replications)
        for number, label, variant, scenario, workload, identity in rows
    ]


def run_hash(scenario: Scenario, replication: int, workload_hash: str) -> str:
    """Identity of a run: resolved scenario, replication, workload and the code that runs it (32 hexadecimal digits)."""
    return _hash(_identity(scenario, workload_hash, {}, _foreign), replication)


def _identity(scenario: Scenario, workload_hash: str, texts: dict[int, str], foreign: Callable[[str, str], str]) -> str:
    """The text that identifies a scenario's runs; `texts` is the cache of `Scenario.identity_text`."""
    code = {"workload": workload_hash, "version": version(), "plugins": foreign_plugins(scenario, foreign)}
    return f"{json.dumps(code, sort_keys=True)} {scenario.identity_text(texts)}"


def _hash(identity: str, replication: int) -> str:
    return hashlib.sha256(f"{replication} {identity}".encode()).hexdigest()[:32]


@cache
def version() -> str:
    """The package's version and, in a source checkout, a hash of the files of `sim`: changed code is a different version."""
    number = installed_version("brokersim")
    return f"{number}+source.{_digest(SOURCE)[:16]}" if (SOURCE.parent / "pyproject.toml").is_file() else number


def _foreign(group: str, kind: str) -> str:
    """Hash of the source of a third-party plug-in; "" for built-in ones."""
    if kind not in plugins.names(group):
        return ""
    root = sys.modules[plugins.load(group, kind).__module__.partition(".")[0]]
    if root.__name__ == "sim" or not root.__file__:
        return ""
    file = Path(root.__file__)
    return _digest(file.parent if file.name == "__init__.py" else file)


def foreign_plugins(scenario: Scenario, foreign: Callable[[str, str], str] = _foreign) -> dict[str, str]:
    """Hashes of the sources of third-party plug-ins, which this package's version does not cover."""
    kinds = {
        "workload": scenario.workload.kind,
        "geometry": scenario.network.geometry.kind,
        "latency": scenario.network.latency.kind,
        "selection": scenario.selection.kind,
        "reconfiguration": scenario.reconfiguration.kind,
        "offloading": scenario.offloading.kind,
    }
    found = {f"{group}:{kind}": foreign(group, kind) for group, kind in kinds.items()}
    return {name: source for name, source in found.items() if source}


def _digest(source: Path) -> str:
    """SHA-256 of a module, or of all modules of a package."""
    digest = hashlib.sha256()
    for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
        digest.update(f"{file.relative_to(source.parent).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()
