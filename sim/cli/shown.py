"""The output of `run`, `compare` and `best`: tables and findings on a terminal, and the same as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from analysis.best import Bound, Candidate, Ranking, arguments
from analysis.collection import Collection, changes
from analysis.compared import PROBABILITIES, comparison_tables
from analysis.comparison import (
    baseline_of,
    compare,
    compare_points,
    compare_table,
    headline_of,
    label,
    method,
    records,
    texts,
    variants_of,
)
from analysis.deliveries import DeliveryCheck
from analysis.formatting import describe, quantity, scale
from analysis.headlines import Headlines, headlines, notes
from analysis.hottest import hottest
from analysis.replications import precision_said, warm_up_said
from analysis.sweeps.axes import Axis, axes_of
from sim.base.naming import Raw
from sim.cli import terminal
from sim.experiments.results import Results
from sim.metrics import METRICS
from sim.scenario.experiment import unit_of
from sim.scenario.expressions import Limit
from sim.scenario.keys import text_of

PLAIN_WIDTH = 140
"""The width of tables that are not printed on a terminal, as rows of a sweep are long."""
SHOWN = 20
"""The most rows of a table that are shown: pairs of topic and subscriber, points and variants."""
_Column: TypeAlias = tuple[str, Sequence[str]]
"""A head and the cells below it."""
_Columns: TypeAlias = Sequence[_Column]


def print_summary(results: Results) -> None:
    """Print the headline metrics by variant with confidence intervals and differences to the baseline, and the findings.

    For a sweep, the first points, with a row for each point and variant.
    """
    console = terminal.console()
    console.print(results.manifest["title"], style="bold")
    sweep = len(results.points) > 1
    for table in (_points if sweep else _variants)(results, console):
        console.print(table)
    if results.manifest["replications"] > 1:
        console.print(method(results))
    for what, said in (("Precision", precision_said), ("Warm-up", warm_up_said)):
        if found := said(results.manifest):
            console.print(f"{what}: {found}.")
    if (rows := len(results.points) * len(results.manifest["variants"])) > SHOWN and sweep:
        console.print(f"{SHOWN} of {rows} rows; all of them: brokersim compare {results.folder}")
    print_headlines(headlines(results), console)


def _variants(results: Results, to: Console) -> Iterator[Table]:
    rows = compare(results, headline_of(results))
    left = ("metric", [label(row.metric.name) for row in rows]), ("unit", [row.scale[1] for row in rows])
    right = [(name, ["\n".join(filter(None, texts(row, name))) for row in rows]) for name in variants_of(results)]
    return _that_fit(left, right, to, sections=True)


def _points(results: Results, to: Console) -> Iterator[Table]:
    variants, manifest = variants_of(results), results.manifest
    units = {key: unit_of(key, manifest["scenario"], manifest["variants"]) for key in results.points.columns}
    shown = [(point, name) for point in range(len(results.points)) for name in variants][:SHOWN]
    left = [
        (key.replace(".", ".\n"), [text_of(manifest["points"][point][key], units[key]) for point, _ in shown])
        for key in units
    ]
    right = []
    for metric in headline_of(results):
        outcomes = [row.outcomes for row in compare_points(results, metric)]
        means = [abs(one.value.mean) for row in outcomes for one in row.values() if one.value.n]
        factor, unit = scale(METRICS[metric].unit, max(means, default=0.0))
        head = f"{label(metric)}\n({unit})" if unit != "–" else label(metric)
        right.append(
            (head, ["\n".join(filter(None, describe(outcomes[at][name].value, factor))) for at, name in shown])
        )
    return _that_fit([*left, ("variant", [name for _, name in shown])], right, to)


def _that_fit(left: _Columns, right: _Columns, to: Console, sections: bool = False) -> Iterator[Table]:
    """Tables in which no word is cut, each with all left columns and as many right ones as the console has room for, at least one."""
    taken = list[_Column]()
    for column in right:
        if taken and not _fits([*left, *taken, column], to.width):
            yield _table(left, taken, sections)
            taken.clear()
        taken.append(column)
    yield _table(left, taken, sections)


def _fits(columns: _Columns, width: int) -> bool:
    """Whether a table's longest word fits its columns, as Rich makes the widest ones equal where there is not enough room."""
    found = [(head, *cells) for head, cells in columns]
    longest = max(cell_len(word) for column in found for text in column for word in text.split())
    lines = [max(cell_len(line) for text in column for line in text.splitlines()) for column in found]
    return sum(min(line, longest) + 3 for line in lines) + 1 <= width  # with borders


