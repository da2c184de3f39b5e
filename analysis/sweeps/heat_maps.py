"""Two swept axes at once: a map of means, and one of differences to the baseline."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.charts import CHART_ROWS, INK, Figure, rounded, spec_of
from analysis.comparison import label
from analysis.formatting import number, scale, with_unit
from analysis.sweeps.axes import Axis, points_said
from analysis.sweeps.lines import slug
from sim.metrics import METRICS, Metric

ROW_WIDTH = 44
"""Cells show their numbers if a row of them has at most this many characters."""


def mean_map(
    table: pd.DataFrame, across: Axis, up: Axis, metric: str, variant: str, whole: pd.DataFrame, number_: int
) -> Figure:
    """Draw one variant's means, a cell for each pair of values; the best cell has a frame.

    `table` has columns across.key, up.key and mean, in the metric's unit; `whole` the rows of all variants, which share colours.
    """
    factor, unit = scale(METRICS[metric].unit, whole["mean"].abs().max())
    colours = alt.Scale(
        scheme="viridis",
        reverse=True,
        domain=[float(whole["mean"].min() / factor), float(whole["mean"].max() / factor)],
    )
    best = _best(table["mean"], METRICS[metric])
    texts = [_brief(value / factor) for value in table["mean"]]
    middle = (whole["mean"].min() + whole["mean"].max()) / 2
    chart = _map(table, across, up, rounded(table["mean"] / factor), texts, table["mean"] > middle, best, colours)
    caption = f"In {unit}." if unit not in {"–", "count"} else ""
    if best.any():
        at = points_said([across, up], table[best].iloc[0])
        caption += f" Lowest at {at}: " if METRICS[metric].better == "lower" else f" Highest at {at}: "
        caption += f"{with_unit(number(table['mean'][best].iloc[0] / factor), unit)}."
    return _figure(
        f"heat-{metric}-{number_}-{slug(variant)}", f"{label(metric)}: {variant}", variant, caption, chart, up, across
    )


def difference_map(
    table: pd.DataFrame,
    across: Axis,
    up: Axis,
    metric: str,
    variant: str,
    baseline: str,
    whole: pd.DataFrame,
    number_: int,
) -> Figure:
    """One variant's differences to the baseline in %; blue is better. `table` and `whole` have a column difference."""
    most = float(whole["difference"].abs().max()) or 1.0
    colours = alt.Scale(scheme="blueorange", domain=[-most, most], reverse=METRICS[metric].better == "higher")
    texts = [f"{'+' if value > 0 else ''}{number(value, 1)}" for value in table["difference"]]
    dark = table["difference"].abs() > 0.75 * most
    none = np.zeros(len(table), dtype=np.bool_)
    chart = _map(table, across, up, rounded(table["difference"]), texts, dark, none, colours)
    sense = {"lower": "Blue is better.", "higher": "Blue is better.", "neutral": ""}[METRICS[metric].better]
    caption = f"Paired differences to {baseline} in %. {sense}".rstrip()
    name = f"heat-{metric}-{number_}-{slug(variant)}-difference"
    return _figure(name, f"{label(metric)}: {variant} against {baseline}", variant, caption, chart, up, across)


def fits(across: Axis, up: Axis) -> bool:
    """Whether a map of the two axes is small enough to draw."""
    return len(across.values) * len(up.values) <= CHART_ROWS // 2


def _map(
    table: pd.DataFrame,
    across: Axis,
    up: Axis,
    values: pd.Series,
    texts: list[str],
    dark: pd.Series,
    best: NDArray[np.bool_],
    colours: alt.Scale,
) -> alt.TopLevelMixin:
    shown = pd.DataFrame(
        {
            "x": [across.text(value) for value in table[across.key]],
            "y": [up.text(value) for value in table[up.key]],
            "value": values.to_numpy(),
            "text": texts,
            "dark": dark.to_numpy(),
            "best": best,
        }
    )
    x = alt.X("x:O", sort=[across.text(value) for value in across.values], title=across.name)
    y = alt.Y("y:O", sort=[up.text(value) for value in up.values[::-1]], title=up.name)
    base = alt.Chart(shown).encode(x=x.axis(labelAngle=0, labelOverlap="greedy"), y=y)
    tooltip = [
        alt.Tooltip("x:N", title=across.key),
        alt.Tooltip("y:N", title=up.key),
        alt.Tooltip("text:N", title="value"),
    ]
    legend = alt.Legend(orient="right", gradientLength=140, format=",.3~r", title=None)
    layers = [
        base.mark_rect().encode(color=alt.Color("value:Q", scale=colours, legend=legend), tooltip=tooltip),
        base.transform_filter("datum.best").mark_rect(
            filled=False, stroke="#D55E00", strokeWidth=4, strokeOpacity=1, fillOpacity=0
        ),
    ]
    if max(map(len, texts)) * len(across.values) <= ROW_WIDTH:
        ink = alt.condition("datum.dark", alt.value("#ffffff"), alt.value(INK))
        layers.append(base.mark_text(fontSize=11).encode(text="text:N", color=ink))
    return alt.layer(*layers)


def _brief(value: float) -> str:
    """A number with three significant digits."""
    return number(float(f"{value:.3g}"), max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0)


def _best(means: pd.Series, metric: Metric) -> NDArray[np.bool_]:
    if metric.better == "neutral" or means.min() == means.max():
        return np.zeros(len(means), dtype=np.bool_)
    best = means.min() if metric.better == "lower" else means.max()
    found: NDArray[np.bool_] = (means == best).to_numpy(np.bool_)
    return found


def _figure(
    name: str, title: str, variant: str, caption: str, chart: alt.TopLevelMixin, up: Axis, across: Axis
) -> Figure:
    description = f"{title}, by {across.name} and {up.name}. {caption}".rstrip()
    height = min(420, max(140, 34 * len(up.values)))
    spec = {**spec_of(chart), "height": height}
    return Figure(name, "heat", title, caption.strip(), description, spec, variant=variant)
