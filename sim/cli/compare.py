"""`brokersim compare`: several results, or the variants of one, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import sim
from sim.cli import terminal
from sim.cli.options import argument, option

Folders = Annotated[list[Path], argument("RESULTS…", "Result folders written by `brokersim run`.")]


def compare(
    results: Folders,
    metric: Annotated[
        list[str] | None, option("METRIC", "A metric to compare; the report's metrics by default. May be repeated.")
    ] = None,
    baseline: Annotated[
        str | None, option("NAME", "The variant that the others are compared with.", show_default="the first folder's")
    ] = None,
    vary: Annotated[
        str | None, option("KEY", "A key in which the folders differ: each folder becomes a point along it.")
    ] = None,
    hot: Annotated[
        bool, option("--hottest", "Also list the ten hottest topics, brokers and links of each variant's first run.")
    ] = False,
    json_: Annotated[bool, option("--json", "Print the comparison as JSON.")] = False,
    out: Annotated[Path | None, option("FILE.html", "Also write a page with tables and charts.")] = None,
    export: Annotated[
        list[Path] | None, option("FILE", "Also write the comparison as .csv, .parquet or .tex. May be repeated.")
    ] = None,
    figures: Annotated[Path | None, option("DIR", "Also write every chart as PNG, SVG and PDF to this folder.")] = None,
    paper: Annotated[
        bool, option("--paper", "Draw them for a paper: 3.5 inches wide, in serif type, in black and white.")
    ] = False,
) -> None:
    """Compare results: means, tested differences to a baseline, and the keys in which they differ.

    Runs of the same seed, replication and workload are paired; others are compared by Welch's test.
    """
    from sim.cli import shown

    sim.check_exports(export or ())
    compared = sim.compare(results, metric or (), baseline, vary)
    if json_:
        terminal.print_json(shown.comparison_json(compared.collection))
    else:
        shown.print_comparison(compared.collection)
        if hot:
            shown.print_hottest(compared.collection)
    for path in export or ():
        compared.export(path)
    if out is not None:
        compared.page(out)
    if figures is not None:
        compared.figures(figures, paper=paper)