def _table(left: _Columns, right: _Columns, sections: bool) -> Table:
    table = Table()
    for head, _ in left:
        table.add_column(head, overflow="fold")
    for head, _ in right:
        table.add_column(head, justify="right", overflow="fold")
    for cells in zip(*(cells for _, cells in (*left, *right)), strict=True):
        table.add_row(*cells, end_section=sections)
    return table


def print_check(check: DeliveryCheck) -> None:
    """Print the deliveries of one run beside those of the trace; of many pairs, only those that differ most."""
    rows = check.counts if len(check.counts) <= SHOWN else check.differing.head(SHOWN)
    console = terminal.console()
    console.print(f"\nDeliveries of {check.variant}, replication {check.replication + 1}", style="bold")
    if len(rows):
        table = Table("topic", "subscriber")
        for name in ("in the trace", "simulated", "difference"):
            table.add_column(name, justify="right")
        for topic, subscriber, trace, simulated, more in rows.itertuples(index=False, name=None):
            table.add_row(str(topic), str(subscriber), f"{trace:,}", f"{simulated:,}", f"{more:+,}" if more else "0")
        console.print(table)
    console.print(check.sentence())


def summary_json(results: Results, checks: Sequence[DeliveryCheck] = ()) -> Raw:
    """The summary as JSON: all metrics of all variants, null where there is no confidence interval, difference or test.

    For a sweep, the headline metrics at all points.
    """
    table = compare_table(results, headline_of(results) if len(results.points) > 1 else None)
    place = ("point", "label") if len(results.points) > 1 else ()
    failed = [{key: run[key] for key in (*place, "variant", "replication", "reason")} for run in results.failed]
    checked = [
        {"variant": check.variant, "replication": check.replication, **row}
        for check in checks
        for row in records(check.counts)
    ]
    return {
        "results": str(results.folder),
        "title": results.manifest["title"],
        "baseline": results.manifest["report"]["baseline"],
        "replications": results.manifest["replications"],
        **{key: results.manifest[key] for key in ("precision", "warm_up") if results.manifest.get(key)},
        "metrics": records(table),
        "headlines": headlines(results).as_json(),
        "notes": results.notes,
        "failed": failed,
        **({"deliveries": checked} if checks else {}),
    }


def console() -> Console:
    """The console for tables; names are shown unchanged, and never read as markup."""
    return terminal.console(width=PLAIN_WIDTH)


def print_headlines(said: Headlines, to: Console) -> None:
    """Print the findings, a line for each sentence and note."""
    for sentence in said.sentences:
        to.print(str(sentence))
    for note in said.notes:
        to.print(f"Note: {note}")


def print_comparison(collection: Collection) -> None:
    """Print a table for each metric, how the numbers were computed, the findings, and the keys in which they differ."""
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


def print_hottest(collection: Collection) -> None:
    """Print the ten hottest topics, brokers and links of the first run of each variant."""
    to = console()
    for variant in variants_of(collection):
        for table in hottest(collection, variant):
            to.print(f"\nhottest {table.what}: {variant}", style="bold")
            shown = Table()
            for place, column in enumerate(table.columns):
                shown.add_column(column, justify="right" if place else "left", overflow="fold")
            for row in table.rows:
                shown.add_row(*row)
            to.print(shown)


