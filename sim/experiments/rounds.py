"""Rounds of runs: what is run next depends only on earlier results, so it is the same on every engine.

First, where the warm-up is to be detected, pilots of every variant at every point; then the replications that the scenario asks
for; then, where it asks for precision, more of them at points that are not yet precise enough.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.units import format_duration
from sim.experiments.plan import RunSpec, plan
from sim.experiments.precision import precise, replications_needed
from sim.experiments.warm_up import FEWEST_VALUES, warm_up_of
from sim.scenario.experiment import Experiment, Point
from sim.scenario.model import Precision

PILOTS = 5
"""The most replications from which a warm-up is detected: their average shows it better than any alone, and more add little."""


@dataclass(frozen=True)
class WindowSeries:
    """A time series: the windows' starts (s), their values, NaN where nothing was observed, and the horizon (s)."""

    starts: NDArray[np.float64]
    values: NDArray[np.float64]
    horizon: float


class RunResults(Protocol):
    """The results of the finished runs."""

    def metric(self, run: str, name: str) -> float:
        """A metric of a run; NaN where it is undefined or the run failed."""
        ...

    def windows(self, run: str, name: str) -> WindowSeries | None:
        """The time series of a metric; None where the run failed. For a metric without one, that of the notification delay."""
        ...


@dataclass(frozen=True)
class WarmUp:
    """The warm-up of a point (s), and whether it was detected; if not, it is half the horizon."""

    seconds: float
    detected: bool


@dataclass(frozen=True)
class Precise:
    """How many replications a point has, and whether its confidence intervals reached the requested precision."""

    replications: int
    reached: bool


@dataclass(frozen=True)
class Conclusion:
    """The result of all rounds: the experiment with its warm-ups, the runs of its results, and the findings."""

    experiment: Experiment
    specs: Sequence[RunSpec]
    warm_up: Sequence[WarmUp] = ()
    precision: Sequence[Precise] = ()
    notes: Sequence[str] = ()


def rounds(
    experiment: Experiment, workloads: Mapping[Path, str], seen: RunResults
) -> Generator[list[RunSpec], None, Conclusion]:
    """Generate rounds of runs, each of which must end before the next is requested; `workloads` are the hashes that `plan` needs."""
    warm_ups: list[WarmUp] = []
    notes: list[str] = []
    if experiment.detects_warm_up:
        count = min(PILOTS, experiment.base.replications)
        pilots = _plan(experiment, workloads, [range(count)] * len(experiment.points))
        yield pilots
        warm_ups, notes = _detected(experiment, pilots, seen)
        experiment = _warmed(experiment, warm_ups)
    counts = [experiment.base.replications] * len(experiment.points)
    specs = _plan(experiment, workloads, [range(count) for count in counts])
    yield specs
    if experiment.precision is None:
        return Conclusion(experiment, specs, warm_ups, notes=notes)
    values = _Values(experiment.precision, seen)
    values.add(specs)
    while (wanted := [values.needed(point, count) for point, count in enumerate(counts)]) != counts:
        more = _plan(experiment, workloads, [range(*pair) for pair in zip(counts, wanted, strict=True)])
        yield more
        values.add(more)
        specs, counts = [*specs, *more], wanted
    found = [Precise(count, values.precise(point)) for point, count in enumerate(counts)]
    return Conclusion(experiment, specs, warm_ups, found, notes)


def expected_runs(experiment: Experiment) -> tuple[int, int]:
    """The fewest and most runs of all rounds together; a run shared by two variants counts twice."""
    pairs, replications = sum(len(point.variants) for point in experiment.points), experiment.base.replications
    pilots = pairs * min(PILOTS, replications) if experiment.detects_warm_up else 0
    most = experiment.precision.max_replications if experiment.precision is not None else 0
    return pilots + pairs * replications, pilots + pairs * max(replications, most)


class _Values:
    """The values of the metric with a precision goal, replication by replication."""

    def __init__(self, wanted: Precision, seen: RunResults) -> None:
        self._wanted, self._seen = wanted, seen
        self._values: dict[int, dict[str, list[float]]] = {}  # by point and variant
        self._settled: set[int] = set()

    def add(self, specs: Sequence[RunSpec]) -> None:
        for spec in specs:
            of_point = self._values.setdefault(spec.point, {})
            of_point.setdefault(spec.variant, []).append(self._seen.metric(spec.hash, self._wanted.metric))

    def needed(self, point: int, count: int) -> int:
        """How many replications a point with `count` of them needs: as many as its least precise variant."""
        if point in self._settled:
            return count
        wanted = self._wanted
        needed = max(
            replications_needed(values, wanted.relative, wanted.confidence, wanted.max_replications)
            for values in self._values[point].values()
        )
        if needed == count:
            self._settled.add(point)
        return needed

    def precise(self, point: int) -> bool:
        wanted = self._wanted
        return all(precise(values, wanted.relative, wanted.confidence) for values in self._values[point].values())


def _plan(experiment: Experiment, workloads: Mapping[Path, str], wanted: Sequence[range]) -> list[RunSpec]:
    """The runs of the given replications at each point."""
    first, *others = experiment.points
    most = max(replications.stop for replications in wanted)
    base = first.base.model_copy(update={"replications": most})
    every = plan(replace(experiment, points=[replace(first, base=base), *others]), workloads)
    return [spec for spec in every if spec.replication in wanted[spec.point]]


def _detected(experiment: Experiment, pilots: Sequence[RunSpec], seen: RunResults) -> tuple[list[WarmUp], list[str]]:
    """The warm-up of each point, the longest of its variants', and notes on those that could not be detected."""
    metric = (experiment.precision or Precision()).metric
    observed: list[dict[str, list[WindowSeries]]] = [{} for _ in experiment.points]  # by variant
    for spec in pilots:
        windows = seen.windows(spec.hash, metric)
        if windows is not None:
            observed[spec.point].setdefault(spec.variant, []).append(windows)
    warm_ups, notes = [], []
    for point, variants in zip(experiment.points, observed, strict=True):
        ends = [warm_up_of(np.stack([one.values for one in series]), series[0].starts) for series in variants.values()]
        every = [one for series in variants.values() for one in series]
        half = min((one.horizon for one in every), default=point.base.horizon or 0.0) / 2
        known = [end for end in ends if end is not None]
        detected = bool(ends) and len(known) == len(ends)
        warm_ups.append(WarmUp(min(max(known), half) if detected else half, detected))
        if not detected:
            at = f" at {point.label}" if point.label else ""
            few = min((one.values.size for one in every), default=FEWEST_VALUES)
            why = "the run is too short, or never reaches a steady state"
            if few < FEWEST_VALUES:
                why = f"it needs {FEWEST_VALUES} windows, but there are {few}: make `window` shorter"
            notes.append(
                f"no end of the warm-up was found{at}: {why}; its first half ({format_duration(half)}) is left out"
            )
    return warm_ups, notes


def _warmed(experiment: Experiment, warm_ups: Sequence[WarmUp]) -> Experiment:
    def with_warm_up(point: Point, warm_up: WarmUp) -> Point:
        update = {"warm_up": warm_up.seconds}
        variants = {name: scenario.model_copy(update=update) for name, scenario in point.variants.items()}
        return replace(point, base=point.base.model_copy(update=update), variants=variants)

    return replace(experiment, points=[*map(with_warm_up, experiment.points, warm_ups)], detects_warm_up=False)
