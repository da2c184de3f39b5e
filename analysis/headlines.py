"""The findings in words: the sentences shown on terminals, on pages and in JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import pandas as pd

from analysis.comparison import (
    Comparison,
    baseline_of,
    compare,
    compare_points,
    direction,
    headline_of,
    label,
    percent,
    variants_of,
)
from analysis.formatting import describe, number, quantity, with_unit
from analysis.sweeps.axes import axes_of, points_said
from sim.base.naming import Raw
from sim.experiments.results import Results
from sim.experiments.statistics import half_width
from sim.metrics import METRICS
from sim.scenario.expressions import KEEPS_UP

_FEW = 5
"""Results with fewer replications have a note."""
_NAMED = 3
"""The most brokers, or points of a sweep, that a sentence names."""
_WARNING = "Delays and deliveries cover only what was delivered."


class Sentence(NamedTuple):
    """A sentence: its subject (a variant or a metric), and what it says about it."""

    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


@dataclass(frozen=True)
class Headlines:
    """The findings: sentences about all headline metrics, and notes needed to interpret them."""

    sentences: list[Sentence]
    notes: list[str]

    def as_json(self) -> Raw:
        """The headlines as JSON."""
        return {"sentences": list(map(str, self.sentences)), "notes": self.notes}


def headlines(results: Results) -> Headlines:
    """The findings at the single point, or over all points of a sweep."""
    said = of_sweep(results) if len(results.manifest["points"]) > 1 else of_point(results)
    return Headlines(said, list(notes(results)))


def notes(results: Results) -> Iterator[str]:
    """Notes needed to interpret the numbers: saturated brokers, and few replications."""
    yield from _saturation(results)
    if few := few_replications(results):
        yield few


def few_replications(results: Results) -> str:
    """A note on the consequences of few replications; "" where there are enough."""
    counts = results.runs.groupby(["point", "variant"]).size()
    least = int(counts.min()) if len(counts) else _FEW  # all runs failed, so there is nothing to interpret
    if least >= _FEW:
        return ""
    if counts.max() == 1:
        return "There is one replication, so no number has a confidence interval and no difference can be called significant."
    if least == 1:
        return "Some points have one replication; no number there has a confidence interval, and no difference is significant."
    reach = number(float(half_width(1.0, least - 1, 0.95)), 1)
    some = "" if counts.min() == counts.max() else " at some points"
    return (
        f"{least} replications{some} are few: a confidence interval extends {reach} standard errors to each side of its mean (2.0 with "
        "many) and assumes roughly normal values. Only large differences become significant; smaller ones may exist."
    )


def of_point(results: Results) -> list[Sentence]:
    """All headline metrics at one point: a sentence for each compared variant, or for the only one."""
    baseline, names = baseline_of(results), variants_of(results)
    rows = compare(results, headline_of(results))
    if names == [baseline]:
        means = (f"{label(row.metric.name)} {_mean(row, baseline)}" for row in rows)
        return [Sentence(baseline, f"{', '.join(means)}.")]
    return [Sentence(name, f"{_compared(rows, name, baseline)}.") for name in names if name != baseline]


def _compared(rows: Sequence[Comparison], variant: str, baseline: str) -> str:
    """The metrics in which a variant is better, worse, otherwise different, or not significantly different."""
    forms = {
        "better": "better than {b} in {x}",
        "always better": "better than {b} in every replication in {x}",
        "worse": "worse than {b} in {x}",
        "always worse": "worse than {b} in every replication in {x}",
        "different": "{x} against {b}",
        "always different": "{x} against {b} in every replication",
        "single": "{x} against {b} in one replication",
        "uncertain": "no significant difference in {x}",
        "same": "the same {x}",
    }
    found: dict[str, list[str]] = {form: [] for form in forms}
    for row in rows:
        if form := _form(row, variant):
            change = "" if form in {"uncertain", "same"} else f" {_change(row, variant)}"
            found[form].append(label(row.metric.name) + change)
    said = [forms[form].format(b=baseline, x=", ".join(metrics)) for form, metrics in found.items() if metrics]
    return "; ".join(said) or f"no metric that can be compared with {baseline}"


def _form(row: Comparison, variant: str) -> str:
    """The form of sentence for an outcome; "" where there is nothing to compare."""
    outcome = row.outcomes[variant]
    test = outcome.test
    if test is None:
        return ""
    if test.p is not None and not outcome.verdict:
        return "uncertain"
    if test.difference.mean == 0:
        return "same"
    if test.difference.n == 1:
        return "single"
    way = "different" if row.metric.better == "neutral" else direction(row.metric, test)
    return way if outcome.verdict else f"always {way}"


def of_sweep(results: Results) -> list[Sentence]:
    """All headline metrics over a sweep: where each is best, at how many points variants differ, and by how much."""
    metrics, baseline = headline_of(results), baseline_of(results)
    compared = {metric: compare_points(results, metric) for metric in metrics}
    said = [
        Sentence(label(metric), best) for metric, rows in compared.items() if (best := _best(results, metric, rows))
    ]
    for name in variants_of(results):
        spans = [span for rows in compared.values() if name != baseline and (span := _span(rows, name))]
        if spans:
            said.append(Sentence(f"{name} against {baseline}", f"{'; '.join(spans)}."))
    return said


def _best(results: Results, metric: str, rows: Sequence[Comparison]) -> str:
    """The point and variant at which a metric is best; "" where it is the same everywhere, or neither direction is better.

    Metrics that cover only deliveries are not compared where brokers are saturated.
    """
    behind = _saturated_points(results) if METRICS[metric].got_through else set()
    found = [
        (outcome.value.mean, point, name)
        for point, row in enumerate(rows)
        for name, outcome in row.outcomes.items()
        if outcome.value.n and (point, name) not in behind
    ]
    better = METRICS[metric].better
    means = [mean for mean, _, _ in found]
    if better == "neutral" or len(set(means)) < 2:
        return ""
    place = means.index(min(means) if better == "lower" else max(means))
    _, point, name = found[place]
    which = f"with {name} at" if len(variants_of(results)) > 1 else "at"
    at = points_said(axes_of(results), results.manifest["points"][point])
    return f"{'lowest' if better == 'lower' else 'highest'} {which} {at}: {_mean(rows[point], name)}."


def _span(rows: Sequence[Comparison], variant: str) -> str:
    """The range of a variant's differences over the points, and the number of points with a significant one."""
    tested = [row for row in rows if row.outcomes[variant].test]
    if not tested:
        return ""
    name, count = label(rows[0].metric.name), f"{number(len(tested))} point{'s' if len(tested) > 1 else ''}"
    if not any(_effect(row, variant) for row in tested):
        return f"the same {name} at {count}"
    tested.sort(key=lambda row: _effect(row, variant))
    relative = [row for row in tested if row.outcomes[variant].relative]
    from_zero = [row for row in tested if not row.outcomes[variant].relative and _effect(row, variant)]
    changes = (
        [" to ".join(dict.fromkeys(_change(row, variant) for row in (relative[0], relative[-1])))] if relative else []
    )
    if from_zero:
        changes.append(f"{'at most ' if len(from_zero) > 1 else ''}{_change(from_zero[-1], variant)}")
    verdicts = Counter(verdict for row in tested if (verdict := row.outcomes[variant].verdict))
    kinds = (
        [f"{verdict} at {number(times)}" for verdict, times in verdicts.items()]
        if len(verdicts) > 1
        else list(verdicts)
    )
    said = f"{name} {', '.join(changes)}, significant at {number(verdicts.total())} of {count}"
    said += f" ({', '.join(kinds)})" if kinds else ""
    steady = sum(_form(row, variant).startswith("always") for row in tested)
    return f"{said}, without variance at {number(steady)}" if steady else said


