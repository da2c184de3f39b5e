"""`brokersim demo`: the whole workflow, with nothing to prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import sim
from sim.cli.options import Quiet, option, run_options
from sim.experiments.options import RunOptions


@run_options(("jobs",))
def demo(
    out: Annotated[Path, option("DIR", "The folder to write.")] = Path("demo"),
    *,
    options: RunOptions,
    quiet: Quiet = False,
) -> None:
    """Try it: generate check-ins, prepare them, compare three policies, write a report. Takes 1 to 3 minutes on two cores."""
    from sim.cli.shown import print_summary

    results = sim.demo(out, jobs=options.jobs, progress=not quiet)
    print_summary(results)
    print(f"\nReport: {out / 'report.html'}")
    if results.failed:
        raise typer.Exit(1)
