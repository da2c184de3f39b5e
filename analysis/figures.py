"""The charts of a results folder."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import CHART_ROWS, Figure, axis_title, by_colour, by_dash, log_ticks, rounded, spec_of, whole_axis
from analysis.comparison import by_replication, compare, headline_of, label, texts, variants_of
from analysis.convergence import convergence
from analysis.formatting import number, scale, with_unit
from analysis.load_maps import load_maps
from analysis.stepped import overlays, trees_in_faults
from analysis.tables import CONTROL_TRAFFIC, delay_distribution, failing, load_by_rank, over_time
from analysis.topics import topic_scatter
from analysis.trees import trees
from sim.base.naming import Raw
from sim.experiments.results import Results
from sim.metrics import METRICS, Metric

_POINTS = 160
"""The most points of a line over time."""
_MERGED = (
    "Each point is {} windows; bands are from the 10 % to the 90 % quantile of single windows in all replications."
)
_FAILING = "Red areas: something has failed, the fainter the fewer the runs."


def zoom() -> alt.Parameter:
    """A parameter for charts over time: dragging moves along the horizontal axis; the wheel with shift zooms, a double click resets."""
    return alt.selection_interval(name="zoom", encodings=["x"], bind="scales", zoom="wheel![event.shiftKey]")


def figures(results: Results) -> list[Figure]:
    """All charts of the results, in the order of the report. Charts without data are left out."""
    return [
        *intervals(results, headline_of(results)),
        *convergence(results, headline_of(results)),
        *metrics_over_time(results, _over_time(results)),
        *delays(results),
        *_load(results),
        *load_maps(results),
        *topic_scatter(results),
        *overlays(results),
        *trees(results),
        *trees_in_faults(results),
    ]


def _over_time(results: Results) -> list[str]:
    """The metrics over time: the headline, and, where something fails, what faults do to delays, deliveries and control traffic."""
    struck = any(results.has_table(run, "faults") for run in results.runs["run"])
    more = ["notification_delay", "delivery_ratio", CONTROL_TRAFFIC.name] if struck else []
    return list(dict.fromkeys([*headline_of(results), *more]))


def intervals(results: Results, metrics: Sequence[str]) -> list[Figure]:
    """For each metric, the variants' means with 95 % confidence intervals, and the single replications as faint marks."""
    names = variants_of(results)
    found = []
    for row in compare(results, metrics):
        metric, name = row.metric, row.metric.name
        means = {variant: outcome.value for variant, outcome in row.outcomes.items() if outcome.value.n}
        if not means:
            continue
        factor, unit = row.scale
        rows = pd.DataFrame(
            {
                "variant": list(means),
                "mean": [value.mean / factor for value in means.values()],
                "low": [np.nan if value.low is None else value.low / factor for value in means.values()],
                "high": [np.nan if value.high is None else value.high / factor for value in means.values()],
                "text": [
                    f"{with_unit(said.mean, unit)} {said.interval}".rstrip()
                    for said in (texts(row, variant) for variant in means)
                ],
            }
        )
        single = by_replication(results, name).melt(value_name="value").dropna()
        single = single.assign(value=single["value"] / factor).head(CHART_ROWS - len(rows))
        y = alt.Y("variant:N", sort=names, title=None)
        alike = single["value"].nunique() == 1  # around one value alone, an axis would show it as a whole number
        x = alt.X("mean:Q", title=axis_title(label(name), unit), scale=alt.Scale(zero=alike, nice=True))
        tooltip = [alt.Tooltip("variant:N"), alt.Tooltip("text:N", title=label(name))]
        base = alt.Chart(rows).encode(y=y, color=by_colour(names, legend=False))
        bars = base.transform_filter("isValid(datum.low)")
        chart = alt.layer(
            alt.Chart(single).mark_tick(opacity=0.35, size=12).encode(x="value:Q", y=y, color=by_colour(names, False)),
            bars.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q"),
            bars.mark_tick(thickness=2, size=9).encode(x="low:Q"),
            bars.mark_tick(thickness=2, size=9).encode(x="high:Q"),
            base.mark_point(filled=True, size=90, opacity=1).encode(x=x, tooltip=tooltip),
        )
        said = "; ".join(f"{variant}: {text}" for variant, text in zip(rows["variant"], rows["text"], strict=True))
        found.append(
            Figure(
                f"interval-{name}",
                "intervals",
                label(name),
                f"{metric.description[0].upper()}{metric.description[1:]}.",
                f"{label(name)}, mean and 95 % confidence interval by variant. {said}.",
                {**spec_of(chart), "height": 34 * len(means) + 10},
            )
        )
    return found