def _effect(row: Comparison, variant: str) -> float:
    test = row.outcomes[variant].test
    return test.difference.mean if test else 0.0


def _change(row: Comparison, variant: str) -> str:
    """A variant's difference with its interval: `+8 % [+5, +11]`, or `from 0 to 3,036 messages [2,950, 3,120]`."""
    outcome = row.outcomes[variant]
    if outcome.difference:
        return percent(outcome.difference)
    return f"from {describe(row.outcomes[row.baseline].value, row.scale[0])[0]} to {_mean(row, variant)}"


def _mean(row: Comparison, variant: str) -> str:
    factor, unit = row.scale
    mean, interval = describe(row.outcomes[variant].value, factor)
    return f"{with_unit(mean, unit)} {interval}".rstrip()


def _saturated_points(results: Results) -> set[tuple[int, str]]:
    """The points (by number) and variants at which brokers are saturated in most replications."""
    means = results.runs.groupby(["point", "variant"], as_index=False)[KEEPS_UP.metric].mean()
    behind = means[means[KEEPS_UP.metric] >= KEEPS_UP.value]
    return set(zip(behind["point"].tolist(), behind["variant"].tolist(), strict=True))


def _saturation(results: Results) -> Iterator[str]:
    """Sentences about saturated brokers and saturated links, for each variant or over all points of a sweep."""
    runs = results.runs
    for what, metric, named in (("broker", KEEPS_UP.metric, _brokers_named), ("link", "saturated_links", _links_named)):
        behind = runs[runs[metric] > 0] if metric in runs else runs.head(0)
        if behind.empty:
            continue
        if len(results.manifest["points"]) > 1:
            yield _over_points(results, f"{what.capitalize()}s", sorted(set(behind["point"])))
            continue
        for variant in variants_of(results):
            of_variant = behind[behind["variant"] == variant].sort_values("replication")
            if len(of_variant):
                times, count, run = len(of_variant), int((runs["variant"] == variant).sum()), of_variant["run"].iloc[0]
                yield _of_variant(variant, what, list(named(results, run)), times, count)


