"""Trade-offs: the Pareto front, the points and variants that no other one beats in all metrics at once."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.charts import INK, Figure, axis_title, by_colour, rounded, spec_of
from analysis.comparison import label
from analysis.formatting import number, scale, with_unit
from analysis.sweeps.axes import Axis, points_said
from sim.base.errors import ResultsError, unknown_of_many
from sim.metrics import METRICS

DEFAULT = ("notification_delay", "notification_overhead")
_MARKS = 2000
"""The most marks that are drawn, those of the front first."""
CROSSED = 60
"""With more marks than this, only those of the front have confidence intervals."""
LABELLED = 8
"""The most members of the front that the caption lists."""


def trade_off(text: str) -> tuple[str, str]:
    """Parse two metrics, `one,other`. Raises ResultsError where they are not two metrics with a better direction."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in METRICS:
            raise ResultsError(f"--pareto: {unknown_of_many('metric', name, list(METRICS))}")
        if METRICS[name].better == "neutral":
            raise ResultsError(f"--pareto: {name}: is neither better when higher nor when lower")
    if len(set(names)) != 2 or len(names) != 2:
        raise ResultsError(f"--pareto: expected two metrics, such as {','.join(DEFAULT)}, found '{text}'")
    return names[0], names[1]


def pareto(table: pd.DataFrame, metrics: Sequence[str]) -> NDArray[np.bool_]:
    """Mark the rows that no other row dominates (as good in all metrics, and better in one). Equal rows are all kept.

    `table` has a column per metric; the better direction is that of `METRICS`, or lower if neutral. A row with NaN is never on the
    front.
    """
    signs = [-1.0 if METRICS[metric].better == "higher" else 1.0 for metric in metrics]
    costs = table[list(metrics)].to_numpy(np.float64) * signs
    left = np.flatnonzero(~np.isnan(costs).any(axis=1))
    left = left[np.lexsort(costs[left].T[::-1])]  # rows sorted before it cannot be dominated by it
    front = np.zeros(len(table), dtype=np.bool_)
    while left.size:
        first = costs[left[0]]
        front[left[0]] = True
        dominated = (costs[left] >= first).all(axis=1) & (costs[left] > first).any(axis=1)
        dominated[0] = True  # done
        left = left[~dominated]
    return front


def pareto_plot(
    table: pd.DataFrame, axes: Sequence[Axis], metrics: tuple[str, str] = DEFAULT, names: Sequence[str] = ()
) -> Figure | None:
    """Two metrics against each other at all points: the front joined by a line, dominated marks faded, intervals as thin crosses.

    `table` is one of `summarise` by point, with the columns of the axes; `names` are the variants. None where no row has both
    metrics.
    """
    keys = ["point", *(axis.key for axis in axes), "variant"]
    wide = table[table["metric"].isin(metrics)].pivot(index=keys, columns="metric", values=["mean", "low", "high"])
    if not {("mean", metric) for metric in metrics} <= set(wide.columns):
        return None
    means = pd.DataFrame(wide["mean"]).dropna()
    if means.empty:
        return None
    front = pareto(means, metrics)
    kept = means.index[front].append(means.index[~front][: max(0, _MARKS - int(front.sum()))])
    at = kept.to_frame(index=False)
    scales = [scale(METRICS[metric].unit, means[metric].abs().max()) for metric in metrics]
    shown = pd.DataFrame(
        {
            "point": at["point"],
            "variant": at["variant"],
            "at": [points_said(axes, values) for values in at.to_dict("records")],
            "front": np.arange(len(kept)) < front.sum(),
        }
    )
    for place, metric, (factor, _) in zip("xy", metrics, scales, strict=True):
        for column in ("mean", "low", "high"):
            values = wide[column, metric].reindex(kept).clip(lower=0) / factor
            shown[f"{place}_{column}"] = rounded(values).to_numpy()
    order = shown.sort_values(["x_mean", "y_mean"])
    members = order[order["front"]]
    titles = [axis_title(label(metric), unit) for metric, (_, unit) in zip(metrics, scales, strict=True)]
    chart = _drawn(shown, members, names or list(dict.fromkeys(shown["variant"])), titles)
    texts = (
        [with_unit(number(float(value)), unit) for value in members[f"{place}_mean"]]
        for place, (_, unit) in zip("xy", scales, strict=True)
    )
    listed = [
        f"{variant} at {at} ({x}, {y})"
        for variant, at, x, y in zip(members["variant"], members["at"], *texts, strict=True)
    ]
    more = f"; and {len(members) - LABELLED} more" if len(members) > LABELLED else ""
    caption = (
        "The line joins the Pareto front: marks that no other one beats in both metrics. Numbers are those of the points, crosses are "
        f"95\u00a0% confidence intervals. The front: {'; '.join(listed[:LABELLED])}{more}."
    )
    left = len(means) - len(shown)
    caption += f" {left:,} dominated ones are not drawn." if left else ""
    title = f"{label(metrics[1])} against {label(metrics[0])}"
    return Figure(
        f"pareto-{metrics[0]}-{metrics[1]}",
        "pareto",
        title,
        caption,
        f"{title}. {caption}",
        {**spec_of(chart), "height": 380},
    )


def _drawn(
    shown: pd.DataFrame, members: pd.DataFrame, names: Sequence[str], titles: Sequence[str]
) -> alt.TopLevelMixin:
    x, y = (
        alt.X("x_mean:Q", title=titles[0], scale=alt.Scale(zero=False, nice=True)),
        alt.Y("y_mean:Q", title=titles[1], scale=alt.Scale(zero=False, nice=True)),
    )
    faded = alt.condition("datum.front", alt.value(1.0), alt.value(0.25))
    base = alt.Chart(shown).encode(x=x, y=y, color=by_colour(names), opacity=faded)
    crossed = "true" if len(shown) <= CROSSED else "datum.front"
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("point:Q"),
        alt.Tooltip("at:N", title="at"),
        alt.Tooltip("x_mean:Q", title=titles[0], format=",.4~r"),
        alt.Tooltip("y_mean:Q", title=titles[1], format=",.4~r"),
    ]
    return alt.layer(
        alt.Chart(members[["x_mean", "y_mean"]])
        .mark_line(color=INK, strokeWidth=1.2, strokeDash=[4, 3])
        .encode(x=x, y=y, order="x_mean:Q"),
        base.transform_filter(f"isValid(datum.x_low) && {crossed}")
        .mark_rule(strokeWidth=0.8)
        .encode(x=alt.X("x_low:Q", title=titles[0]), x2="x_high:Q"),
        base.transform_filter(f"isValid(datum.y_low) && {crossed}")
        .mark_rule(strokeWidth=0.8)
        .encode(y=alt.Y("y_low:Q", title=titles[1]), y2="y_high:Q"),
        base.mark_circle(size=64).encode(tooltip=tooltip),
        alt.Chart(members[["x_mean", "y_mean", "point"]])
        .mark_text(dx=7, dy=-7, align="left", fontSize=10, color=INK)
        .encode(x=x, y=y, text="point:Q"),
    )
