"""Plan an experiment's runs: every variant of every point in every replication, each with a hash that identifies it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim import plugins
from sim.base.imports import own_imports
from sim.experiments.code import Foreign, digest, version, written_here
from sim.files.hashing import sha256_of
from sim.scenario.experiment import Experiment
from sim.scenario.model import Scenario


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


def _identity(scenario: Scenario, workload_hash: str, texts: dict[int, str], foreign: Callable[[str], Foreign]) -> str:
    """The text that identifies a scenario's runs; `texts` is the cache of `Scenario.identity_text`."""
    modules, sources = set(), {}
    for name, kind in plugins_of(scenario):
        if plugins.are_ours(kind):
            modules.add(kind.__module__)
        else:
            source = written_here(kind) if plugins.is_registered(kind) else foreign(kind.__module__)
            modules |= source.imports
            sources[name] = source.hash
    code = {"workload": workload_hash, "version": version(*sorted(modules)), "plugins": sources}
    return f"{json.dumps(code, sort_keys=True)} {scenario.identity_text(texts)}"


def _hash(identity: str, replication: int) -> str:
    return sha256_of(f"{replication} {identity}")[:32]


def plugins_of(scenario: Scenario) -> Iterator[tuple[str, type]]:
    """The group with the name, and the class, of each plug-in that a scenario takes."""
    kinds = [
        ("workload", scenario.workload.kind),
        ("geometry", scenario.network.geometry.kind),
        ("latency", scenario.network.latency.kind),
        ("selection", scenario.selection.kind),
        ("reconfiguration", scenario.reconfiguration.kind),
        ("offloading", scenario.offloading.kind),
        *(("faults", table.kind) for table in scenario.faults),
        *(("metric", name) for name in scenario.metrics.names),
    ]
    for group, kind in kinds:
        if kind in plugins.names(group):
            yield f"{group}:{kind}", plugins.load(group, kind)


def _foreign(module: str) -> Foreign:
    """A third-party plug-in's module, or the whole package that it is in."""
    root = sys.modules[module.partition(".")[0]]
    if not root.__file__:
        return Foreign("", frozenset())
    file = Path(root.__file__)
    whole = file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if whole else [file]
    ours = frozenset(name for one in files for name in own_imports(one.read_text()))
    return Foreign(digest(files, file.parents[whole]), ours)
