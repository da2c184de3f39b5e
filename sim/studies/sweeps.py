"""Sweeps: one scenario at many points, run as one experiment, and the table of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sim.scenario import Experiment, load_scenario

if TYPE_CHECKING:
    import pandas as pd

    from sim.experiments.results import Results

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """A point of a sweep: its name, what it stands for (columns of the table of runs), and what it lays over the scenario."""

    name: str
    values: Mapping[str, Any]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """A scenario file at all `points`; `section` names the folder of its results, `notes` say what a reader should know."""

    section: str
    scenario: str
    points: tuple[Point, ...]
    replications: int
    notes: tuple[str, ...] = ()

    def experiment(self, scenario: Path) -> Experiment:
        """Every variant at every point, as one experiment, so that all of them are run side by side."""
        loaded = [
            load_scenario(scenario, (*point.overrides, f"replications={self.replications}")) for point in self.points
        ]
        points = [
            replace(experiment.points[0], values={"case": point.name})
            for point, experiment in zip(self.points, loaded, strict=True)
        ]
        return replace(loaded[0], points=points)

    def table(self, results: Results) -> pd.DataFrame:
        """The table of runs: that of the results, with `point`, the point's name, and the values that it stands for."""
        import pandas as pd

        frames = []
        for number, point in enumerate(self.points):
            runs = results.at(number).runs.drop(columns="case")
            frames.append(runs.assign(**{"point": point.name, **point.values}))
        return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Computed:
    """A section whose table is computed and not simulated; `scenario` is the file that says of what.

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

    `scenarios` has the shipped scenario files, `folder` is where files may be written, `data` has the user's own data, if any.
    """

    scale: float
    scenarios: Path
    folder: Path
    data: Path | None

    def replications(self, full: int) -> int:
        """As many as the scale leaves, two at least."""
        return max(2, round(full * self.scale))

    def lasting(self, full: float, least: float) -> float:
        """A horizon, long enough for what happens now and then to happen."""
        return max(full * self.scale, min(full, least))

    def sized(self, full: int) -> int:
        """A size that can be chosen freely, fifty at least."""
        return max(min(full, 50), round(full * self.scale))


def thinned(values: Sequence[T], scale: float) -> list[T]:
    """The first, the last, and evenly spread ones between, as many as the scale leaves."""
    count = max(2, round(len(values) * scale))
    return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]
