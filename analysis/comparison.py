"""Variants of one experiment side by side: means, intervals and paired differences to the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd

from analysis.formatting import describe, scale, with_unit
from sim.experiments.statistics import Interval, mean_interval, paired_difference_percent
from sim.metrics import METRICS, Metric

if TYPE_CHECKING:
    from sim.experiments.results import Results

TOLD = 4
"""How many of the headline metrics the sentences speak of."""

Verdict = Literal["better", "worse", "higher", "lower", ""]


@dataclass(frozen=True)
class Outcome:
    """One metric of one variant: its mean (in the metric's unit) and its paired difference to the baseline (in %).

    `difference` is None for the baseline itself and where it is undefined: no pair of runs, or a baseline of 0.
    `verdict` is "" unless the interval of the difference excludes 0; "higher" and "lower" are said of metrics of which
    neither way is better.
    """

    value: Interval
    difference: Interval | None
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """One metric over all variants, in the order of the scenario."""

    metric: Metric
    outcomes: dict[str, Outcome]

    @property
    def scale(self) -> tuple[float, str]:
        """What to divide the means by, and the unit they are in then; one for all variants."""
        means = [abs(outcome.value.mean) for outcome in self.outcomes.values() if outcome.value.n]
        return scale(self.metric.unit, max(means, default=0.0))


class Texts(NamedTuple):
    """An outcome as text: `1,204`, `[1,180, 1,228]`, `−43 % [−45, −41]`; "" where there is none."""

    mean: str
    interval: str
    difference: str


class SummaryRow(NamedTuple):
    """A row of a summary table: the metric, the unit of its numbers, and the texts of each variant."""

    metric: str
    unit: str
    variants: dict[str, Texts]


def variants_of(results: Results) -> list[str]:
    """The variants' names in the order of the scenario."""
    return list(results.manifest["variants"])


def baseline_of(results: Results) -> str:
    """The variant that the others are compared to."""
    return str(results.manifest["report"]["baseline"])


def headline_of(results: Results) -> list[str]:
    """The metrics that the scenario wants shown first."""
    return [name for name in results.manifest["report"]["metrics"] if name in results.runs]


def metrics_of(results: Results) -> list[str]:
    """All metrics that are defined in some run, in the order of their definitions."""
    return [name for name in METRICS if name in results.runs and results.runs[name].notna().any()]


def by_replication(results: Results, metric: str) -> pd.DataFrame:
    """The metric's values: a row per replication, a column per variant, NaN where it is undefined or the run failed."""
    values: pd.DataFrame = results.runs.pivot(index="replication", columns="variant", values=metric)
    return values.reindex(columns=variants_of(results)).astype(np.float64)


def compare(results: Results, metrics: Sequence[str] | None = None) -> list[Comparison]:
    """Every metric (or those named) of every variant, with 95 % intervals over the replications."""
    baseline = baseline_of(results)
    rows = []
    for name in metrics_of(results) if metrics is None else metrics:
        values = by_replication(results, name)
        outcomes = {}
        for variant in values:
            difference = None
            if variant != baseline:
                difference = mean_interval(paired_difference_percent(values[variant], values[baseline]))
            outcomes[str(variant)] = Outcome(
                mean_interval(values[variant]),
                difference if difference and difference.n else None,
                _verdict(METRICS[name], difference),
            )
        rows.append(Comparison(METRICS[name], outcomes))
    return rows


def _verdict(metric: Metric, difference: Interval | None) -> Verdict:
    if difference is None or not difference.excludes(0):
        return ""
    direction: Verdict = "higher" if difference.mean > 0 else "lower"
    if metric.better == "neutral":
        return direction
    return "better" if direction == metric.better else "worse"


def compare_table(results: Results, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """The comparison as a long table: a row per metric and variant.

    Columns metric, unit, variant, replications, mean, low, high, difference, difference_low, difference_high (%),
    verdict; NaN where there is no interval or no difference.
    """
    nothing = Interval(np.nan, None, None, 0, varies=False)
    rows = []
    for row in compare(results, metrics):
        for variant, outcome in row.outcomes.items():
            value, difference = outcome.value, outcome.difference or nothing
            rows.append(
                {
                    "metric": row.metric.name,
                    "unit": row.metric.unit,
                    "variant": variant,
                    "replications": value.n,
                    "mean": value.mean,
                    "low": value.low,
                    "high": value.high,
                    "difference": difference.mean,
                    "difference_low": difference.low,
                    "difference_high": difference.high,
                    "verdict": outcome.verdict,
                }
            )
    table = pd.DataFrame(rows)
    bounds = ["low", "high", "difference_low", "difference_high"]
    return table.astype(dict.fromkeys(bounds, np.float64)) if rows else table


def summary(results: Results, metrics: Sequence[str] | None = None) -> list[SummaryRow]:
    """The headline metrics (or those named) as text, for a table on a terminal."""
    rows = compare(results, headline_of(results) if metrics is None else metrics)
    return [
        SummaryRow(row.metric.name, row.scale[1], {name: texts(row, name) for name in row.outcomes}) for row in rows
    ]


def texts(row: Comparison, variant: str) -> Texts:
    """A variant's numbers as text, in the unit of the row's scale."""
    outcome = row.outcomes[variant]
    return Texts(*describe(outcome.value, row.scale[0]), percent(outcome.difference) if outcome.difference else "")


def percent(difference: Interval) -> str:
    """A difference as text, with its interval where there is one: `−43 % [−45, −41]`."""
    mean, interval = describe(difference, signed=True)
    return f"{mean} % {interval}".rstrip()


def sentences(results: Results) -> list[str]:
    """What came out, in words: one sentence per variant that is compared, or one about the only variant.

    Each begins with the variant's name and a colon, and speaks of the first four headline metrics.
    """
    baseline, names = baseline_of(results), variants_of(results)
    rows = compare(results, headline_of(results)[:TOLD])
    if names == [baseline]:
        means = [with_unit(texts(row, baseline).mean, row.scale[1]) for row in rows]
        intervals = [texts(row, baseline).interval for row in rows]
        said = [
            " ".join(x).rstrip() for x in zip((label(row.metric.name) for row in rows), means, intervals, strict=True)
        ]
        return [f"{baseline}: {', '.join(said)}."]
    return [f"{name}: {_told(rows, name, baseline)}." for name in names if name != baseline]


def _told(rows: list[Comparison], variant: str, baseline: str) -> str:
    differs, uncertain, same = [], [], []
    for row in rows:
        difference, name = row.outcomes[variant].difference, label(row.metric.name)
        if difference is None:
            continue
        if difference.bounded and not difference.excludes(0):
            uncertain.append(name)
        elif difference.mean == 0:
            same.append(name)
        else:
            differs.append(f"{name} {percent(difference)}")
    told = [f"{', '.join(differs)} against {baseline}"] if differs else []
    told += [f"no certain difference in {', '.join(uncertain)}"] if uncertain else []
    told += [f"the same {', '.join(same)}"] if same else []
    return "; ".join(told) or f"nothing that can be compared with {baseline}"


def label(metric: str) -> str:
    """A metric's name as words."""
    return metric.replace("_", " ")
