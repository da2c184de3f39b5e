"""`brokersim best`: the point and variant that is best in one metric, under limits on others."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.cli import terminal
from sim.cli.compare import Folders, console
from sim.cli.options import option

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.best import Bound, Candidate, Ranking
    from analysis.collection import Collection
    from sim.experiments.statistics import Interval
    from sim.scenario.expressions import Limit


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

    Shows whether limits hold on average or surely (with the whole 95 % confidence interval), which others cannot be distinguished
    from the best,
    and the best variant with its point's values as arguments of `brokersim run`. Exit status 1 where none meets the limits.
    """
    from analysis.best import best_for_each
    from analysis.collection import collect
    from sim.scenario.expressions import Limit

    metric = minimise or maximise
    if metric is None or (minimise and maximise):
        raise InputError("give one of --minimise METRIC and --maximise METRIC")
    limits = [Limit.parse(text) for text in subject_to or ()]
    collection = collect(results, list(dict.fromkeys([metric, *(limit.metric for limit in limits)])))
    rankings = best_for_each(collection, for_each or (), metric, maximise is not None, limits)
    if json_:
        terminal.print_json(as_json(collection, rankings, top))
    elif any(ranking.candidates for ranking in rankings):
        print_rankings(collection, rankings, top)
    for ranking in rankings:
        if not ranking.candidates:
            print(f"brokersim: {_none(collection, ranking)}", file=sys.stderr)
    if not all(ranking.candidates for ranking in rankings):
        raise typer.Exit(1)


def print_rankings(collection: Collection, rankings: Sequence[Ranking], top: int) -> None:
    """Print the first candidates that meet the limits, and notes on the best, for each value of the keys held fixed."""
    from analysis.headlines import notes

    to, found = console(), [ranking for ranking in rankings if ranking.candidates]
    to.print(collection.manifest["title"], style="bold")
    to.print(_table(collection, found, top))
    for ranking in found:
        if ranking.fixed:
            to.print(f"\n{_fixed(collection, ranking)}", style="bold")
        for sentence in _sentences(collection, ranking, explain=ranking is found[0]):
            to.print(sentence, soft_wrap=True)
    for note in notes(collection):
        to.print(f"Note: {note}")


def _table(collection: Collection, rankings: Sequence[Ranking], top: int) -> Table:
    from rich.table import Table

    from analysis.comparison import headline_of, label
    from analysis.formatting import describe, scale
    from analysis.sweeps.axes import axes_of
    from sim.metrics import METRICS

    points, fixed = collection.manifest["points"], rankings[0].fixed
    axes = sorted(axes_of(collection), key=lambda axis: fixed.keys().isdisjoint((axis.key, *axis.together)))
    metric = METRICS[headline_of(collection)[0]]
    numbered = [(n, one) for ranking in rankings for n, one in enumerate(ranking.candidates[:top], start=1)]
    factor, unit = scale(metric.unit, max(abs(candidate.value.mean) for _, candidate in numbered))
    table = Table("", *(axis.name.replace(".", ".\n") for axis in axes), "variant")
    for head in (
        "n",
        label(metric.name) + ("" if unit in {"–", "count"} else f"\n({unit})"),
        "to the best",
        *(str(limit).replace(" ", "\n", 1) for limit in rankings[0].missed),
    ):
        table.add_column(head, justify="right", overflow="fold")
    for place, candidate in numbered:
        difference = " ".join(describe(candidate.difference, factor, signed=True)) if candidate.difference else ""
        if place == 1:
            table.add_section()
        table.add_row(
            str(place),
            *(axis.text(points[candidate.point][axis.key]) for axis in axes),
            candidate.variant,
            str(candidate.value.n),
            " ".join(describe(candidate.value, factor)).rstrip(),
            f"≈ {difference}".rstrip() if candidate.tied else difference.rstrip(),
            *map(_said, candidate.bounds),
        )
    return table


