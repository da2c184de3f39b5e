"""`brokersim plan`: the number and estimated time of a scenario's runs before anything is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import sim
from sim.cli.options import Json, Out, Overrides, ScenarioFile, run_options
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from sim.experiments.outlook import Outlook
    from sim.scenario.experiment import Experiment

SHOWN = 6
"""The most values of a swept key that are shown."""


@run_options(("jobs",))
def plan(
    scenario: ScenarioFile,
    *,
    overrides: Overrides,
    out: Out = None,
    options: RunOptions,
    json_: Json = False,
) -> None:
    """Show how many runs a scenario needs, how many exist already, and how long the others may take.

    The time is estimated from existing runs, those of the same variant where possible.
    """
    experiment = overrides.load(scenario)
    folder = sim.results_folder(experiment, out)
    found = sim.plan(experiment, folder, jobs=options.jobs)
    if json_:
        print(json.dumps({"title": experiment.title, "results": str(folder), **asdict(found)}, ensure_ascii=False))
        return
    print(experiment.title)
    for name, text in _lines(experiment, found):
        print(f"{name:<14}{text}")
    print(f"{'results':<14}{folder}")


def _lines(experiment: Experiment, found: Outlook) -> Iterator[tuple[str, str]]:
    from sim.base.units import format_duration

    if experiment.parameters:
        yield "points", f"{found.points:,}"
        for key in experiment.parameters:
            yield "", f"{key} = {_values(experiment, key)}"
    yield "variants", f"{found.variants}: {', '.join(experiment.variants)}"
    yield "replications", f"{found.replications}"
    yield "runs", f"{found.runs:,}{f', {found.distinct:,} of them distinct' if found.distinct < found.runs else ''}"
    failed = f", {found.failed:,} failed" if found.failed else ""
    yield "", f"{found.there:,} finished{failed}, {found.to_do:,} to do"
    if found.later:
        yield "warm-up", f"detected from these runs, before {found.later:,} more"
    if (wanted := experiment.precision) is not None:
        least = f"{wanted.metric} within {wanted.relative:.3g} at {wanted.confidence:.0%} confidence"
        yield "precision", f"{least}: at most {found.most:,} runs in all"
    if found.to_do or found.later:
        jobs = f"{found.jobs} process{'es' if found.jobs > 1 else ''}"
        seconds = found.seconds
        yield (
            "time",
            "unknown, as no run has finished yet" if seconds is None else f"about {format_duration(seconds)} in {jobs}",
        )


def _values(experiment: Experiment, key: str) -> str:
    shown = list({point.values[key]: point.texts[key] for point in experiment.points}.values())
    return ", ".join(shown if len(shown) <= SHOWN else [*shown[: SHOWN - 2], "…", shown[-1]])