def unit_over_time(metric: Metric, largest: float) -> tuple[float, str]:
    """What to divide a metric's values over time by, and their unit then; sums are per hour."""
    factor, unit = scale(metric.unit, largest)
    if metric.windows == "sum":
        unit = "1/h" if unit == "count" else f"{unit}/h"
    return factor, unit


def metrics_over_time(results: Results, metrics: Sequence[str]) -> list[Figure]:
    """For each metric, the mean over the replications by window, with its 95 % confidence interval; warm-up and faults are shaded."""
    names = variants_of(results)
    points = min(_POINTS, CHART_ROWS // len(names))
    table = over_time(results, metrics, points)
    faults, found = failing(results).nlargest(CHART_ROWS, "share"), []
    windows = max((len(results.table(run, "timeseries")) for run in results.runs["run"].head(1)), default=0)
    each = -(-windows // points)
    for name in metrics:
        rows = table[table["metric"] == name]
        if rows.empty:
            continue
        metric = CONTROL_TRAFFIC if name == CONTROL_TRAFFIC.name else METRICS[name]
        factor, unit = unit_over_time(metric, rows["mean"].abs().max())
        span, time_unit = scale("s", rows["end"].max() / 3)
        warm_up = rows.loc[rows["warm_up"], "end"].max() / span
        shown = pd.DataFrame(
            {
                "variant": rows["variant"],
                "time": rounded((rows["start"] + rows["end"]) / 2 / span),
                # metrics are never below 0, but wide intervals may be
                **{column: rounded(rows[column].clip(lower=0) / factor) for column in ("mean", "low", "high")},
            }
        )
        whole = alt.Scale(domain=[0, rows["end"].max() / span], nice=False)
        x = alt.X("time:Q", title=axis_title("time", time_unit), scale=whole)
        y = alt.Y("mean:Q", title=axis_title(label(name), unit), scale=alt.Scale(zero=True))
        base = alt.Chart(shown).encode(x=x, color=by_colour(names))
        layers = [
            base.mark_area(opacity=0.18).encode(y="low:Q", y2="high:Q"),
            base.mark_line(strokeWidth=1.6, point={"size": 12} if rows["start"].nunique() <= 60 else False).encode(
                y=y,
                strokeDash=by_dash(names),
                tooltip=[
                    alt.Tooltip("variant:N"),
                    alt.Tooltip("time:Q", title=axis_title("time", time_unit), format=".4~g"),
                    alt.Tooltip("mean:Q", title=axis_title(label(name), unit), format=",.4~r"),
                ],
            ),
        ]
        if len(faults):
            lasts = faults.assign(
                **{"from": faults["start"] / span, "to": faults["end"].clip(upper=rows["end"].max()) / span}
            )
            share = alt.Tooltip("share:Q", title="share of runs", format=".0%")
            tooltip = [alt.Tooltip("what:N"), alt.Tooltip("brokers:N"), share]
            area = alt.Chart(lasts[["from", "to", "what", "brokers", "share"]]).mark_rect(color="#d62728")
            faint = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.02, 0.14]), legend=None)
            layers.insert(0, area.encode(x="from:Q", x2="to:Q", opacity=faint, tooltip=tooltip))
        if np.isfinite(warm_up):
            shade = pd.DataFrame({"from": [0.0], "to": [warm_up]})
            layers.insert(0, alt.Chart(shade).mark_rect(color="#dddddd", opacity=0.6).encode(x="from:Q", x2="to:Q"))
        found.append(
            Figure(
                f"time-{name}",
                "time",
                f"{label(name)} over time",
                " ".join(filter(None, [_MERGED.format(each) if each > 1 else "", _FAILING if len(faults) else ""])),
                f"{label(name)} over time by variant, from 0 to {number(rows['end'].max() / span)} {time_unit}, "
                f"at most {with_unit(number(shown['mean'].max()), unit)}.",
                {**spec_of(alt.layer(*layers).add_params(zoom())), "height": 220},
            )
        )
    return found