def _of_variant(variant: str, what: str, named: list[str], times: int, count: int) -> str:
    """What is saturated in the variant's first run with saturated brokers or links."""
    more = len(named) - _NAMED
    others = f" and {number(more)} other{'s' if more > 1 else ''}" if more > 0 else ""
    which = f"a {what} is" if len(named) == 1 else f"{number(len(named))} {what}s are"
    where = "" if count == 1 else f" in {times} of {count} replications{', the first of them' if times > 1 else ''}"
    return f"{variant}: {which} saturated{where}: {', '.join(named[:_NAMED])}{others}. {_WARNING}"


def _links_named(results: Results, run: str) -> Iterator[str]:
    """The saturated links and interfaces of a run, those that can carry least first: since when, and what share they can carry."""
    brokers, links = results.table(run, "brokers"), results.table(run, "links")
    names = brokers.set_index("broker")["name"]
    found = [
        (share, since, f"link {names[source]} → {names[destination]}")
        for source, destination, since, share in links[
            ["source", "destination", "saturated_since", "capacity_share"]
        ].itertuples(index=False, name=None)
    ]
    for column, way in (("interface_in", "into"), ("interface_out", "out of")):
        columns = brokers[["name", f"{column}_saturated_since", f"{column}_capacity_share"]]
        found += [
            (share, since, f"interface {way} broker {name}")
            for name, since, share in columns.itertuples(index=False, name=None)
        ]
    for share, since, name in sorted((each for each in found if pd.notna(each[1])), key=itemgetter(0)):
        yield f"{name} since {quantity(since, 's')} (it can carry {100 * share:.3g} % of what has come since)"


def _brokers_named(results: Results, run: str) -> Iterator[str]:
    """The saturated brokers of a run, the most work first: since when, and what waits there."""
    brokers = results.table(run, "brokers")
    brokers = brokers[brokers["saturated_since"].notna()].sort_values("backlog_seconds", ascending=False, kind="stable")
    yield from (
        f"broker {name} since {quantity(since, 's')} (it can do {100 * share:.3g} % of the work that has arrived since; "
        f"{number(messages)} messages there at the end, {quantity(seconds, 's')} of work undone)"
        for name, since, share, messages, seconds in brokers[
            ["name", "saturated_since", "capacity_share", "backlog", "backlog_seconds"]
        ].itertuples(index=False, name=None)
    )


def _over_points(results: Results, what: str, points: list[int]) -> str:
    axes, all_points = axes_of(results), results.manifest["points"]
    named = "; ".join(points_said(axes, all_points[point]) for point in points[:_NAMED])
    more = f"; and {number(len(points) - _NAMED)} more" if len(points) > _NAMED else ""
    return f"{what} are saturated at {number(len(points))} of {number(len(all_points))} points ({named}{more}). {_WARNING[:-1]} there."
