"""`brokersim tune`: the parameters of a variant at which metrics are best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.options import Json, Overrides, Quiet, ScenarioFile, option, run_options
from sim.cli.search import SearchOut, Variant, bench, said
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    from sim.scenario.tuning import Tune
    from sim.studies.search import Bench
    from sim.studies.tune import Trial, Tuned


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
    from sim.scenario.tuning import Tune
    from sim.studies import tune as study

    named = (*(minimise or ()), *(maximise or ()), *(subject_to or ()))
    with bench("tune", scenario, variant, overrides, out, options, named) as opened:
        table = opened.experiment.tune or Tune()
        wanted = table.with_options(minimise or (), maximise or (), subject_to or (), vary or (), trials)

        say = terminal.speaker(quiet)
        tuned = study.tune_scenario(opened, wanted, lambda tuned: say(f"brokersim: {_line(tuned, wanted)}"))
    if json_:
        terminal.print_json(_json(opened, tuned, wanted))
    else:
        _print(opened, tuned, wanted)
    if not tuned.best:
        raise typer.Exit(1)


def _line(tuned: Tuned, wanted: Tune) -> str:
    """The result of the last trial, and the best so far."""
    last = tuned.trials[-1]
    ended = last.state + (f" ({last.reason})" if last.reason else "")
    front = ", ".join(str(trial.number) for trial in tuned.best) or "none"
    return f"trial {last.number} of {wanted.trials}: {ended}; best: {front}"


def _print(bench: Bench, tuned: Tuned, wanted: Tune) -> None:
    """Print the best trials with their metrics, and their options."""
    from rich.table import Table

    from sim.studies.tune import tune_sentences

    table = Table("trial", *wanted.metrics)
    for trial in tuned.best:
        table.add_row(str(trial.number), *_metrics(trial, wanted))
    console = terminal.console()
    console.print(f"{bench.experiment.title}: {bench.variant}", style="bold")
    if tuned.best:
        console.print(table)
    for sentence in tune_sentences(tuned, wanted):
        console.print(sentence, soft_wrap=True)
    for trial in tuned.best:
        console.print(f"Trial {trial.number}: {said(bench, trial.values)}", soft_wrap=True)
    print(f"\nResults: {bench.store.folder}")


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


def _json(bench: Bench, tuned: Tuned, wanted: Tune) -> Raw:
    from analysis.comparison import records
    from sim.studies.tune import frame, tune_sentences

    return {
        "results": str(bench.store.folder),
        "variant": bench.variant,
        "best": [{"trial": trial.number, "set": said(bench, trial.values)} for trial in tuned.best],
        "trials": records(frame(tuned, wanted)),
        "notes": tune_sentences(tuned, wanted),
    }