def comparison_json(collection: Collection) -> Raw:
    """The comparison as JSON: every metric, point and variant; null where there is no confidence interval, difference or test."""
    table = compare_table(collection, headline_of(collection))
    return {
        "results": list(dict.fromkeys(str(source.results.folder) for source in collection.sources)),
        "title": collection.manifest["title"],
        "baseline": baseline_of(collection),
        "variants": variants_of(collection),
        "parameters": collection.manifest["parameters"],
        "metrics": records(table),
        "headlines": headlines(collection).as_json(),
        "changes": changes(collection).to_dict("index"),
        "failed": [
            {key: run[key] for key in ("point", "variant", "replication", "reason")} for run in collection.failed
        ],
    }


def print_rankings(collection: Collection, rankings: Sequence[Ranking], top: int) -> None:
    """Print the first candidates that meet the limits, and notes on the best, for each value of the keys held fixed."""
    to, found = console(), [ranking for ranking in rankings if ranking.candidates]
    to.print(collection.manifest["title"], style="bold")
    to.print(_ranked(collection, found, top))
    for ranking in found:
        if ranking.fixed:
            to.print(f"\n{_fixed(collection, ranking)}", style="bold")
        for sentence in _sentences(collection, ranking, explain=ranking is found[0]):
            to.print(sentence, soft_wrap=True)
    for note in notes(collection):
        to.print(f"Note: {note}")


def _ranked(collection: Collection, rankings: Sequence[Ranking], top: int) -> Table:
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
            *map(_bound, candidate.bounds),
        )
    return table


def _sentences(collection: Collection, ranking: Ranking, explain: bool) -> Iterator[str]:
    """Sentences on how many candidates meet the limits, how many cannot be distinguished from the best, and which is best."""
    count, tied = len(ranking.candidates), sum(candidate.tied for candidate in ranking.candidates)
    if ranking.missed:
        missed = ", ".join(f"{_do(number)} not meet {limit}" for limit, (number, _) in ranking.missed.items())
        yield f"{count} of {ranking.count} {'meets' if count == 1 else 'meet'} the limits: {missed}."
    if ranking.missed and explain:
        yield "A limit holds on average if the mean is within it, surely if its whole 95 % confidence interval is."
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
    scenario, variants = collection.manifest["scenario"], collection.manifest["variants"]
    units = {key: unit_of(key, scenario, variants) for key in ranking.fixed}
    return ", ".join(Axis(key, (value,), units[key]).said(value) for key, value in ranking.fixed.items())


def rankings_json(collection: Collection, rankings: Sequence[Ranking], top: int) -> Raw:
    """The rankings as JSON, in a list if keys are held fixed; null where there is no confidence interval or difference."""

    def as_dict(candidate: Candidate) -> Raw:
        return {
            "point": candidate.point,
            "values": collection.manifest["points"][candidate.point],
            "set": arguments(collection, candidate.point)[1::2],
            "variant": candidate.variant,
            **candidate.value.as_json(),
            "limits": {
                str(bound.limit): {**bound.value.as_json(), "holds": _sure(bound)} for bound in candidate.bounds
            },
            "difference": candidate.difference.as_json() if candidate.difference else None,
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


def _bound(bound: Bound) -> str:
    return f"{quantity(bound.value.mean, METRICS[bound.limit.metric].unit)} {_sure(bound)}"


def _sure(bound: Bound) -> str:
    return "surely" if bound.surely else "on average"


def none_meets(collection: Collection, ranking: Ranking) -> str:
    """The message if no point and variant meets all limits, and by how much they are missed."""
    missed_limits = ", ".join(
        f"{limit} ({_nearest(limit, *missed, ranking.count)})" for limit, missed in ranking.missed.items()
    )
    of = f"{_fixed(collection, ranking)}: " if ranking.fixed else ""
    return f"{of}none of {ranking.count} points and variants meets all limits: {missed_limits}"


def _do(number: int) -> str:
    return f"{number} {'does' if number == 1 else 'do'}"


def _nearest(limit: Limit, number: int, nearest: float | None, count: int) -> str:
    if number < count:
        return f"{_do(number)} not meet it"
    if nearest is None:
        return "undefined"
    end = "lowest" if limit.op.startswith("<") else "highest"
    return f"none meets it, the {end} mean is {quantity(nearest, METRICS[limit.metric].unit)}"
