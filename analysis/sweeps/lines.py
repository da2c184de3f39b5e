"""Metrics along one swept axis: lines for numbers, rows of points for categories, scatter plots for samples."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import Figure, axis_title, by_colour, by_dash, rounded, spec_of
from analysis.comparison import label
from analysis.formatting import number, scale, with_unit
from analysis.sweeps.axes import Axis
from sim.metrics import METRICS

BARS = 12
"""Up to this many values, confidence intervals are drawn as bars, otherwise as bands."""
_BINS = 8
_MARKS = 1500
"""The most points of a sample that a chart draws, evenly chosen."""
_STEEP = 50


def along(
    table: pd.DataFrame,
    axis: Axis,
    metric: str,
    names: Sequence[str],
    name: str,
    whole: pd.DataFrame,
    title: str = "",
    caption: str = "",
) -> Figure:
    """A metric along an axis, a line (or, in rows of categories, a point) per variant with its 95 % confidence intervals.

    `table` has columns axis.key, variant (one of `names`), mean, low and high, in the metric's unit. `whole` has all that the
    charts of this metric show, as they share one range.
    """
    factor, unit = scale(METRICS[metric].unit, whole["mean"].abs().max())
    shown = pd.DataFrame(
        {
            "variant": table["variant"],
            "said": [axis.text(value) for value in table[axis.key]],
            **{column: rounded(table[column].clip(lower=0) / factor) for column in ("mean", "low", "high")},
        }
    )
    title = title or f"{label(metric)} by {axis.key}"
    value = _scale(whole, factor)
    shown["low"] = shown["low"].clip(lower=float(value.domain[0]))
    height = 240 if axis.numeric else len(axis.values) * (14 + 12 * len(names)) + 10
    if axis.numeric:
        shown = shown.assign(x=rounded(table[axis.key].astype(np.float64) / axis.scale[0]))
    spec = {**spec_of(_drawing(shown, axis, metric, names, value, unit)), "height": height}
    return Figure(name, "lines", title, caption, _described(shown, axis, metric, unit), spec)


def cloud(table: pd.DataFrame, axis: Axis, metric: str, names: Sequence[str]) -> Figure:
    """A metric at the points of a sample against a swept key, with means over groups of equally many neighbours.

    `table` has columns axis.key, variant and mean; categories are groups themselves, numbers are divided into up to 8.
    """
    whole = table.assign(low=np.nan, high=np.nan)
    factor, unit = scale(METRICS[metric].unit, whole["mean"].abs().max())
    each = max(1, _MARKS // len(names))
    table = table.groupby("variant", sort=False, group_keys=False)[table.columns.tolist()].apply(
        lambda own: own.iloc[:: -(-len(own) // each)]
    )
    if not axis.numeric:
        means = table.groupby([axis.key, "variant"], sort=False)["mean"].mean().reset_index()
        bare = means.assign(low=np.nan, high=np.nan)
        caption = "Means over all points of the sample."
        return along(bare, axis, metric, names, f"line-{metric}-{slug(axis.key)}", whole, caption=caption)
    shown = pd.DataFrame(
        {
            "variant": table["variant"],
            "x": rounded(table[axis.key].astype(np.float64) / axis.scale[0]),
            "mean": rounded(table["mean"] / factor),
        }
    )
    groups = pd.qcut(shown["x"].rank(method="dense"), _BINS, labels=False, duplicates="drop")
    lines = shown.groupby(["variant", groups.rename("group")], sort=False)[["x", "mean"]].mean().reset_index()
    y = alt.Y("mean:Q", title=axis_title(label(metric), unit), scale=_scale(whole, factor))
    axis_x = axis.x()
    colour = by_colour(names)
    chart = alt.layer(
        alt.Chart(shown).mark_circle(size=18, opacity=0.3).encode(x=axis_x, y=y, color=colour),
        alt.Chart(lines.drop(columns="group"))
        .mark_line(strokeWidth=2.2)
        .encode(x=axis_x, y=y, color=colour, strokeDash=by_dash(names)),
    )
    return Figure(
        f"line-{metric}-{slug(axis.key)}",
        "lines",
        f"{label(metric)} by {axis.key}",
        "Marks are the points of the sample, lines are means over groups of equally many neighbours along this axis.",
        _described(lines.assign(said=[number(x) for x in lines["x"]]), axis, metric, unit),
        {**spec_of(chart), "height": 240},
    )


def slug(text: str) -> str:
    """Turn a text into part of a file name."""
    return "".join(c if c.isalnum() or c in "_-" else "-" for c in text)[:60]


def _drawing(
    shown: pd.DataFrame, axis: Axis, metric: str, names: Sequence[str], value: alt.Scale, unit: str
) -> alt.TopLevelMixin:
    """Lines over numbers, points in rows for categories, with confidence intervals."""
    title = axis_title(label(metric), unit)
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("said:N", title=axis.key),
        *(alt.Tooltip(f"{column}:Q", title=column, format=",.4~r") for column in ("mean", "low", "high")),
    ]
    if axis.numeric:
        few = len(axis.values) <= BARS
        base = alt.Chart(shown).encode(x=axis.x(), color=by_colour(names))
        bounded = base.transform_filter("isValid(datum.low)")
        around = bounded.mark_rule(strokeWidth=1.6, opacity=0.75) if few else bounded.mark_area(opacity=0.18)
        mean = alt.Y("mean:Q", title=title, scale=value)
        return alt.layer(
            around.encode(y=alt.Y("low:Q", scale=value, title=title), y2="high:Q"),
            base.mark_line(strokeWidth=1.8, point={"size": 34 if few else 12}).encode(
                y=mean, strokeDash=by_dash(names), tooltip=tooltip
            ),
        )
    sort = [axis.text(value) for value in axis.values]
    y = alt.Y("said:N", title=axis.name, axis=alt.Axis(labelLimit=110), sort=sort)
    base = alt.Chart(shown).encode(y=y, color=by_colour(names), yOffset=alt.YOffset("variant:N", sort=list(names)))
    around = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    return alt.layer(
        around.encode(x=alt.X("low:Q", scale=value, title=title), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("mean:Q", title=title, scale=value), tooltip=tooltip
        ),
    )


def _scale(whole: pd.DataFrame, factor: float) -> alt.Scale:
    """The scale of a metric's charts, whose values are divided by `factor`: logarithmic where they span a wide range."""
    if whole["mean"].min() > 0 and whole["mean"].max() > _STEEP * whole["mean"].min():
        return alt.Scale(type="log", domain=_range(whole, factor, positive=True))
    return alt.Scale(zero=False, nice=True, domain=_range(whole, factor))


def _range(table: pd.DataFrame, factor: float, positive: bool = False) -> list[float]:
    """The range of a chart of the table: from 0 if that wastes less than half of it."""
    low = float(table[["mean", "low"]].min().min()) / factor
    high = float(table[["mean", "high"]].max().max()) / factor
    if positive:
        least = float(table["mean"].min()) / factor
        return [low if low > 0.5 * least else 0.8 * least, high]
    if low < high / 2 or low == high:
        return [0.0, high or 1.0]
    return [low, high]


def _described(shown: pd.DataFrame, axis: Axis, metric: str, unit: str) -> str:
    """The range of each variant along the axis, in words."""
    texts = []
    for variant, own in shown.groupby("variant", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        ends = (f"{with_unit(number(end['mean']), unit)} at {end['said']}" for end in (first, last))
        texts.append(f"{variant}: {', '.join(ends)}")
    return f"{label(metric)} along {axis.name} by variant. {'; '.join(texts)}."
