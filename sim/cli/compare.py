"""`brokersim compare`: several results, or the variants of one, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.options import argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.collection import Collection
    from analysis.headlines import Headlines

PLAIN_WIDTH = 140
"""Columns of what is not shown on a terminal: a row of a sweep is long."""

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
    json_: Annotated[bool, option("--json", "Print the comparison as JSON.")] = False,
    out: Annotated[Path | None, option("FILE.html", "Also write a page with tables and charts.")] = None,
    export: Annotated[
        list[Path] | None, option("FILE", "Also write the comparison as .csv, .parquet or .tex. May be repeated.")
    ] = None,
    figures: Annotated[
        Path | None, option("DIR", "Also write every chart as PNG, SVG and PDF into this folder.")
    ] = None,
) -> None:
    """Compare results: means, differences to a baseline with tests, and what was run differently.

    Runs of the same seed, replication and workload are paired; others are compared by Welch's test.
    """
    from analysis.collection import collect
    from analysis.exports import check_export, export_comparison

    for path in export or ():
        check_export(path)
    collection = collect(results, metric or (), baseline, vary)
    if json_:
        terminal.print_json(as_json(collection))
    else:
        print_comparison(collection)
    for path in export or ():
        export_comparison(collection, path)
    if out is not None or figures is not None:
        from analysis.charts import save_figures
        from analysis.comparison_page import draw_comparison, write_comparison

        charts = draw_comparison(collection)
        if out is not None:
            write_comparison(collection, out, charts)
        if figures is not None:
            save_figures(charts, figures)


def console() -> Console:
    """Where tables are printed; names are shown as they are, and never read as markup."""
    return terminal.console(width=PLAIN_WIDTH)


def print_headlines(said: Headlines, to: Console) -> None:
    """Print the findings, a line for each sentence and note."""
    for sentence in said.sentences:
        to.print(str(sentence))
    for note in said.notes:
        to.print(f"Note: {note}")


def print_comparison(collection: Collection) -> None:
    """Print a table for each metric, how the numbers were computed, the findings, and what was run differently."""
    from rich.table import Table

    from analysis.collection import changes
    from analysis.compared import PROBABILITIES, comparison_tables
    from analysis.comparison import method
    from analysis.headlines import headlines

    to = console()
    to.print(collection.manifest["title"], style="bold")
    shown_tables = comparison_tables(collection)
    for table in shown_tables:
        to.print(f"\n{table.title}", style="bold")
        shown = Table()
        for place, head in enumerate(table.heads):
            text = (
                head.replace(".", ".\n")
                if place < table.left - 1
                else head.replace("difference to ", "difference to\n")
            )
            shown.add_column(text, justify="left" if place < table.left else "right", overflow="fold")
        for row, after in zip(table.rows, [*table.rows[1:], None], strict=True):
            shown.add_row(*row.cells, end_section=after is not None and after.begins)
        to.print(shown)
    to.print(f"{method(collection)} {PROBABILITIES}" if "p" in shown_tables[0].heads else method(collection))
    print_headlines(headlines(collection), to)
    if collection.failed:
        to.print(f"{len(collection.failed)} runs failed and are missing.")
    changed = changes(collection)
    if len(changed):
        to.print("\nWhat changed", style="bold")
        upright = changed if len(changed) >= len(changed.columns) else changed.T.rename_axis("variant")
        shown = Table(str(upright.index.name))
        for name in map(str, upright):
            shown.add_column(name, overflow="fold")
        for cells in upright.itertuples(name=None):
            shown.add_row(*cells)
        to.print(shown)


def as_json(collection: Collection) -> Raw:
    """The comparison for programs: every metric, point and variant; null where there is no confidence interval, difference or test."""
    from analysis.collection import changes
    from analysis.comparison import baseline_of, compare_table, headline_of, variants_of
    from analysis.headlines import headlines

    table = compare_table(collection, headline_of(collection))
    return {
        "results": list(dict.fromkeys(str(source.results.folder) for source in collection.sources)),
        "title": collection.manifest["title"],
        "baseline": baseline_of(collection),
        "variants": variants_of(collection),
        "parameters": collection.manifest["parameters"],
        "metrics": json.loads(table.to_json(orient="records", double_precision=15)),
        "headlines": headlines(collection).as_json(),
        "changes": changes(collection).to_dict("index"),
        "failed": [
            {key: run[key] for key in ("point", "variant", "replication", "reason")} for run in collection.failed
        ],
    }
