"""`brokersim report`: results as one page, and its charts as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import sim
from sim.cli import terminal
from sim.cli.options import argument, option


def report(
    results: Annotated[Path, argument("RESULTS", "A result folder written by `brokersim run`.")],
    out: Annotated[Path | None, option("FILE.html", "The page to write.", show_default="RESULTS/report.html")] = None,
    figures: Annotated[Path | None, option("DIR", "Also write every chart as PNG, SVG and PDF to this folder.")] = None,
    paper: Annotated[
        bool, option("--paper", "Draw them for a paper: 3.5 inches wide, in serif type, in black and white.")
    ] = False,
    point: Annotated[int | None, option("N", "The point of a sweep to show in detail; the first by default.")] = None,
    pareto: Annotated[
        str, option("METRIC,METRIC", "The metrics whose trade-off a sweep's report shows.")
    ] = "notification_delay,notification_overhead",
    quiet: Annotated[bool, option("--quiet -q", "Print nothing but the page's path.")] = False,
) -> None:
    """Write a report: one HTML file with tables and charts that works offline."""
    print(sim.report(results, out, figures, point, pareto, paper=paper, progress=terminal.speaker(quiet)))