def _sentences(collection: Collection, ranking: Ranking, explain: bool) -> Iterator[str]:
    """How many meet the limits, how many cannot be distinguished from the best, and which is the best."""
    from analysis.best import arguments

    count, tied = len(ranking.candidates), sum(candidate.tied for candidate in ranking.candidates)
    if ranking.missed:
        missed = ", ".join(f"{_do(number)} not meet {limit}" for limit, (number, _) in ranking.missed.items())
        yield f"{count} of {ranking.count} {'meets' if count == 1 else 'meet'} the limits: {missed}."
    if ranking.missed and explain:
        yield "A limit holds on average where the mean is within it, surely where its whole 95 % confidence interval is."
    if tied:
        others = "1 other" if tied == 1 else f"{tied} others"
        yield (
            f"{others} cannot be distinguished from the best (≈): the 95 % confidence interval of the difference contains 0, "
            "or there is none."
        )
    elif count > 1:
        yield "The 95 % confidence intervals of all differences to the best exclude 0."
    best = ranking.candidates[0]
    at = shlex.join(arguments(collection, best.point))
    yield f"The best: {best.variant} with {at}" if at else f"The best: {best.variant}"


def _fixed(collection: Collection, ranking: Ranking) -> str:
    """The values of the keys that are held fixed, as text."""
    from analysis.sweeps.axes import Axis
    from sim.scenario.experiment import unit_of

    scenario, variants = collection.manifest["scenario"], collection.manifest["variants"]
    units = {key: unit_of(key, scenario, variants) for key in ranking.fixed}
    return ", ".join(Axis(key, (value,), units[key]).said(value) for key, value in ranking.fixed.items())


def as_json(collection: Collection, rankings: Sequence[Ranking], top: int) -> Raw:
    """The rankings for programs, in a list where keys are held fixed; null where there is no confidence interval or difference."""
    from analysis.best import arguments

    def as_dict(candidate: Candidate) -> Raw:
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

    found = [
        {
            **({"for": dict(ranking.fixed)} if ranking.fixed else {}),
            "count": ranking.count,
            "meeting": len(ranking.candidates),
            "missing": {str(limit): number for limit, (number, _) in ranking.missed.items()},
            "tied": sum(candidate.tied for candidate in ranking.candidates),
            "best": [as_dict(candidate) for candidate in ranking.candidates[:top]],
        }
        for ranking in rankings
    ]
    return {"for_each": list(rankings[0].fixed), "rankings": found} if rankings[0].fixed else found[0]


def _numbers(value: Interval) -> Raw:
    return {"replications": value.n, "mean": value.mean, "low": value.low, "high": value.high}


def _said(bound: Bound) -> str:
    from analysis.formatting import quantity
    from sim.metrics import METRICS

    return f"{quantity(bound.value.mean, METRICS[bound.limit.metric].unit)} {_sure(bound)}"


def _sure(bound: Bound) -> str:
    return "surely" if bound.surely else "on average"


def _none(collection: Collection, ranking: Ranking) -> str:
    missed_limits = ", ".join(
        f"{limit} ({_missed(limit, *missed, ranking.count)})" for limit, missed in ranking.missed.items()
    )
    of = f"{_fixed(collection, ranking)}: " if ranking.fixed else ""
    return f"{of}none of {ranking.count} points and variants meets all limits: {missed_limits}"


def _do(number: int) -> str:
    return f"{number} {'does' if number == 1 else 'do'}"


def _missed(limit: Limit, number: int, nearest: float | None, count: int) -> str:
    from analysis.formatting import quantity
    from sim.metrics import METRICS

    if number < count:
        return f"{_do(number)} not meet it"
    if nearest is None:
        return "is undefined"
    end = "least" if limit.op.startswith("<") else "largest"
    return f"none meets it, the {end} mean is {quantity(nearest, METRICS[limit.metric].unit)}"
