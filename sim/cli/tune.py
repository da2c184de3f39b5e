"""`brokersim tune`: the parameters of a variant at which metrics are best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.options import Json, Overrides, Quiet, ScenarioFile, SearchOut, Variant, option, run_options
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from sim.api.searches import TunedVariant
    from sim.scenario.tuning import Tune
    from sim.studies.tune import Trial


@run_options(without=("fail_fast", "retry_failed", "verify"))
def tune(
    scenario: ScenarioFile,
    minimise: Annotated[list[str] | None, option("METRIC", "A metric to minimise. May be repeated.")] = None,
    maximise: Annotated[list[str] | None, option("METRIC", "A metric to maximise. May be repeated.")] = None,
    subject_to: Annotated[
        list[str] | None, option("LIMIT", "A limit to meet, such as 'load_stddev < 0.5'. May be repeated.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        option("KEY=VALUES", "A key to vary: FROM..TO, FROM..TO:log, or comma-separated values. May be repeated."),
    ] = None,
    trials: Annotated[int | None, option("N", "Number of points to try; 50 by default.", min=1)] = None,
    variant: Variant = None,
    *,
    overrides: Overrides,
    out: SearchOut = None,
    options: RunOptions,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for the parameters at which metrics are best.

    The search is defined by the scenario's [tune] table, or by options, which override it. A point is abandoned after a few
    replications if it is certainly worse than the best. The same command resumes an interrupted search, and a larger number of
    trials continues it. Exit status 1 if no point meets the limits.
    """
    overrides.check(scenario)
    say = terminal.speaker(quiet)
    found = sim.tune(
        scenario,
        minimise or (),
        maximise or (),
        subject_to or (),
        vary or (),
        trials,
        variant=variant,
        **overrides.given,
        out=out,
        progress=lambda line: say(f"brokersim: {line}"),
        **options.given,
    )
    if json_:
        terminal.print_json(_json(found))
    else:
        _print(found)
    if not found.tuned.best:
        raise typer.Exit(1)


def _print(found: TunedVariant) -> None:
    """Print the best trials with their metrics, and their options."""
    from rich.table import Table

    best = found.tuned.best
    table = Table("trial", *found.wanted.metrics)
    for trial in best:
        table.add_row(str(trial.number), *_metrics(trial, found.wanted))
    console = terminal.console()
    console.print(f"{found.title}: {found.variant}", style="bold")
    if best:
        console.print(table)
    for sentence in found.sentences:
        console.print(sentence, soft_wrap=True)
    for trial, options in zip(best, found.options, strict=True):
        console.print(f"Trial {trial.number}: {options}", soft_wrap=True)
    print(f"\nResults: {found.folder}")


def _metrics(trial: Trial, wanted: Tune) -> list[str]:
    """Each metric's mean in a suitable unit, and its confidence interval."""
    from analysis.formatting import describe, scale, with_unit
    from sim.metrics import METRICS

    cells = []
    for metric in wanted.metrics:
        interval = trial.interval(metric)
        factor, unit = scale(METRICS[metric].unit, interval.mean)
        mean, between = describe(interval, factor)
        cells.append(f"{with_unit(mean, unit)}\n{between}".rstrip())
    return cells


def _json(found: TunedVariant) -> Raw:
    from analysis.comparison import records

    best = zip(found.tuned.best, found.options, strict=True)
    return {
        "results": str(found.folder),
        "variant": found.variant,
        "best": [{"trial": trial.number, "set": options} for trial, options in best],
        "trials": records(found.table),
        "notes": found.sentences,
    }
