"""The explorer of a sweep: any two metrics against each other, and any two axes as a heat map, of the points that are picked."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from analysis.charts import CHART_ROWS, INK, Figure, axis_title, by_colour, rounded, spec_of
from analysis.comparison import label
from analysis.formatting import scale
from analysis.sweeps.axes import Axis
from sim.base.naming import Raw
from sim.metrics import METRICS

_ALL, _NONE = "all", "none"
_CELLS = 40
"""Axes with more values are not mapped."""


def explorer(points: pd.DataFrame, axes: Sequence[Axis], metrics: Sequence[str], names: Sequence[str]) -> list[Figure]:
    """Metrics at all points with what to show: `points` is a table of `over_points`; `names` are the variants.

    None where a chart cannot hold all points.
    """
    table, shown = _wide(points, axes, metrics)
    if table.empty or not shown or len(table) > CHART_ROWS:
        return []
    named = {axis.name: [axis.text(value) for value in axis.values] for axis in axes}
    mapped = [axis.name for axis in axes if len(axis.values) <= _CELLS]
    mapped = [*mapped, "variant"] if len(names) > 1 else mapped
    orders = {**{name: {text: place for place, text in enumerate(texts)} for name, texts in named.items()}}
    orders["variant"] = {name: place for place, name in enumerate(names)}
    params = [
        select("metric", shown, shown[0]),
        select("against", shown, shown[min(1, len(shown) - 1)]),
        *(select(f"only{place}", [_ALL, *texts], _ALL, name) for place, (name, texts) in enumerate(named.items())),
        {"name": "orders", "value": orders},
    ]
    picked = " && ".join(
        f"(only{place} == '{_ALL}' || datum[{name!r}] == only{place})" for place, name in enumerate(named)
    )
    base = (
        alt.Chart(table)
        .transform_filter(picked)
        .transform_calculate(x="datum[against]", y="datum[metric]")
        .transform_filter("isValid(datum.x) && isValid(datum.y)")
    )
    brush = alt.selection_interval(name="brush", encodings=["x", "y"])
    tips = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("point:Q"),
        *(alt.Tooltip(_field(name), title=name) for name in named),
    ]
    inside = alt.when(brush).then(alt.value(0.9)).otherwise(alt.value(0.2))
    free = alt.Scale(zero=False, nice=True)
    colour = by_colour(names)
    if len(names) > 1:
        colour = colour.legend(columns=4, symbolType="circle", symbolOpacity=1)
    marks = base.mark_circle(size=50).encode(
        x=alt.X("x:Q", title=None, scale=free),
        y=alt.Y("y:Q", title=None, scale=free),
        color=colour,
        opacity=inside,
        tooltip=[*tips, *(alt.Tooltip(_field(name, "Q"), title=name, format=",.4~r") for name in shown)],
    )
    title = alt.Title(
        text=alt.ExprRef("metric + ' (up) against ' + against"), anchor="start", fontWeight="normal", color=INK
    )
    parts = [marks.add_params(brush).properties(name="marks", width=380, height=280, title=title)]
    if len(mapped) > 1:
        params += [
            select("across", mapped, mapped[0]),
            select("up", mapped, mapped[1]),
            select("facet", [_NONE, *mapped], mapped[2] if len(mapped) > 2 else _NONE),
        ]
        parts.append(_map(base.transform_filter(brush)))
    spec = spec_of(alt.vconcat(*parts).resolve_scale(color="independent"))
    spec["params"] = [*params, *spec.get("params", [])]
    caption = "Pick what to show below the charts; drag over marks of the upper one to see them alone in the lower one."
    said = f"Means of {len(table)} points and variants: {', '.join(shown)}, by {', '.join(named)}."
    spec["autosize"] = {"type": "pad", "resize": True}  # other panels need another width
    return [Figure("explore", "explore", "all points and variants", caption, said, spec)]


def _wide(points: pd.DataFrame, axes: Sequence[Axis], metrics: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """A row for each point and variant, with columns of text for the axes and of means for metrics, and the latter's names."""
    means = points.pivot(index=["point", "variant"], columns="metric", values="mean")
    texts = points.drop_duplicates(["point", "variant"]).set_index(["point", "variant"])
    table = pd.DataFrame({axis.name: [axis.text(value) for value in texts[axis.key]] for axis in axes}, texts.index)
    shown = []
    for metric in (name for name in metrics if name in means):
        factor, unit = scale(METRICS[metric].unit, means[metric].abs().max())
        shown.append(axis_title(label(metric), unit))
        table[shown[-1]] = rounded(means[metric] / factor)
    return table.reset_index(), shown


def select(name: str, options: Sequence[str], value: str, said: str = "") -> Raw:
    """A parameter that readers pick from a list."""
    return {"name": name, "value": value, "bind": {"input": "select", "options": list(options), "name": said or name}}


def _field(name: str, kind: str = "N") -> alt.FieldName | str:
    """A field whose name may hold dots, brackets and colons."""
    escaped = "".join(f"\\{letter}" if letter in ".[]:" else letter for letter in name)
    return f"{escaped}:{kind}"


def _map(base: alt.Chart) -> alt.TopLevelMixin:
    """Cells by two axes, in a panel for each value of a third."""
    axis = alt.Axis(labelAngle=0, labelOverlap=True, labelLimit=90)
    colours = alt.Scale(scheme="viridis", reverse=True)
    cells = (
        base.transform_calculate(
            across_="datum[across]",
            up_="datum[up]",
            panel=f"facet == '{_NONE}' ? '' : facet + ' = ' + datum[facet]",
            place=f"facet == '{_NONE}' ? 0 : orders[facet][datum[facet]]",
        )
        .transform_aggregate(mean="mean(y)", groupby=["across_", "up_", "panel", "place"])
        .transform_calculate(column="orders[across][datum.across_]", row="-orders[up][datum.up_]")
        .mark_rect()
        .encode(
            x=alt.X("across_:O", title=None, axis=axis, sort=alt.EncodingSortField("column", op="min")),
            y=alt.Y("up_:O", title=None, axis=axis, sort=alt.EncodingSortField("row", op="min")),
            color=alt.Color("mean:Q", scale=colours, legend=alt.Legend(title=None, orient="right", format=",.3~r")),
            tooltip=[
                alt.Tooltip("across_:N", title="across"),
                alt.Tooltip("up_:N", title="up"),
                alt.Tooltip("mean:Q", format=",.4~r"),
            ],
        )
    )
    said = alt.Title(
        text=alt.ExprRef("metric + ' by ' + across + ' (across) and ' + up + ' (up)'"),
        anchor="start",
        fontWeight="normal",
        color=INK,
    )
    panels: alt.TopLevelMixin = cells.properties(width=200, height=160).facet(
        facet=alt.Facet("panel:N", title=None, sort=alt.EncodingSortField("place", op="min")), columns=3, title=said
    )
    return panels
