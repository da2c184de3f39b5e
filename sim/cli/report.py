"""`brokersim report`: results as one page, and its charts as pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The folder that `brokersim run` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="The page to write.", show_default="RESULTS/report.html"),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write every chart as PNG and SVG into this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the page's path.")] = False,
) -> None:
    """Write a report: one HTML file with tables and charts that needs no network."""
    from sim.experiments.results import load_results

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    loaded = load_results(results)
    page = out or results / "report.html"
    say(f"Reading {len(loaded.manifest['runs'])} runs of '{loaded.manifest['title']}'")

    from analysis.charts import save_figures
    from analysis.figures import figures as draw
    from analysis.report import write_report

    charts = draw(loaded)
    write_report(loaded, page, charts)
    if figures is not None:
        say(f"Drawing {len(charts)} charts into {figures}")
        save_figures(charts, figures)
    print(page)
