"""The charts of a results folder."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import CHART_ROWS, Figure, axis_title, by_colour, by_dash, rounded, spec_of
from analysis.comparison import by_replication, compare, headline_of, label, texts, variants_of
from analysis.formatting import number, scale, with_unit
from analysis.load_maps import load_maps
from analysis.stepped import overlays, trees_in_faults
from analysis.tables import CONTROL_TRAFFIC, delay_distribution, failing, load_by_rank, over_time
from analysis.trees import trees
from sim.experiments.results import Results
from sim.metrics import METRICS


def figures(results: Results) -> list[Figure]:
    """All charts of the results, in the order of the report. Charts without data are left out."""
    return [
        *intervals(results, headline_of(results)),
        *metrics_over_time(results, _over_time(results)),
        *delays(results),
        *_load(results),
        *load_maps(results),
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


def metrics_over_time(results: Results, metrics: Sequence[str]) -> list[Figure]:
    """For each metric, the mean over the replications by window, with its 95 % confidence interval; warm-up and faults are shaded."""
    names = variants_of(results)
    table = over_time(results, metrics, points=min(240, CHART_ROWS // len(names)))
    faults, found = failing(results).head(CHART_ROWS), []
    for name in metrics:
        rows = table[table["metric"] == name]
        if rows.empty:
            continue
        metric = CONTROL_TRAFFIC if name == CONTROL_TRAFFIC.name else METRICS[name]
        factor, unit = scale(metric.unit, rows["mean"].abs().max())
        if metric.windows == "sum":
            unit = "1/h" if unit == "count" else f"{unit}/h"
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
            tooltip = [alt.Tooltip("what:N"), alt.Tooltip("brokers:N")]
            area = alt.Chart(lasts[["from", "to", "what", "brokers"]]).mark_rect(color="#d62728", opacity=0.12)
            layers.insert(0, area.encode(x="from:Q", x2="to:Q", tooltip=tooltip))
        if np.isfinite(warm_up):
            shade = pd.DataFrame({"from": [0.0], "to": [warm_up]})
            layers.insert(0, alt.Chart(shade).mark_rect(color="#dddddd", opacity=0.6).encode(x="from:Q", x2="to:Q"))
        found.append(
            Figure(
                f"time-{name}",
                "time",
                f"{label(name)} over time",
                "Red areas: something has failed." if len(faults) else "",
                f"{label(name)} over time by variant, from 0 to {number(rows['end'].max() / span)} {time_unit}, "
                f"at most {with_unit(number(shown['mean'].max()), unit)}.",
                {**spec_of(alt.layer(*layers)), "height": 220},
            )
        )
    return found


def delays(results: Results) -> list[Figure]:
    """The distribution of the notification delay: cumulative shares per variant on a logarithmic axis."""
    names = variants_of(results)
    table = delay_distribution(results, points=min(300, CHART_ROWS // len(names) - 2))
    above = table.loc[table["delay"] > 0, "delay"]
    if above.empty:
        return []
    factor, unit = scale("s", float(above.median()))
    # a logarithmic axis has no 0, so pairs without delay are at its left edge
    floor = above.min() * 0.9
    shown = table.assign(delay=rounded(table["delay"].clip(lower=floor) / factor), share=rounded(table["share"]))
    chart = (
        alt.Chart(shown)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=alt.X("delay:Q", title=axis_title("notification delay", unit), scale=alt.Scale(type="log", nice=False)),
            y=alt.Y(
                "share:Q", title="share of notifications", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=by_colour(names),
            strokeDash=by_dash(names),
            tooltip=["variant:N", alt.Tooltip("delay:Q", title=axis_title("delay", unit), format=".3~g"), "share:Q"],
        )
    )
    undelayed = table[table["delay"] == 0].set_index("variant")["share"]
    zeros = ", ".join(f"{variant} {100 * share:.2g} %" for variant, share in undelayed.items())
    caption = (
        "Share of the delivered (publication, broker) pairs that arrive within a delay; bins are at most 0.8 % wide."
    )
    if zeros:
        caption += f" Those that need no hop are at the left edge: {zeros}."
    medians = [
        f"{v}: {number(t.loc[t['share'] >= 0.5, 'delay'].min() / factor)} {unit}" for v, t in table.groupby("variant")
    ]
    description = f"Cumulative distribution of the notification delay by variant; medians: {'; '.join(medians)}."
    return [Figure("delay", "delay", "notification delay", caption, description, {**spec_of(chart), "height": 280})]


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
                "rank:Q", title="broker, heaviest first", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False)
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
