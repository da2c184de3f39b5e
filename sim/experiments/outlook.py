"""Predict a scenario's cost before it is run: the number of runs, how many of them exist, and how long the others may take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median_low

from sim.experiments.index import Index
from sim.experiments.plan import RunSpec
from sim.experiments.results import read_json
from sim.experiments.rounds import expected_runs, rounds
from sim.experiments.run import load_fitting
from sim.scenario.experiment import Experiment

ASKED = 200
"""The most runs whose folders are read for their run time if no table has it."""


@dataclass(frozen=True)
class Outlook:
    """Counts of runs.

    `runs` are the runs known so far, of which `distinct` differ from each other: `there`, `failed` or still `to_do`. `later` runs
    depend on the outcome of others; `most` is the largest possible total, with all that precision may require. `seconds` is the
    estimated time of the runs to do and later ones with this many `jobs`, from the existing runs; None without any.
    """

    points: int
    variants: int
    replications: int
    runs: int
    distinct: int
    there: int
    failed: int
    to_do: int
    later: int
    most: int
    jobs: int
    seconds: float | None


def outlook(experiment: Experiment, folder: Path, jobs: int = 1) -> Outlook:
    """The outlook for results in `folder`. Raises InputError where a workload or the folder cannot be read."""
    hashes = {path: base.hash for path, base in load_fitting(experiment).items()}
    index = Index(folder)
    specs: dict[str, RunSpec] = {}
    runs = 0
    for more in rounds(experiment, hashes, index):
        runs += len(more)
        specs |= {spec.hash: spec for spec in more}
        if specs.keys() - index.done - index.failed.keys():
            break
    least, most = expected_runs(experiment)
    later = max(0, least - runs)
    there, failed = specs.keys() & index.done, (specs.keys() & index.failed.keys()) - index.done
    missing = [spec for run, spec in specs.items() if run not in there and run not in failed]
    return Outlook(
        points=len(experiment.points),
        variants=len(experiment.variants),
        replications=experiment.base.replications,
        runs=runs,
        distinct=len(specs),
        there=len(there),
        failed=len(failed),
        to_do=len(missing),
        later=later,
        most=most,
        jobs=jobs,
        seconds=_estimate(missing, later, _seconds(index, specs, there), jobs),
    )


def _seconds(index: Index, specs: Mapping[str, RunSpec], there: Iterable[str]) -> list[tuple[RunSpec, float]]:
    """Run times of existing runs: of all in the tables, or else of a sample."""
    known = [(specs[run], index.seconds[run]) for run in there if run in index.seconds]
    if known:
        return known
    timings = ((run, read_json(index.folder / "runs" / run / "timing.json")) for run in islice(sorted(there), ASKED))
    return [(specs[run], float(timing["seconds"])) for run, timing in timings if timing]


def _estimate(missing: Iterable[RunSpec], later: int, known: list[tuple[RunSpec, float]], jobs: int) -> float | None:
    """Estimate from runs of the same variant at the same point, else of the same variant, else from all runs.

    The first run of a process imports and compiles: so of replications it is the lower median that counts.
    """
    if not known:
        return None
    replications: dict[tuple[int, str], list[float]] = defaultdict(list)
    for spec, seconds in known:
        replications[spec.point, spec.variant].append(seconds)
    taken: dict[Hashable, list[float]] = defaultdict(list)
    for (point, variant), times in replications.items():
        for key in ((point, variant), variant, None):
            taken[key].append(median_low(times))
    mean = {key: fmean(seconds) for key, seconds in taken.items()}
    alike = (((spec.point, spec.variant), spec.variant, None) for spec in missing)
    total = sum(next(mean[key] for key in keys if key in mean) for keys in alike)
    return (total + later * mean[None]) / jobs
