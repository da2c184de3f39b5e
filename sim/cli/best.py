"""`brokersim best`: the best point and variant by one metric, under limits on others."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import sim
from sim.cli import terminal
from sim.cli.compare import Folders
from sim.cli.options import option


def best(
    results: Folders,
    minimise: Annotated[str | None, option("METRIC", "Rank by this metric, lowest mean first.")] = None,
    maximise: Annotated[str | None, option("METRIC", "Rank by this metric, highest mean first.")] = None,
    subject_to: Annotated[
        list[str] | None,
        option(
            "LIMIT", "A limit that the mean of another metric must meet, such as 'load_stddev < 0.5'. May be repeated."
        ),
    ] = None,
    for_each: Annotated[
        list[str] | None,
        option("KEY", "A swept key to hold fixed: the best is shown for each of its values. May be repeated."),
    ] = None,
    top: Annotated[int, option("N", "How many candidates to show.", min=1)] = 5,
    json_: Annotated[bool, option("--json", "Print the ranking as JSON.")] = False,
) -> None:
    """Rank the points and variants of results by one metric, under limits on others.

    Shows whether limits hold on average or surely (with the whole 95 % confidence interval), which candidates cannot be
    distinguished from the best, and the best variant with its point's values as arguments of `brokersim run`. Exit status 1 if none
    meets the limits.
    """
    from sim.cli import shown

    found = sim.best(results, minimise, maximise, subject_to or (), for_each or ())
    collection, rankings = found.collection, found.rankings
    if json_:
        terminal.print_json(shown.rankings_json(collection, rankings, top))
    elif any(ranking.candidates for ranking in rankings):
        shown.print_rankings(collection, rankings, top)
    for ranking in rankings:
        if not ranking.candidates:
            print(f"brokersim: {shown.none_meets(collection, ranking)}", file=sys.stderr)
    if not all(ranking.candidates for ranking in rankings):
        raise typer.Exit(1)
