"""All charts of a sweep: along its axes, maps of two axes, trade-offs, and sensitivities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.charts import Figure
from analysis.comparison import baseline_of, headline_of, label, variants_of
from analysis.sweeps.axes import Axis, axes_of, drawn
from analysis.sweeps.explorer import explorer
from analysis.sweeps.heat_maps import difference_map, fits, mean_map
from analysis.sweeps.lines import along, cloud, slug
from analysis.sweeps.pareto import DEFAULT, pareto_plot
from analysis.sweeps.series import series_of_points
from analysis.sweeps.sobol import bars, saltelli, sensitivity
from analysis.sweeps.summary import over_points, summarise
from sim.experiments.results import Results

_FEW = 6
"""Up to this many values of a second axis get their own charts or lines."""
MAPPED = 6
"""The most variants that get heat maps."""


def sweep_figures(results: Results, trade_off: tuple[str, str] = DEFAULT) -> list[Figure]:
    """The charts of a results folder with more than one point, in the order of the report; none for a single point."""
    if len(results.manifest["points"]) < 2:
        return []
    axes = axes_of(results)
    metrics, names, baseline = headline_of(results), variants_of(results), baseline_of(results)
    points = over_points(results, list(dict.fromkeys([*metrics, *trade_off])))
    if drawn(results):
        tables = {metric: points[points["metric"] == metric] for metric in metrics}
        charts = [cloud(own, axis, metric, names) for metric, own in tables.items() if len(own) for axis in axes]
    else:
        charts = [
            *line_charts(results.runs, axes, metrics, names),
            *heat_maps(results.runs, axes, metrics, names, baseline),
        ]
    charts = [*explorer(points, axes, metrics, names), *series_of_points(results, axes, metrics), *charts]
    plot = pareto_plot(points, axes, trade_off, names)
    charts += [plot] if plot else []
    if saltelli(results):
        indices, _ = sensitivity(results, metrics)
        for metric, variant in indices[["metric", "variant"]].drop_duplicates().itertuples(index=False):
            charts.append(bars(indices, metric, variant, names.index(variant)))
    return charts


def line_charts(
    runs: pd.DataFrame, axes: Sequence[Axis], metrics: Sequence[str], names: Sequence[str]
) -> Iterator[Figure]:
    """Each metric along each axis, averaged over the others; if one of two axes has few values, along the other, by these.

    `runs` is a table of runs with columns of the axes; `names` are the variants.
    """
    across, by = _split(axes)
    for metric in metrics:
        if by is not None:
            yield from _by(runs, across[0], by, metric, names)
            continue
        tables = [summarise(runs, [axis.key], [metric]) for axis in across]
        whole = pd.concat(tables)
        for axis, table in zip(across, tables, strict=True):
            others = [other.key for other in axes if other is not axis]
            if len(table):
                name = f"line-{metric}-{slug(axis.key)}"
                caption = f"Means over all values of {', '.join(others)} that were run." if others else ""
                yield along(table, axis, metric, names, name, whole, caption=caption)


def heat_maps(
    runs: pd.DataFrame, axes: Sequence[Axis], metrics: Sequence[str], names: Sequence[str], baseline: str | None
) -> Iterator[Figure]:
    """For two axes: each metric's means by variant, and the differences to the baseline, a cell for each pair of values."""
    if len(axes) != 2:
        return
    across, up = sorted(axes, key=lambda axis: len(axis.values), reverse=True)
    if not fits(across, up):
        return
    for metric in metrics:
        whole = summarise(runs, [across.key, up.key], [metric], baseline)
        for place, name in enumerate(names[:MAPPED]):
            table = whole[whole["variant"] == name].reset_index(drop=True)
            if table.empty:
                continue
            yield mean_map(table, across, up, metric, name, whole, place)
            if table["difference"].abs().max() > 0:
                yield difference_map(
                    table.dropna(subset="difference"), across, up, metric, name, str(baseline), whole, place
                )


def _split(axes: Sequence[Axis]) -> tuple[list[Axis], Axis | None]:
    """The axes to draw along, and the one whose values have their own charts."""
    if len(axes) == 2:
        along_, by = sorted(axes, key=lambda axis: (axis.numeric, len(axis.values)), reverse=True)
        if len(by.values) <= _FEW:
            return [along_], by
    return list(axes), None


def _by(runs: pd.DataFrame, axis: Axis, by: Axis, metric: str, names: Sequence[str]) -> Iterator[Figure]:
    """A chart for each value of the second axis; for a single variant one chart with a line for each value."""
    whole = summarise(runs, [axis.key, by.key], [metric])
    if whole.empty:
        return
    name = f"line-{metric}-{slug(axis.key)}"
    if len(names) == 1:
        last = by.key.rpartition(".")[2]  # the full path does not fit into a legend
        said = {value: f"{last} = {by.text(value)}" for value in by.values}
        table = whole.assign(variant=whole[by.key].map(said))
        caption = f"A line for each value of {by.key}."
        yield along(table, axis, metric, list(said.values()), name, whole, caption=caption)
        return
    for place, value in enumerate(by.values):
        table = whole[whole[by.key] == value]
        if len(table):
            title = f"{label(metric)}, {by.said(value)}"
            yield along(table, axis, metric, names, f"{name}-{place}", whole, title)
