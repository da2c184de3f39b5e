"""Metrics over time at any point of a sweep: readers pick the point, another one beside it, and the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import altair as alt
import pandas as pd

from analysis.charts import INK, Figure, axis_title, by_colour, rounded, spec_of
from analysis.comparison import label, variants_of
from analysis.figures import unit_over_time, zoom
from analysis.formatting import number, scale
from analysis.sweeps.axes import Axis, points_said
from analysis.sweeps.explorer import select
from analysis.tables import failing, over_time
from sim.experiments.results import Results
from sim.metrics import METRICS

_SERIES = 600
"""The most pairs of point and variant that are drawn."""
_RUNS = 3000
"""The most runs that are read: of many points, only the first replications."""
_ROWS = 24_000
"""The most rows of the data; lines of many points have fewer of them each, at least `_LEAST` and at most `_MOST`."""
_LEAST, _MOST = 20, 120
_MERGED = " Neighbouring windows are merged; bands are then from the 10 % to the 90 % quantile of single ones."
_NONE = "none"


def series_of_points(results: Results, axes: Sequence[Axis], metrics: Sequence[str]) -> list[Figure]:
    """A chart of metrics over time at the point that is picked, or at two; none where no run has kept its time series."""
    names, texts = variants_of(results), _points(results, axes)
    shown = dict(list(texts.items())[: max(1, _SERIES // len(names))])
    windows = min(_MOST, max(_LEAST, _ROWS // (len(shown) * len(names))))
    table = _series(results, list(shown), metrics, windows, max(1, _RUNS // (len(shown) * len(names))))
    if table.empty:
        return []
    rows, drawn, unit = _wide(table, metrics)
    picked = [shown[point] for point in rows["point"].unique()]
    rows["point"] = rows["point"].map(shown)
    failed = _failing(results, shown, unit[0])
    params = [
        select("metric", drawn, drawn[0]),
        select("point", picked, picked[0]),
        select("beside", [_NONE, *picked], _NONE),
    ]
    bounded = any(f"{title} low" in rows for title in drawn)
    spec = spec_of(_chart(names, unit[1], bounded, bool(len(failed))))
    spec["params"] = [*params, *spec.get("params", [])]
    records = rows.to_dict("records")
    spec["datasets"] = {
        "windows": [{key: None if value != value else value for key, value in row.items()} for row in records]
    }
    if len(failed):
        spec["datasets"]["faults"] = failed.to_dict("records")
    left = len(texts) - len(picked)
    caption = "Pick a metric and a point below the chart, and perhaps another one beside it, whose lines are dotted."
    caption += _MERGED if table["merged"].any() else ""
    caption += f" Points that are not shown: {number(left)}." if left else ""
    said = f"{', '.join(drawn)} over time by variant, at {number(len(picked))} points."
    return [Figure("series", "series", "any point over time", caption, said, {**spec, "height": 280})]


def _points(results: Results, axes: Sequence[Axis]) -> dict[int, str]:
    """The points by number, as readers pick them."""
    return {
        point: f"{point}: {points_said(axes, values)}"
        for point, values in enumerate(results.manifest["points"])
        if (results.runs["point"] == point).any()
    }


def _series(
    results: Results, points: Sequence[int], metrics: Sequence[str], windows: int, replications: int
) -> pd.DataFrame:
    """The tables of `over_time` of all points, with columns point, and whether windows are merged."""
    frames = []
    for point in points:
        one = results.at(point)
        kept = one.runs.sort_values("replication").groupby("variant").head(replications)
        kept = kept[[_is_kept(results, run) for run in kept["run"]]]
        if len(kept):
            few = replace(one)
            few.__dict__["runs"] = kept.reset_index(drop=True)
            longest = len(results.table(kept["run"].iloc[0], "timeseries"))
            frames.append(over_time(few, metrics, windows).assign(point=point, merged=longest > windows))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _is_kept(results: Results, run: str) -> bool:
    return (results.folder / "runs" / run).is_dir() and results.has_table(run, "timeseries")


def _wide(table: pd.DataFrame, metrics: Sequence[str]) -> tuple[pd.DataFrame, list[str], tuple[float, str]]:
    """A row per point, variant and window, with columns for each metric's mean and ends; the metrics' titles; the scale of time."""
    span = scale("s", table["end"].max() / 3)
    keys = ["point", "variant", "start", "end", "warm_up"]
    means, titles = table.pivot(index=keys, columns="metric", values=["mean", "low", "high"]), []
    rows = means.index.to_frame(index=False)
    rows = pd.DataFrame(
        {
            "point": rows["point"],
            "variant": rows["variant"],
            "time": rounded((rows["start"] + rows["end"]) / 2 / span[0]),
            "end": rounded(rows["end"] / span[0]),
            "warm_up": rows["warm_up"].astype(bool),
        }
    )
    for name in (name for name in metrics if name in means["mean"]):
        factor, unit = unit_over_time(METRICS[name], means["mean"][name].abs().max())
        titles.append(axis_title(label(name), unit))
        for column, said in (("mean", ""), ("low", " low"), ("high", " high")):
            values = means[column][name].reset_index(drop=True)
            if column == "mean" or values.notna().any():
                rows[titles[-1] + said] = rounded(values.clip(lower=0) / factor)
    return rows, titles, span


def _failing(results: Results, points: dict[int, str], span: float) -> pd.DataFrame:
    """When something fails at each point: columns point, from, to, what, brokers, share (of its runs)."""
    frames = []
    for point, text in points.items():
        one = results.at(point)
        if not all(_is_kept(results, run) for run in one.runs["run"]):
            continue
        spans = failing(one).nlargest(_LEAST, "share")
        end = max(one.table(run, "timeseries")["end"].max() for run in one.runs["run"].head(1))
        lasts = {"from": spans["start"] / span, "to": spans["end"].clip(upper=end) / span}
        frames.append(spans.assign(point=text, **lasts)[["point", "from", "to", "what", "brokers", "share"]])
    return pd.concat(frames) if frames else pd.DataFrame()


def _chart(names: Sequence[str], time_unit: str, bounded: bool, faults: bool) -> alt.TopLevelMixin:
    base = (
        alt.Chart(alt.NamedData("windows"))
        .transform_filter("datum.point == point || datum.point == beside")
        .transform_calculate(
            mean="datum[metric]",
            low="datum[metric + ' low']",
            high="datum[metric + ' high']",
            which="datum.point == point ? 'point' : 'beside'",
        )
    )
    x = alt.X("time:Q", title=axis_title("time", time_unit), scale=alt.Scale(zero=True, nice=False))
    colour = by_colour(names)
    if len(names) > 1:
        colour = colour.legend(columns=4, symbolType="stroke", symbolOpacity=1)
    lines = base.encode(x=x, color=colour, detail="which:N")
    dashes = alt.StrokeDash("which:N", scale=alt.Scale(domain=["point", "beside"], range=[[1, 0], [2, 3]]), legend=None)
    layers = [
        base.transform_filter("datum.warm_up && datum.point == point")
        .transform_aggregate(to="max(end)")
        .transform_calculate(start="0")
        .mark_rect(color="#dddddd", opacity=0.6)
        .encode(x=alt.X("start:Q"), x2="to:Q"),
        lines.transform_filter("isValid(datum.mean)")
        .mark_line(strokeWidth=1.6)
        .encode(
            y=alt.Y("mean:Q", title=None, scale=alt.Scale(zero=True)),
            strokeDash=dashes,
            tooltip=["variant:N", "point:N"],
        ),
    ]
    if bounded:
        bands = lines.transform_filter("isValid(datum.low)").mark_area(opacity=0.18)
        layers.insert(1, bands.encode(y="low:Q", y2="high:Q"))
    if faults:
        layers.insert(
            1,
            alt.Chart(alt.NamedData("faults"))
            .transform_filter("datum.point == point")
            .mark_rect(color="#d62728")
            .encode(
                x="from:Q",
                x2="to:Q",
                opacity=alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.02, 0.14]), legend=None),
                tooltip=["what:N", "brokers:N", alt.Tooltip("share:Q", title="share of runs", format=".0%")],
            ),
        )
    text = f"[metric + ' at ' + point, beside == '{_NONE}' ? '' : 'dotted: ' + beside]"
    said = alt.Title(text=alt.ExprRef(text), anchor="start", fontWeight="normal", color=INK)
    return alt.layer(*layers).properties(title=said).add_params(zoom())
