"""Variants of one experiment side by side: means, confidence intervals and paired differences to the baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.formatting import describe, scale
from sim.base.naming import Raw
from sim.experiments.results import Results
from sim.experiments.statistics import (
    Interval,
    Test,
    holm,
    mean_interval,
    paired_difference_percent,
    paired_t,
    welch_percent,
    welch_t,
)
from sim.metrics import METRICS, Metric

SIGNIFICANT = 0.05
"""The largest p, after Holm's correction, at which a difference is significant."""
PAIR = ("workload", "seed", "replication")
"""Runs that agree in these columns (where present) share their random numbers."""
_FLOATS = ("low", "high", "difference", "difference_low", "difference_high", "effect", "p", "p_raw")

Verdict = Literal["better", "worse", "higher", "lower", ""]


@dataclass(frozen=True)
class VariantOutcome:
    """One metric of one variant: its mean (in the metric's unit) and the test of its difference to the baseline.

    The test's difference is in % of the baseline, or in the metric's unit (`relative` is false) where some run of the baseline has
    0. `test` is None for the baseline itself and where either is undefined. `p` is its p value after Holm's correction for all
    comparisons with the baseline, `test.p` the raw one. `verdict` is "" unless p is 5 % or less, and "higher" or "lower" for
    metrics without a better direction.
    """

    value: Interval
    test: Test | None = None
    p: float | None = None
    verdict: Verdict = ""
    relative: bool = True

    @property
    def difference(self) -> Interval | None:
        """The difference to the baseline in %, with its unadjusted 95 % confidence interval; None where the baseline is 0."""
        return self.test.difference if self.test and self.relative else None


@dataclass(frozen=True)
class Comparison:
    """One metric over all variants, in the order of the scenario."""

    metric: Metric
    outcomes: dict[str, VariantOutcome]
    baseline: str

    @property
    def scale(self) -> tuple[float, str]:
        """The divisor of the means and the resulting unit, the same for all variants."""
        means = [abs(outcome.value.mean) for outcome in self.outcomes.values() if outcome.value.n]
        return scale(self.metric.unit, max(means, default=0.0))


class Texts(NamedTuple):
    """An outcome as text: `1,204`, `[1,180, 1,228]`, `−43 % [−45, −41]`; "" where there is none."""

    mean: str
    interval: str
    difference: str


def variants_of(results: Results) -> list[str]:
    """The variants' names in the order of the scenario."""
    return list(results.manifest["variants"])


def baseline_of(results: Results) -> str:
    """The variant that the others are compared to."""
    return str(results.manifest["report"]["baseline"])


def headline_of(results: Results) -> list[str]:
    """The headline metrics of the scenario."""
    return [name for name in results.manifest["report"]["metrics"] if name in results.runs and name in METRICS]


def metrics_of(results: Results) -> list[str]:
    """All metrics that are defined in some run, in the order of their definitions."""
    return [name for name in METRICS if name in results.runs and results.runs[name].notna().any()]


def by_replication(results: Results, metric: str) -> pd.DataFrame:
    """The metric's values: a column per variant, NaN where undefined or failed, and a row per set of runs that share random numbers.

    The index is the point and, by name, those columns of `PAIR` that the table of runs has.
    """
    pair = [column for column in PAIR if column in results.runs]
    values: pd.DataFrame = results.runs.pivot(index=["point", *pair], columns="variant", values=metric)
    return values.reindex(columns=variants_of(results)).astype(np.float64)


def compare(results: Results, metrics: Sequence[str] | None = None) -> list[Comparison]:
    """Compare metrics (by default all) of all variants, with 95 % confidence intervals and tests over one point's replications."""
    names = metrics_of(results) if metrics is None else metrics
    return [_compared(results, name, by_replication(results, name).to_numpy()) for name in names]


def compare_points(results: Results, metric: str) -> list[Comparison]:
    """Compare one metric of all variants at each point of a sweep, in order."""
    frame = by_replication(results, metric)
    rows, values = frame.groupby(level="point").indices, frame.to_numpy()
    return [_compared(results, metric, values[rows.get(n, [])]) for n in range(len(results.manifest["points"]))]


def _compared(results: Results, metric: str, values: NDArray[np.float64]) -> Comparison:
    """One metric at one point; values have a column per variant."""
    columns, baseline = dict(zip(variants_of(results), values.T, strict=True)), baseline_of(results)
    tests = {variant: _test(x, columns[baseline]) for variant, x in columns.items() if variant != baseline}
    adjusted = holm([np.nan if test is None or test.p is None else test.p for test, _ in tests.values()])
    p = {variant: None if np.isnan(one) else float(one) for variant, one in zip(tests, adjusted, strict=True)}
    outcomes = {}
    for variant, x in columns.items():
        test, relative = tests.get(variant, (None, True))
        adjusted_p = p.get(variant)
        verdict: Verdict = ""
        if test is not None and adjusted_p is not None and adjusted_p <= SIGNIFICANT:
            verdict = direction(METRICS[metric], test)
        outcomes[variant] = VariantOutcome(mean_interval(x), test, adjusted_p, verdict, relative)
    return Comparison(METRICS[metric], outcomes, baseline)


