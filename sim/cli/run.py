"""`brokersim run`: a scenario's runs, with progress on standard error and a summary on standard output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import sim
from sim.cli import terminal
from sim.cli.options import Json, Out, Overrides, Quiet, ScenarioFile, option, run_options
from sim.experiments.options import RunOptions


@run_options()
def run(
    scenario: ScenarioFile,
    *,
    overrides: Overrides,
    out: Out = None,
    options: RunOptions,
    check_deliveries: Annotated[
        bool,
        option(
            "--check-deliveries",
            "Compare what users received with the deliveries in the trace; exit status 1 if any count differs.",
        ),
    ] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario and summarise the results.

    Every variant is run in every replication at every point of the sweep, on the same arrivals. Runs that are already in the
    results folder are not repeated, so an interrupted command resumes. A failed run does not stop the others.
    """
    from sim.api.progress import display

    experiment = overrides.load(scenario, *(["subscribers=true"] if check_deliveries else []))
    if check_deliveries:
        from analysis import deliveries

        deliveries.traces_of(experiment)  # report missing deliveries before anything is run
    folder = sim.results_folder(experiment, out)
    pages = set(folder.glob("*.html"))
    try:
        with display(experiment, quiet) as progress:
            results = sim.run(experiment, folder, progress=progress, on_failure=progress.failed, **options.given)
    except sim.RunFailed:
        kept = f"finished runs are kept in {folder}, the same command resumes"
        print(f"brokersim: stopped; {kept} with the others, or --retry-failed with this one too", file=sys.stderr)
        raise typer.Exit(1) from None

    from sim.cli import shown  # the display code takes longer to load than many a run

    for page in sorted(pages - set(folder.glob("*.html"))):
        print(f"brokersim: {page} showed runs other than the present ones, and was removed", file=sys.stderr)
    for note in results.notes:
        print(f"note: {note}", file=sys.stderr)
    checks = deliveries.check_deliveries(results, experiment) if check_deliveries else []
    if json_:
        terminal.print_json(shown.summary_json(results, checks))
    else:
        shown.print_summary(results)
        for check in checks:
            shown.print_check(check)
        print(f"\nResults: {results.folder}")
    if results.failed:
        runs = len(results.failed) + len(results.runs)
        print(f"brokersim: {len(results.failed)} of {runs} runs failed; --retry-failed repeats them", file=sys.stderr)
    if results.failed or not all(check.differing.empty for check in checks):
        raise typer.Exit(1)
