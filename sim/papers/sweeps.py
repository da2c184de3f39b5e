"""Sweeps of papers: a scenario at the points of a figure, run as one experiment, and the table of its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from sim.experiments.results import Results
from sim.files import toml
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario

_T = TypeVar("_T")


@dataclass(frozen=True)
class PaperPoint:
    """A point of a sweep: its name, what it stands for (columns of the table of runs), and the keys that it lays over the scenario."""

    name: str
    values: Mapping[str, Any]
    keys: Mapping[str, Any]


@dataclass(frozen=True)
class PaperSweep:
    """A scenario file at all `points`, which have the same keys; `keys` has those that are the same at all of them.

    `section` names the folder of its results, `notes` say what a reader should know.
    """

    section: str
    scenario: str
    points: tuple[PaperPoint, ...]
    replications: int
    keys: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def experiment(self, scenario: Path) -> Experiment:
        """Every variant at every point, as one experiment, so that all of them are run side by side."""
        said = {"replications": self.replications, **self.keys}
        overrides = [f"{key}={json.dumps(value)}" for key, value in said.items()]
        swept = {key: [point.keys[key] for point in self.points] for key in self.points[0].keys}
        if swept:
            zipped = {"zip": [*swept]} if len(swept) > 1 else {}
            overrides.append(f"sweep={toml.text(swept | zipped)}")
        return load_scenario(scenario, overrides)

    def table(self, results: Results) -> pd.DataFrame:
        """The table of runs: that of the results, with `point`, the point's name, and the values that it stands for."""
        runs = results.runs.drop(columns=list(results.manifest["parameters"]))
        frames = [
            runs[runs["point"] == number].assign(**{"point": point.name, **point.values})
            for number, point in enumerate(self.points)
        ]
        return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Computed:
    """A section whose table is computed and not simulated; `scenario` is the file that describes of what.

    `table` makes it, with columns `variant`, `point`, `replication`, `seed`, those that points stand for, and numbers. It is kept in
    the section's folder until another version of the program, or another `identity` of the inputs, is asked for it. Several of one
    section are the parts of its table, each kept by its name.
    """

    section: str
    scenario: str
    identity: str
    table: Callable[[], pd.DataFrame]
    notes: tuple[str, ...] = ()
    part: str = "table"


@dataclass(frozen=True)
class SweepSetting:
    """What sweeps are made for: a `scale` (above 0, up to 1) to make them smaller by, and folders.

    `scenarios` has the paper's scenario files, `folder` is where files may be written, `data` has the user's own data, if any.
    """

    scale: float
    scenarios: Path
    folder: Path
    data: Path | None

    def shown(self, scenario: str) -> str:
        """A scenario file, as the page and messages name it."""
        return f"{self.scenarios.name}/{scenario}"

    def replications(self, full: int) -> int:
        """As many as the scale leaves, two at least."""
        return max(2, round(full * self.scale))

    def lasting(self, full: float, least: float) -> float:
        """A horizon, long enough for what happens now and then to happen."""
        return max(full * self.scale, min(full, least))

    def sized(self, full: int) -> int:
        """A size that can be chosen freely, fifty at least."""
        return max(min(full, 50), round(full * self.scale))


def thinned(values: Sequence[_T], scale: float) -> list[_T]:
    """The first, the last, and evenly spread ones between, as many as the scale leaves."""
    count = max(2, round(len(values) * scale))
    return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]