def _test(values: NDArray[np.float64], baseline: NDArray[np.float64]) -> tuple[Test | None, bool]:
    """The test of the difference, and whether that is in % of the baseline.

    Paired, or of the means where no runs share their random numbers. If the baseline of a pair, or its mean, is 0, the difference
    is in the metric's unit, as percentages would represent only the other pairs.
    """
    pairs = ~np.isnan(values) & ~np.isnan(baseline)
    relative = bool((baseline[pairs] != 0).all() if pairs.any() else np.nansum(baseline) != 0)
    if not pairs.any():
        test = (welch_percent if relative else welch_t)(values, baseline)
    elif relative:
        test = paired_t(paired_difference_percent(values, baseline), 0.0)
    else:
        test = paired_t(values, baseline)
    return (test if test.difference.n else None), relative


def direction(metric: Metric, test: Test) -> Verdict:
    """The direction of a difference, significant or not."""
    way: Verdict = "higher" if test.difference.mean > 0 else "lower"
    if metric.better == "neutral":
        return way
    return "better" if way == metric.better else "worse"


def compare_table(results: Results, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """The comparison as a long table: a row per metric, point and variant.

    Columns metric, unit, those of a sweep (point and the swept keys), variant, replications, mean, low, high, difference,
    difference_low, difference_high (%), effect, p (after Holm's correction), p_raw, test ("paired", "welch" or ""), verdict; NaN
    where there is no confidence interval, difference in % or test. Holm's correction is over the variants of one metric at one point.
    """
    swept = bool(results.manifest["parameters"])
    rows = [
        {"metric": name, "unit": row.metric.unit, **at, "variant": variant, **_numbers(outcome)}
        for name in (metrics_of(results) if metrics is None else metrics)
        for point, row in enumerate(compare_points(results, name))
        for at in [{"point": point, **results.manifest["points"][point]} if swept else {}]
        for variant, outcome in row.outcomes.items()
    ]
    table = pd.DataFrame(rows)
    return table.astype(dict.fromkeys(_FLOATS, np.float64)) if rows else table


def records(table: pd.DataFrame) -> list[Raw]:
    """The rows of a table as JSON, with null for missing values."""
    found: list[Raw] = json.loads(table.to_json(orient="records", double_precision=15))
    return found


def _numbers(outcome: VariantOutcome) -> Raw:
    value, difference, test = outcome.value, outcome.difference, outcome.test
    return {
        **value.as_json(),
        "difference": difference.mean if difference else None,
        "difference_low": difference.low if difference else None,
        "difference_high": difference.high if difference else None,
        "effect": test.effect if test else None,
        "p": outcome.p,
        "p_raw": test.p if test else None,
        "test": ("paired" if test.paired else "welch") if test else "",
        "verdict": outcome.verdict,
    }


def texts(row: Comparison, variant: str) -> Texts:
    """A variant's numbers as text, in the unit of the row's scale."""
    factor, _ = row.scale
    return Texts(*describe(row.outcomes[variant].value, factor), difference(row, variant, factor))


def difference(row: Comparison, variant: str, factor: float) -> str:
    """A variant's difference to the baseline as text: in %, or `from 0 to 3,036` where the baseline is 0; "" where there is none.

    The means are divided by `factor`.
    """
    outcome = row.outcomes[variant]
    if outcome.test is None or (not outcome.relative and outcome.test.difference.mean == 0):
        return ""
    if outcome.relative:
        return percent(outcome.test.difference)
    before, after = (describe(row.outcomes[name].value, factor)[0] for name in (row.baseline, variant))
    return f"from {before} to {after}"


def percent(difference: Interval) -> str:
    """A difference as text, with its confidence interval where there is one: `−43 % [−45, −41]`."""
    mean, interval = describe(difference, signed=True)
    return f"{mean} % {interval}".rstrip()


def method(results: Results) -> str:
    """A sentence on how a comparison was computed: confidence intervals, differences, and the meaning of significant."""
    baseline = baseline_of(results)
    others = [name for name in variants_of(results) if name != baseline]
    counts = results.runs.groupby(["point", "variant"]).size()
    if not len(counts):
        return "There are no runs."
    least, most = counts.min(), counts.max()
    said = f"Means of {most if least == most else f'{least} to {most}'} replications with 95 % confidence intervals"
    if most == 1:
        said = "Values of single replications"
    if others:
        said += f"; differences to {baseline} in %, {_pairing(results, others, baseline)}"
        said += f"; significant means p ≤ {SIGNIFICANT}"
    if len(others) > 1:
        said += f" after Holm's correction for {len(others)} comparisons"
    if others and len(results.manifest["points"]) > 1:
        said += " at each point (by chance alone up to 1 point in 20)"
    return f"{said}."


def _pairing(results: Results, others: Sequence[str], baseline: str) -> str:
    pair = ["point", *(column for column in PAIR if column in results.runs)]
    runs = {variant: set(own[pair].itertuples(index=False)) for variant, own in results.runs.groupby("variant")}
    alone = [name for name in others if runs.get(name, set()).isdisjoint(runs.get(baseline, set()))]
    if not alone:
        return "paired"
    shared = "point, workload" if len(results.manifest["points"]) > 1 else "workload"
    why = f"by Welch's test, since no runs share their {shared}, seed and replication"
    return f"unpaired, {why}" if len(alone) == len(others) else f"paired; those of {', '.join(alone)} unpaired, {why}"


def significance(comparisons: int) -> str:
    """The definition of significant, in words."""
    return f"significant at 5 % after Holm's correction for {comparisons} comparisons"


def label(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")
