"""A comparison as tables of text: a table for each metric, a row for each variant, at each point of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from analysis.comparison import (
    Comparison,
    Verdict,
    baseline_of,
    compare_points,
    difference,
    headline_of,
    label,
    variants_of,
)
from analysis.formatting import describe, number, scale
from analysis.sweeps.axes import axes_of
from sim.experiments.results import Results

PROBABILITIES = "p is after Holm's correction, raw p before it."
"""Explains the tables' columns of p values."""
_MARKS = {"better": "✓ better", "worse": "✗ worse"}
"""How verdicts are shown; other verdicts are shown as they are."""


class TableRow(NamedTuple):
    """A variant at a point: its cells, one per head, "" for none; `begins` marks the first row of another point."""

    cells: tuple[str, ...]
    verdict: Verdict
    begins: bool


@dataclass(frozen=True)
class MetricTable:
    """One metric as text; `unit` is that of the means, "" where they have none.

    The first `left` heads are swept keys and the variant. The others are n (replications), the mean, its 95 % confidence interval
    and, where variants are compared, the difference to the baseline (in % with its interval, or `from 0 to …`), the effect (standard
    deviations), p after Holm's correction and before it, and the verdict.
    """

    metric: str
    unit: str
    heads: tuple[str, ...]
    left: int
    rows: list[TableRow]

    @property
    def title(self) -> str:
        """The metric's name in words, with its unit."""
        return f"{label(self.metric)} ({self.unit})" if self.unit else label(self.metric)


def comparison_tables(results: Results) -> list[MetricTable]:
    """A table for each headline metric, without points that have no run."""
    axes, points, several = axes_of(results), results.manifest["points"], len(variants_of(results)) > 1
    heads = (*(axis.name for axis in axes), "variant", "n", "mean", "95 % CI")
    heads += (f"difference to {baseline_of(results)}", "effect", "p", "raw p", "verdict") if several else ()
    found = []
    for metric in headline_of(results):
        compared = compare_points(results, metric)
        means = [abs(outcome.value.mean) for row in compared for outcome in row.outcomes.values() if outcome.value.n]
        factor, unit = scale(compared[0].metric.unit, max(means, default=0.0))
        rows: list[TableRow] = []
        for values, row in zip(points, compared, strict=True):
            at = tuple(axis.text(values[axis.key]) for axis in axes)
            known = {name: outcome for name, outcome in row.outcomes.items() if outcome.value.n}
            for place, (name, outcome) in enumerate(known.items()):
                cells = _cells(row, name, factor)
                rows.append(
                    TableRow(
                        (*at, name, *cells[: len(heads) - len(at) - 1]),
                        outcome.verdict,
                        several and rows != [] and place == 0,
                    )
                )
        found.append(MetricTable(metric, "" if unit in {"–", "count"} else unit, heads, len(axes) + 1, rows))
    return found


def _cells(row: Comparison, variant: str, factor: float) -> tuple[str, ...]:
    outcome = row.outcomes[variant]
    effect, raw = (outcome.test.effect, outcome.test.p) if outcome.test else (None, None)
    return (
        str(outcome.value.n),
        *describe(outcome.value, factor),
        difference(row, variant, factor),
        "" if effect is None else ("+" if effect > 0 else "") + number(effect, 2),
        *("" if p is None else "< 0.001" if p < 0.001 else number(p, 3) for p in (outcome.p, raw)),
        _MARKS.get(outcome.verdict, outcome.verdict),
    )
