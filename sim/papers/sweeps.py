"""Sweeps of papers: a scenario at the points of a figure, run as one experiment, and the table of its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pandas as pd

from sim.base.naming import Raw
from sim.experiments.results import Results
from sim.files import toml
from sim.scenario.experiment import Experiment
from sim.scenario.reader import load_scenario

_T = TypeVar("_T")


@dataclass(frozen=True)
class PaperPoint:
    """A point of a sweep: its name, its values (columns of the table of runs), and the scenario keys that it overrides."""

    name: str
    values: Raw
    keys: Raw


@dataclass(frozen=True)
class PaperSweep:
    """A scenario file at all `points`, which override the same keys; `keys` are overridden at all points alike.

    `section` names the folder of its results, `notes` are sentences for the reader.
    """

    section: str
    scenario: str
    points: tuple[PaperPoint, ...]
    replications: int
    keys: Raw = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def experiment(self, scenario: Path) -> Experiment:
        """All variants at all points as one experiment, so that all runs share one engine."""
        said = {"replications": self.replications, **self.keys}
        overrides = [f"{key}={json.dumps(value)}" for key, value in said.items()]
        swept = {key: [point.keys[key] for point in self.points] for key in self.points[0].keys}
        if swept:
            zipped = {"zip": [*swept]} if len(swept) > 1 else {}
            overrides.append(f"sweep={toml.text(swept | zipped)}")
        return load_scenario(scenario, overrides)

    def table(self, results: Results) -> pd.DataFrame:
        """The results' table of runs, with the name of the `point` and its values."""
        runs = results.runs.drop(columns=list(results.manifest["parameters"]))
        frames = [
            runs[runs["point"] == number].assign(**{"point": point.name, **point.values})
            for number, point in enumerate(self.points)
        ]
        return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Computed:
    """A section whose table is computed, not simulated, from the scenario file `scenario`.

    `table` computes it, with columns `variant`, `point`, `replication`, `seed`, the values of points, and numbers. It is kept in
    the section's folder for the same version of the program and the same `identity` of the inputs. Several of one section are parts
    of its table, each kept by its name.
    """

    section: str
    scenario: str
    identity: str
    table: Callable[[], pd.DataFrame]
    notes: tuple[str, ...] = ()
    part: str = "table"


@dataclass(frozen=True)
class SweepSetting:
    """The setting of sweeps: a `scale` (above 0, up to 1) to reduce them by, and folders.

    `scenarios` has the paper's scenario files, `folder` is where files may be written, `data` has the user's own data, if any.
    """

    scale: float
    scenarios: Path
    folder: Path
    data: Path | None

    def shown(self, scenario: str) -> str:
        """A scenario file, as named on the page and in messages."""
        return f"{self.scenarios.name}/{scenario}"

    def replications(self, full: int) -> int:
        """The scaled number of replications, at least two."""
        return max(2, round(full * self.scale))

    def lasting(self, full: float, least: float) -> float:
        """A scaled horizon, long enough for rare events."""
        return max(full * self.scale, min(full, least))

    def sized(self, full: int) -> int:
        """A scaled size, at least fifty."""
        return max(min(full, 50), round(full * self.scale))


def thinned(values: Sequence[_T], scale: float) -> list[_T]:
    """The first, the last, and evenly spaced values between, as many as the scale leaves."""
    count = max(2, round(len(values) * scale))
    return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]
