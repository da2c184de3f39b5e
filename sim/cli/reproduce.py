"""`brokersim reproduce`: run the figures of a paper again, and write a page with its claims, our numbers and verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.cli import terminal
from sim.cli.options import Quiet, argument, option, run_options
from sim.experiments.options import RunOptions

if TYPE_CHECKING:
    import pandas as pd

    from sim.api.pages import ReproducedPaper


def papers() -> Iterator[tuple[str, str]]:
    """The names and titles of all papers."""
    from sim import plugins
    from sim.papers.paper import find_paper

    return ((name, find_paper(name).source) for name in plugins.names("paper"))


@run_options(without=("fail_fast", "retry_failed", "verify"))
def reproduce(
    paper: Annotated[str, argument("PAPER", "A paper by its name.")],
    figure: Annotated[str, argument("FIGURE", "A single figure, such as 1a; all by default.")] = "",
    out: Annotated[Path | None, option("DIR", "The folder to write; reproductions/PAPER by default.")] = None,
    scale: Annotated[
        float | None, option("S", "Below 1, a quick look: fewer points and replications, fewer users, less time.")
    ] = None,
    *,
    options: RunOptions,
    data: Annotated[
        Path | None,
        option(
            "DIR",
            "Real data, in this folder or one below it (overlays: user_artists.dat of Last.fm, trusts.txt of CiaoDVD; or .gz).",
        ),
    ] = None,
    larger: Annotated[
        Path | None,
        option(
            "--with DIR",
            "Take figures unchanged from this folder of another reproduction if it has them at this scale or a larger one.",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        option("DIR", "Also write claims.csv, README.md, tables as CSV and charts as SVG to this folder."),
    ] = None,
    check: Annotated[
        bool, option("--check", "Compare the verdicts with those shipped; at the paper's quick scale by default.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a paper's figures.

    Writes one page with the paper's claims, our results, and verdicts with reasons. Runs that are already in the folder are not
    repeated.
    """
    from sim.papers.paper import find_paper
    from sim.papers.shipped import shipped_claims

    if scale is None:
        scale = find_paper(paper).quick if check else 1.0
    shipped = shipped_claims(paper) if check else None
    made = sim.reproduce(
        paper,
        figure,
        out,
        scale,
        data,
        terminal.speaker(quiet),
        larger=larger,
        **options.given,
    )
    _print(made)
    print(f"\nPage: {made.page}")
    if export is not None:
        print(f"Exported: {len(made.export(export)):,} files in {export}")
    for failure in made.failed:
        at = f"{failure['label']}, " if failure["label"] else ""
        where = f"{at}variant {failure['variant']}, replication {failure['replication']}"
        print(f"{failure['traceback']}brokersim: {where} failed: {failure['reason']}", file=sys.stderr)
    unlike = shipped is not None and _compare(made, shipped)
    if made.failed or unlike:
        raise typer.Exit(1)


def _compare(made: ReproducedPaper, shipped: pd.DataFrame) -> bool:
    """Print the verdicts that are unlike the shipped ones; whether there is one that is not known to differ."""
    from sim.papers.shipped import unlike_verdicts

    keys = {claim.statement for claim in made.reproduction.paper.claims}
    found = unlike_verdicts(made.reproduction, shipped[shipped["claim"].isin(keys)])
    for one in found:
        reading = f" ({one.reading})" if one.reading else ""
        why = f": {one.expected}" if one.expected else ", which is not expected"
        print(f"{one.claim}{reading}: shipped {one.shipped}, here {one.found}{why}")
    unexpected = sum(not one.expected for one in found)
    print(f"{len(found)} verdicts differ from those shipped, {unexpected} of them unexpectedly.")
    return unexpected > 0


def _print(made: ReproducedPaper) -> None:
    """Print the claims and verdicts as a table, a line for each reading, and how many verdicts there are of each kind."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column, width in (("where", 17), ("claim", 34), ("paper", 12), ("ours", 22), ("verdict", 11)):
        table.add_column(column, width=width)
    number = None
    for claim, where, statement, reading, paper, ours, verdict in made.table.itertuples(name=None):
        first, number = claim != number, claim
        said = " ".join([*([statement] if first else []), *([f"– {reading}"] if reading else [])])
        table.add_row(where if first else "", said, paper if first else "", ours, verdict)
    console = terminal.console()
    console.print(made.reproduction.paper.title, style="bold")
    if table.rows:
        console.print(table)
    for sentence in made.sentences:
        console.print(sentence)
