"""The question that results answer: each has its own default folder, and never overwrites the results of another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sim.base.errors import ResultsError
from sim.base.naming import Raw
from sim.experiments.index import Index
from sim.experiments.plan import plan
from sim.experiments.results import Manifest
from sim.files import toml
from sim.files.hashing import sha256_of
from sim.scenario.experiment import Experiment
from sim.scenario.reader import ASIDE

_NAMED = 3
"""The most differing keys that an error names."""


@dataclass(frozen=True)
class Question:
    """An experiment as a question; `workloads` are the hashes that `plan` needs.

    For a search, keys that were varied in the results do not make another question.
    """

    experiment: Experiment
    workloads: Mapping[Path, str]
    search: bool = False

    @cached_property
    def asked(self) -> Manifest:
        """The question as recorded in the results' manifest."""
        return asked(self.experiment)

    def check(self, folder: Path, previous: Manifest) -> None:
        """Raise ResultsError where a folder, whose manifest is `previous`, has runs of another question and none of this one."""
        if "scenario" not in previous or not (done := Index(folder).done):
            return
        before, now = toml.flat(_compared(previous)), toml.flat(_compared(self.asked))
        differ = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if self.experiment.detects_warm_up:  # a detected warm-up is in the manifest
            differ = [key for key in differ if key.rpartition(".")[2] != "warm_up"]
        if self.search:
            differ = self._searched(differ, previous.get("parameters", ()))
        if not differ or any(spec.hash in done for spec in plan(self.experiment, self.workloads)):
            return
        differ = [key for key in differ if not (key.startswith("variant.") and key.split(".", 2)[2] in differ)]
        named = ", ".join(differ[:_NAMED]) + (f" and {len(differ) - _NAMED} more keys" if len(differ) > _NAMED else "")
        raise ResultsError(
            f"{folder}: contains the results of another question, which differs in {named}; give another folder, or remove this one"
        )

    def _searched(self, differ: Iterable[str], varied: Iterable[str]) -> list[str]:
        """The differing keys that matter to a search: without those that it varied and those of other variants."""
        names = [f"variant.{name}." for name in self.experiment.variants]
        tables = [f"{'.'.join(map(str, toml.split(key))).removesuffix('.kind')}." for key in varied]
        tables += [name + table for name in names for table in tables]
        own = (key for key in differ if key.startswith(tuple(names)) or not key.startswith("variant."))
        return [key for key in own if not f"{key}.".startswith(tuple(tables))]


def asked(experiment: Experiment) -> Manifest:
    """The question as recorded in the results' manifest: the first point, and the sweep as it was written."""
    return {
        "title": experiment.title,
        "scenario": experiment.base.model_dump(mode="json"),
        "variants": {name: one.model_dump(mode="json") for name, one in experiment.variants.items()},
        "sweep": experiment.sweep,
    }


def default_folder(experiment: Experiment, command: str = "") -> Path:
    """The default folder for results: results/NAME for a scenario file as it is, results/NAME-COMMAND for a search.

    With overrides, or without a file, NAME is the title followed by a short hash of the question.
    """
    name = experiment.path.stem if experiment.path else re.sub(r"[^a-z0-9]+", "-", experiment.title.lower())[:40]
    name += f"-{command}" if command else ""
    if experiment.path and not experiment.overridden:
        return Path("results") / name
    identity = json.dumps(_compared(asked(experiment)), sort_keys=True)
    return Path("results") / f"{name.strip('-') or 'scenario'}-{sha256_of(identity)[:8]}"


def _compared(manifest: Manifest) -> Manifest:
    """The parts of a manifest, as read from a file, by which questions are compared."""
    variants = {f"variant.{name}": _essence(one) for name, one in manifest["variants"].items()}
    found: Manifest = json.loads(json.dumps({**_essence(manifest["scenario"]), **variants, "sweep": manifest["sweep"]}))
    return found


def _essence(scenario: Raw) -> Raw:
    return {key: value for key, value in scenario.items() if key not in ASIDE}
