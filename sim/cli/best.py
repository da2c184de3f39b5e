"""`brokersim best`: which point, and which variant there, does best in one metric under limits on others."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.compare import Folders, console
from sim.errors import InputError

if TYPE_CHECKING:
    from analysis.best import Bound, Candidate, Ranking
    from analysis.collection import Collection
    from sim.experiments.statistics import Interval
    from sim.expressions import Limit


def best(
    results: Folders,
    minimise: Annotated[
        str | None, typer.Option(metavar="METRIC", help="The metric whose least mean is wanted.", show_default=False)
    ] = None,
    maximise: Annotated[
        str | None, typer.Option(metavar="METRIC", help="The metric whose largest mean is wanted.", show_default=False)
    ] = None,
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="What the mean of another metric must be, such as 'load_stddev < 0.5'. May be repeated.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many are shown.")] = 5,
    json_: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
) -> None:
    """Rank the points and variants of results by one metric, under limits on others.

    Says whether limits hold on average or surely (with all of the 95 % interval), which others cannot be told apart from the best,
    and the best point's values as arguments of `brokersim run`. Exit status 1 where none meets the limits.
    """
    from analysis.best import best as rank
    from analysis.collection import collect
    from sim.expressions import Limit

    metric = minimise or maximise
    if metric is None or (minimise and maximise):
        raise InputError("give one of --minimise METRIC and --maximise METRIC")
    limits = [Limit.parse(text) for text in subject_to or ()]
    collection = collect(results, list(dict.fromkeys([metric, *(limit.metric for limit in limits)])))
    ranking = rank(collection, metric, maximise is not None, limits)
    if json_:
        print(json.dumps(as_json(collection, ranking, top), indent=2, ensure_ascii=False))
    elif ranking.candidates:
        print_ranking(collection, ranking, top)
    if not ranking.candidates:
        print(f"brokersim: {_none(ranking)}", file=sys.stderr)
        raise typer.Exit(1)


def print_ranking(collection: Collection, ranking: Ranking, top: int) -> None:
    """The first of those that meet the limits, and what is to be known of the best."""
    from rich.table import Table

    from analysis.best import arguments
    from analysis.comparison import headline_of, label
    from analysis.formatting import describe, scale
    from analysis.sweeps.axes import axes_of
    from sim.metrics import METRICS

    axes, shown, points = axes_of(collection), ranking.candidates[:top], collection.manifest["points"]
    metric = METRICS[headline_of(collection)[0]]
    factor, unit = scale(metric.unit, max(abs(candidate.value.mean) for candidate in shown))
    table = Table("", *(axis.name.replace(".", ".\n") for axis in axes), "variant")
    for head in (
        "n",
        label(metric.name) + ("" if unit in {"–", "count"} else f"\n({unit})"),
        "to the best",
        *(str(limit).replace(" ", "\n", 1) for limit in ranking.missed),
    ):
        table.add_column(head, justify="right", overflow="fold")
    for place, candidate in enumerate(shown, start=1):
        difference = " ".join(describe(candidate.difference, factor, signed=True)) if candidate.difference else ""
        table.add_row(
            str(place),
            *(axis.text(points[candidate.point][axis.key]) for axis in axes),
            candidate.variant,
            str(candidate.value.n),
            " ".join(describe(candidate.value, factor)).rstrip(),
            f"≈ {difference}".rstrip() if candidate.tied else difference.rstrip(),
            *map(_said, candidate.bounds),
        )
    to = console()
    to.print(collection.manifest["title"], style="bold")
    to.print(table)
    count, tied = len(ranking.candidates), sum(candidate.tied for candidate in ranking.candidates)
    if ranking.missed:
        missed = ", ".join(f"{number} do not meet {limit}" for limit, (number, _) in ranking.missed.items())
        to.print(f"{count} of {ranking.count} meet the limits: {missed}.")
        to.print("A limit holds on average where the mean is within it, surely where all of its 95 % interval is.")
    if tied:
        others = "1 other" if tied == 1 else f"{tied} others"
        to.print(
            f"{others} cannot be told apart from the best (≈): the 95 % interval of the difference contains 0, or there is none."
        )
    elif count > 1:
        to.print("The 95 % intervals of all differences to the best exclude 0.")
    if points[0]:
        to.print(f"The best point: {shlex.join(arguments(collection, ranking.candidates[0].point))}", soft_wrap=True)


def as_json(collection: Collection, ranking: Ranking, top: int) -> dict[str, Any]:
    """The ranking for programs; null where there is no interval or no difference."""
    from analysis.best import arguments

    def told(candidate: Candidate) -> dict[str, Any]:
        return {
            "point": candidate.point,
            "values": collection.manifest["points"][candidate.point],
            "set": arguments(collection, candidate.point)[1::2],
            "variant": candidate.variant,
            **_numbers(candidate.value),
            "limits": {
                str(bound.limit): {**_numbers(bound.value), "holds": _sure(bound)} for bound in candidate.bounds
            },
            "difference": _numbers(candidate.difference) if candidate.difference else None,
            "tied": candidate.tied,
        }

    return {
        "count": ranking.count,
        "meeting": len(ranking.candidates),
        "missing": {str(limit): number for limit, (number, _) in ranking.missed.items()},
        "tied": sum(candidate.tied for candidate in ranking.candidates),
        "best": [told(candidate) for candidate in ranking.candidates[:top]],
    }


def _numbers(value: Interval) -> dict[str, Any]:
    return {"replications": value.n, "mean": value.mean, "low": value.low, "high": value.high}


def _said(bound: Bound) -> str:
    from analysis.formatting import quantity
    from sim.metrics import METRICS

    return f"{quantity(bound.value.mean, METRICS[bound.limit.metric].unit)} {_sure(bound)}"


def _sure(bound: Bound) -> str:
    return "surely" if bound.surely else "on average"


def _none(ranking: Ranking) -> str:
    told = ", ".join(f"{limit} ({_missed(limit, *missed, ranking.count)})" for limit, missed in ranking.missed.items())
    return f"none of {ranking.count} points and variants meets all limits: {told}"


def _missed(limit: Limit, number: int, nearest: float | None, count: int) -> str:
    from analysis.formatting import quantity
    from sim.metrics import METRICS

    if number < count:
        return f"{number} do not meet it"
    if nearest is None:
        return "is undefined"
    end = "least" if limit.op.startswith("<") else "largest"
    return f"none meets it, the {end} mean is {quantity(nearest, METRICS[limit.metric].unit)}"
