"""The report's text and tables about a sweep; the charts are drawn elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.charts import Figure, colour_of
from analysis.comparison import (
    Comparison,
    baseline_of,
    compare,
    difference,
    headline_of,
    label,
    variants_of,
)
from analysis.formatting import describe, number, scale, with_unit
from analysis.page import section
from analysis.replications import precision_said, warm_up_said
from analysis.sweeps.axes import Axis, axes_of, drawn, points_said
from analysis.sweeps.effects import design_effects, factors_of
from analysis.sweeps.sobol import TOTAL, saltelli, sensitivity
from analysis.sweeps.summary import over_points
from sim.base.naming import Raw
from sim.base.units import format_duration
from sim.experiments.results import Results
from sim.metrics import METRICS

_ROWS = 300
"""The most rows of the table of points."""
_LISTED = 12


def sweep_page(results: Results, charts: Sequence[Figure]) -> Raw:
    """The values for the template of a sweep; `charts` are those of `sweep_figures`."""
    axes, metrics = axes_of(results), headline_of(results)
    rules = (("precision", precision_said(results.manifest)), ("warm-up", warm_up_said(results.manifest)))
    return {
        "sections": sections(results, charts),
        "extent": _extent(results),
        "rules": [(name, said) for name, said in rules if said],
        "keys": [(axis.name, _values(axis, drawn(results))) for axis in axes],
        "effects": _effects(results, metrics),
        "table": _table(results, axes, metrics, over_points(results, metrics)),
    }


def sections(results: Results, charts: Sequence[Figure]) -> list[Raw]:
    """The sections with the charts of `sweep_figures`."""
    metrics = headline_of(results)
    shown = []
    for name in ("explore", "series", "lines", "heat", "pareto", "sobol"):
        rows, notes = _sensitivity(results, metrics) if name == "sobol" and saltelli(results) else ([], [])
        found = section(name, charts) | {"rows": rows, "notes": notes}
        if found["figures"] or notes:
            shown.append(found)
    return shown


def point_said(results: Results, point: int) -> str:
    """A point as text: `network.brokers = 20, selection.cluster_size = 5`."""
    return points_said(axes_of(results), results.manifest["points"][point])


def _extent(results: Results) -> str:
    points, variants = len(results.manifest["points"]), variants_of(results)
    said = f"{number(points)} points"
    said += f", {len(variants)} variants" if len(variants) > 1 else ""
    counts = results.runs.groupby(["point", "variant"]).size()
    least, most = int(counts.min()), int(counts.max())
    each = number(most) if least == most else f"{number(least)} to {number(most)}"
    return f"{said}, {each} replication{'s' if most > 1 else ''} of each: {number(len(results.runs))} runs."


def _values(axis: Axis, drawn: bool) -> str:
    values = [axis.text(value) for value in axis.values]
    if drawn and axis.numeric:
        return f"{values[0]} to {values[-1]}, sampled"
    if len(values) > _LISTED:
        ends = f"{values[0]} to {values[-1]}" if axis.numeric else ", ".join(values[:_LISTED]) + ", …"
        return f"{len(values)} values: {ends}"
    return ", ".join(values)


def _sensitivity(results: Results, metrics: Sequence[str]) -> tuple[list[tuple[str, str, str, str, str]], list[str]]:
    """Rows of the table of indices (metric, variant, key, first order, total), and the reasons for missing ones."""
    indices, missing = sensitivity(results, metrics)
    rows = []
    for (metric, variant, key), own in indices.groupby(["metric", "variant", "key"], sort=False):
        orders = (
            own[(own["order"] == TOTAL) == is_total].iloc[0][["index", "low", "high"]] for is_total in (False, True)
        )
        first, total = (
            f"{index} [{low}, {high}]" for index, low, high in ([number(x, 3) for x in row] for row in orders)
        )
        rows.append((label(str(metric)), str(variant), str(key), first, total))
    return rows, missing


def _effects(results: Results, metrics: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Rows of the table of effects (metric, variant, change, effect), none where the sweep is no factorial design."""
    if not factors_of(results):
        return []
    rows = []
    for effect in design_effects(results, metrics):
        metric = METRICS[effect.metric]
        factor, unit = scale(metric.unit, max(map(abs, effect.found.ends)))
        text = " ".join(filter(None, describe(effect.found, factor, signed=True)))
        changes = " × ".join(f"{key}: {before} → {after}" for key, before, after in effect.changes)
        rows.append((label(effect.metric), effect.variant, changes, with_unit(text, unit)))
    return rows


def _table(results: Results, axes: Sequence[Axis], metrics: Sequence[str], summary: pd.DataFrame) -> Raw:
    """The table of points and variants, as many as fit; each cell as text and as its sort key."""
    names, baseline = variants_of(results), baseline_of(results)
    shown = max(1, _ROWS // len(names))
    largest = summary["mean"].abs().groupby(summary["metric"]).max()
    scales = {metric: scale(METRICS[metric].unit, largest[metric]) for metric in metrics if metric in largest}
    rows = []
    for point, values in enumerate(results.manifest["points"][:shown]):
        here = results.at(point)
        if here.runs.empty:
            continue
        found = {row.metric.name: row for row in compare(here, list(scales))}
        runs = here.runs["variant"].value_counts()
        for name in names:
            cells = [_cell(found[metric], name, factor) for metric, (factor, _) in scales.items()]
            rows.append(
                {
                    "point": point,
                    "values": [(axis.text(values[axis.key]), values[axis.key]) for axis in axes],
                    "variant": name,
                    "colour": colour_of(name, names),
                    "runs": int(runs.get(name, 0)),
                    "found": list(_found(results, point)),
                    "cells": cells,
                }
            )
    return {
        "heads": [axis.key for axis in axes],
        "metrics": [
            {"name": metric, "label": label(metric), "unit": "" if unit in {"–", "count"} else unit}
            for metric, (_, unit) in scales.items()
        ],
        "found": [name for name, _ in _found(results, 0)],
        "rows": rows,
        "left": len(results.manifest["points"]) - shown,
        "shown": shown,
        "baseline": baseline if len(names) > 1 else "",
    }


def _found(results: Results, point: int) -> Iterator[tuple[str, str]]:
    """The warm-up and replications determined at a point: a column each in the table of points."""
    precision, warm_up = results.manifest["precision"], results.manifest["warm_up"]
    if precision:
        yield "precise", "yes" if precision["points"][point]["reached"] else "no"
    if warm_up:
        yield "warm-up", format_duration(warm_up[point]["seconds"])


def _cell(row: Comparison, variant: str, factor: float) -> Raw:
    outcome = row.outcomes[variant]
    mean, interval = describe(outcome.value, factor)
    return {
        "mean": mean,
        "interval": interval,
        "difference": difference(row, variant, factor),
        "verdict": outcome.verdict or "unclear",
        "mark": {"better": "✓", "worse": "✗"}.get(outcome.verdict, ""),
        "sorted": outcome.value.mean if outcome.value.n else "",
    }