def delays(results: Results) -> list[Figure]:
    """The distribution of the notification delay by variant: the shares up to a delay, and above it, for the tail."""
    names = variants_of(results)
    table = delay_distribution(results, points=min(200, CHART_ROWS // (2 * len(names)) - 4))
    above = table.loc[table["delay"] > 0, "delay"]
    if above.empty:
        return []
    factor, unit = scale("s", float(above.median()))
    # a logarithmic axis has no 0, so pairs without delay are at its left edge
    floor = above.min() * 0.9
    delay = rounded(table["delay"].clip(lower=floor) / factor)
    undelayed = table[table["delay"] == 0].set_index("variant")["share"]
    zeros = ", ".join(f"{variant} {100 * share:.2g} %" for variant, share in undelayed.items())
    pairs = "Share of the delivered (publication, broker) pairs that"
    edge = f" Those that need no hop are at the left edge: {zeros}." if zeros else ""
    medians = [
        f"{v}: {number(t.loc[t['share'] >= 0.5, 'delay'].min() / factor)} {unit}" for v, t in table.groupby("variant")
    ]
    said = f"istribution of the notification delay by variant; medians: {'; '.join(medians)}."
    share = alt.Y("share:Q", title="share of notifications", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    cdf = _distribution(table.assign(delay=delay, share=rounded(table["share"])), share, unit, names)
    captions = (
        f"{pairs} arrive within a delay (CDF); bins are at most 0.8 % wide.{edge}",
        f"{pairs} take longer (CCDF).",
    )
    found = [Figure("delay", "delay", "notification delay", captions[0], f"Cumulative d{said}", cdf)]
    tail = table.assign(delay=delay, share=(1 - table["share"]).round(12))
    tail = tail[tail["share"] > 0]
    if len(tail):
        powers = [10.0**-k for k in range(13) if 10.0**-k >= 0.1 * tail["share"].min()]
        axis = alt.Axis(values=powers, format=".12~%")
        longer = alt.Y("share:Q", title="share that takes longer", axis=axis, scale=alt.Scale(type="log", nice=False))
        ccdf = _distribution(tail.assign(share=rounded(tail["share"])), longer, unit, names)
        found.append(
            Figure("delay-tail", "delay", "notification delay, tail", captions[1], f"Tail of the d{said}", ccdf)
        )
    return found


def _distribution(shown: pd.DataFrame, share: alt.Y, unit: str, names: Sequence[str]) -> Raw:
    """A step line per variant over the delay."""
    chart = (
        alt.Chart(shown)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=alt.X(
                "delay:Q",
                title=axis_title("notification delay", unit),
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format=",.3~r", values=log_ticks(shown["delay"].min(), shown["delay"].max())),
            ),
            y=share,
            color=by_colour(names),
            strokeDash=by_dash(names),
            tooltip=[
                "variant:N",
                alt.Tooltip("delay:Q", title=axis_title("delay", unit), format=",.3~r"),
                alt.Tooltip("share:Q", format=".4~%"),
            ],
        )
    )
    return {**spec_of(chart), "height": 280}


def _load(results: Results) -> list[Figure]:
    """The brokers' loads, heaviest first."""
    names = variants_of(results)
    table = load_by_rank(results, points=min(300, CHART_ROWS // len(names) - 50))
    if table.empty or not table["subscriptions"].max() > 0:
        return []
    # where a few brokers have most of the load, only a logarithmic axis separates the others
    skewed = table["subscriptions"].max() > 20 * table["subscriptions"].median()
    heaviest = table["subscriptions"].max()
    shown = table[table["subscriptions"] > 1e-5 * heaviest] if skewed else table
    powers = [10.0**k for k in range(-9, 10) if shown["subscriptions"].min() <= 10.0**k <= heaviest]
    axis = alt.Axis(format=",~r", values=powers) if skewed else alt.Axis(format=",~r")
    chart = (
        alt.Chart(shown.assign(subscriptions=rounded(shown["subscriptions"])))
        .mark_line(strokeWidth=1.8, point={"size": 14} if table["rank"].max() <= 60 else False)
        .encode(
            x=alt.X(
                "rank:Q",
                title="broker, heaviest first",
                axis=whole_axis(1, int(table["rank"].max())),
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y(
                "subscriptions:Q",
                title="user subscriptions (count)",
                scale=alt.Scale(type="log" if skewed else "linear"),
                axis=axis,
            ),
            color=by_colour(names),
            strokeDash=by_dash(names),
            tooltip=["variant:N", "rank:Q", alt.Tooltip("subscriptions:Q", format=",.4~r")],
        )
    )
    heads = [f"{v}: {number(t['subscriptions'].max())}" for v, t in table.groupby("variant", sort=False)]
    description = f"User subscriptions per broker by variant, sorted; the heaviest broker has {'; '.join(heads)}."
    caption = "User subscriptions that a broker hosts, averaged over time and, rank by rank, over the replications."
    if skewed:
        caption += " The axis is logarithmic; brokers that host no user are beyond its end."
    return [Figure("load", "load", "load per broker", caption, description, {**spec_of(chart), "height": 260})]
