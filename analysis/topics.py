"""Topics by audience, rate and delay: a mark for each."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import CHART_ROWS, Figure, axis_title, by_colour, log_ticks, rounded, spec_of
from analysis.comparison import variants_of
from analysis.formatting import number, scale
from analysis.tables import HOUR, runs_of
from sim.experiments.results import Results

_MARKS = 1000
"""The most topics of a variant, those with most copies."""


def topic_marks(results: Results, each: int = _MARKS) -> pd.DataFrame:
    """The topics of each variant's first run: columns variant, topic (name), users, rate (publications per h), copies, delay.

    The delay (s; NaN where delays of topics were not recorded) is the mean over deliveries to brokers.
    """
    frames = []
    for variant in variants_of(results):
        for run in runs_of(results, variant)[:1]:
            if not results.has_table(run, "topics"):
                continue
            topics, series = results.table(run, "topics"), results.table(run, "timeseries")
            measured = series[~series["warm_up"].astype(bool)]
            hours = float((measured["end"] - measured["start"]).sum()) / HOUR
            delay = topics.get("notification_delay", np.nan)
            rows = topics.assign(variant=variant, rate=topics["publications"] / hours, delay=delay)
            frames.append(rows.nlargest(each, "copies").rename(columns={"topic": "number", "name": "topic"}))
    columns = ["variant", "topic", "users", "rate", "copies", "delay"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def topic_scatter(results: Results) -> list[Figure]:
    """Audience against rate: coloured by delay, a chart for each variant, where that is known, else by variant in one chart."""
    names = variants_of(results)
    table = topic_marks(results, min(_MARKS, CHART_ROWS // len(names)))
    table = table[(table["users"] > 0) & (table["rate"] > 0)]
    if table.empty:
        return []
    if not table["delay"].notna().any():
        return [_scatter(table, "", 0, by_colour(names), 1.0, "s")]
    factor, unit = scale("s", float(table["delay"].median()))
    ends = rounded(table["delay"].agg(["min", "max"]) / factor).tolist()  # the same colours in all charts
    key = alt.Legend(title=["delay", f"({unit})"], orient="right", format=",.3~r")
    colour = alt.Color("delay:Q", scale=alt.Scale(scheme="viridis", reverse=True, domain=ends), legend=key)
    shown = [(name, table[table["variant"] == name]) for name in names]
    return [
        _scatter(part, name if len(names) > 1 else "", place, colour, factor, unit)
        for place, (name, part) in enumerate(shown)
        if len(part)
    ]


def _scatter(table: pd.DataFrame, variant: str, place: int, colour: alt.Color, factor: float, unit: str) -> Figure:
    """One chart, of a variant if it is named; delays are divided by the factor, to be in the unit."""
    known = table["delay"].notna().any()
    shown = table.assign(rate=rounded(table["rate"]), delay=rounded(table["delay"] / factor))
    ticks = {name: log_ticks(shown[name].min(), shown[name].max()) for name in ("users", "rate")}
    users, rate = (alt.Axis(format=",.3~r", values=ticks[name]) for name in ("users", "rate"))
    log = alt.Scale(type="log", nice=False, padding=10)
    chart = (
        alt.Chart(shown)
        .mark_circle(size=40, opacity=0.6)
        .encode(
            x=alt.X("users:Q", title="audience (users)", scale=log, axis=users),
            y=alt.Y("rate:Q", title="publications per hour", scale=log, axis=rate),
            color=colour,
            tooltip=[
                "variant:N",
                "topic:N",
                alt.Tooltip("users:Q", format=","),
                alt.Tooltip("rate:Q", title="publications per hour", format=",.4~r"),
                alt.Tooltip("copies:Q", title="copies to users", format=","),
                alt.Tooltip("delay:Q", title=axis_title("delay", unit), format=",.4~r"),
            ],
        )
        .add_params(alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.shiftKey]"))
    )
    most = table.nlargest(1, "copies").to_dict("records")[0]
    caption = "Users at the end, publications after the warm-up, in the first replication; both axes are logarithmic."
    caption += (
        " Colours are mean delays to brokers."
        if known
        else " With `topic_delays = true`, colours are delays to brokers."
    )
    described = f"{number(len(table))} topics by audience and rate; most copies: {most['topic']}, {number(most['users'])} users."
    title = f"audience and rate of topics{f': {variant}' if variant else ''}"
    spec = {**spec_of(chart), "height": 320}
    return Figure(
        f"topics-{place}" if variant else "topics", "topics", title, caption, described, spec, variant=variant or None
    )
