"""The overlay step by step: brokers at their places, coloured by load, over time; and the busiest topic's tree around faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Any: the library that draws charts takes many types.
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import CHART_ROWS, INK, Figure, axis_title, rounded, spec_of
from analysis.comparison import variants_of
from analysis.formatting import number, quantity
from analysis.hottest import all_messages
from analysis.tables import faults_of, runs_of
from analysis.trees import on_map, on_ring
from sim.experiments.results import Results

_STEPS = 24
_BROKERS = 300
"""The most brokers that are drawn, those with most messages."""
_LINKS = 200
_ROLES = {
    "root": ("diamond", 170),
    "subscriber": ("circle", 90),
    "relay": ("square", 70),
    "not on the tree": ("circle", 30),
    "down": ("cross", 140),
}
"""What a broker is on a tree: its shape and size."""


@dataclass(frozen=True)
class _Step:
    """What is shown of an instant: a text, the windows whose load counts, the time of the tree, and who is down."""

    text: str
    windows: pd.Series
    time: float | None = None
    down: frozenset[str] = frozenset()


def overlays(results: Results) -> list[Figure]:
    """For each variant, its overlay over time in its first run: brokers by load, and the links that carried most."""
    found = []
    for place, variant, run in _first_runs(results, "load"):
        series = results.table(run, "timeseries")
        windows = series[~series["warm_up"].astype(bool)]
        brokers = _brokers(results, run)
        block = np.arange(len(windows)) * min(_steps(brokers), len(windows)) // max(1, len(windows))
        steps = [_Step(_span(own), own["window"]) for _, own in windows.groupby(block)]
        links = results.table(run, "links").nlargest(_LINKS, "messages")
        links = links.rename(columns={"source": "parent", "destination": "broker"})[["parent", "broker"]]
        shown = _loaded(results, run, brokers, steps).assign(role="subscriber")
        if shown["load"].max() > 0:
            caption = f"Lines are the {number(len(links))} links that carried most messages of publications."
            drawn = _drawn(shown, _edges(links.assign(step=-1), brokers), steps, ["subscriber"])
            found.append(_figure(results, variant, f"overlay-{place}", "overlay", caption, drawn, steps))
    return found


def trees_in_faults(results: Results) -> list[Figure]:
    """For each variant, the tree of its busiest topic before, during and after the faults of its first run."""
    found = []
    for place, variant, run in _first_runs(results, "tree_steps"):
        trees, brokers = results.table(run, "tree_steps"), _brokers(results, run)
        times = trees["time"].unique()
        times = times[np.unique(np.linspace(0, len(times) - 1, min(len(times), _steps(brokers))).astype(int))]
        series, faults = results.table(run, "timeseries"), faults_of(results, run)
        steps = [_looked(time, series, faults) for time in times.tolist()]
        trees = trees.merge(pd.DataFrame({"time": times, "step": range(len(times))}))
        shown = _loaded(results, run, brokers, steps).merge(
            pd.DataFrame({"step": trees["step"], "broker": trees["broker"], "role": _role(trees)}), "left"
        )
        down = [name in steps[step].down for step, name in zip(shown["step"], shown["broker"].astype(str), strict=True)]
        shown["role"] = shown["role"].fillna("not on the tree").mask(pd.Series(down, shown.index), "down")
        at = trees.set_index(["step", "node"])["broker"].to_dict()
        upper = [at.get(pair, -1) for pair in zip(trees["step"], trees["parent"], strict=True)]
        edges = _edges(trees.assign(parent=upper), brokers)
        caption = f"The tree of topic {trees['topic_name'].iloc[0]}, in the first replication."
        drawn = _drawn(shown, edges, steps, list(_ROLES))
        found.append(_figure(results, variant, f"failing-{place}", "failing", caption, drawn, steps))
    return found


def _first_runs(results: Results, table: str) -> list[tuple[int, str, str]]:
    """The number and name of each variant with its first run, if that has the table."""
    runs = [(place, name, run) for place, name in enumerate(variants_of(results)) for run in runs_of(results, name)[:1]]
    return [(place, name, run) for place, name, run in runs if results.has_table(run, table)]


def _brokers(results: Results, run: str) -> pd.DataFrame:
    """The brokers to draw, with their places: on the ring, else on the map, else in a circle by number."""
    brokers = results.table(run, "brokers").set_index("broker")
    places = brokers[["longitude", "latitude"]].astype(np.float64)
    if brokers["position"].notna().all():
        x, y = on_ring(brokers["position"].to_numpy(np.float64))
    elif places.notna().all(axis=None) and len(places.drop_duplicates()) > 1:
        x, y = on_map(places)
    else:
        x, y = on_ring(np.arange(len(brokers)) / len(brokers))
    brokers = brokers.assign(x=x, y=y, messages=all_messages(brokers))
    return brokers.nlargest(_BROKERS, "messages")[["name", "x", "y"]]


def _steps(brokers: pd.DataFrame) -> int:
    return min(_STEPS, CHART_ROWS // 2 // max(1, len(brokers)))


def _span(windows: pd.DataFrame) -> str:
    return f"from {quantity(windows['start'].min(), 's')} to {quantity(windows['end'].max(), 's')}"


def _looked(time: float, series: pd.DataFrame, faults: pd.DataFrame) -> _Step:
    """A look just before `time`: what fails then, and the load in the window before."""
    failing = faults[(faults["start"] < time) & (faults["end"] >= time)]
    gone = failing[failing["what"].isin(("crash", "down"))]["brokers"]
    named = ", ".join(dict.fromkeys(f"{what} {who}".rstrip() for what, who in failing[["what", "brokers"]].to_numpy()))
    earlier = (faults["end"] <= time).any()
    said = named or ("after all of them" if earlier and not (faults["start"] >= time).any() else "nothing fails")
    windows = series.loc[(series["start"] < time) & (series["end"] >= time), "window"]
    down = frozenset(name for each in gone for name in each.split(", "))
    return _Step(f"{quantity(time, 's')}: {said}", windows, time, down)


def _role(trees: pd.DataFrame) -> pd.Series:
    role = np.where(trees["parent"] < 0, "root", np.where(trees["subscribes"], "subscriber", "relay"))
    return pd.Series(role, trees.index)


def _loaded(results: Results, run: str, brokers: pd.DataFrame, steps: Sequence[_Step]) -> pd.DataFrame:
    """The load of each broker at each step: columns step, broker, name, x, y, load (messages per s)."""
    load, series = results.table(run, "load"), results.table(run, "timeseries")
    load = load.assign(messages=all_messages(load))
    frames = []
    for number_, step in enumerate(steps):
        seconds = float((series["end"] - series["start"])[series["window"].isin(step.windows)].sum())
        sums = load[load["window"].isin(step.windows)].groupby("broker")["messages"].sum()
        per_second = sums.reindex(brokers.index, fill_value=0) / max(seconds, 1e-9)
        frames.append(brokers.assign(step=number_, load=rounded(per_second)))
    return pd.concat(frames).reset_index(names="broker")


def _edges(pairs: pd.DataFrame, brokers: pd.DataFrame) -> pd.DataFrame:
    """Lines between the brokers of pairs (step, parent, broker) that are both drawn; step -1 is all of them."""
    pairs = pairs[pairs["parent"].isin(brokers.index) & pairs["broker"].isin(brokers.index)]
    here, there = (brokers.loc[pairs[end], ["x", "y"]].to_numpy() for end in ("parent", "broker"))
    columns = {"step": pairs["step"].to_numpy(), "x": here[:, 0], "y": here[:, 1], "x2": there[:, 0], "y2": there[:, 1]}
    return pd.DataFrame(columns).head(CHART_ROWS)


def _drawn(shown: pd.DataFrame, edges: pd.DataFrame, steps: Sequence[_Step], roles: Sequence[str]) -> alt.TopLevelMixin:
    """Brokers and lines of the step that the slider is at."""
    slider = alt.binding_range(min=0, max=len(steps) - 1, step=1, name="step")
    step = alt.param("step", value=0, bind=slider)
    texts = alt.param("texts", value=[each.text for each in steps])
    side = alt.Scale(domain=[-1.15, 1.15])
    x, y = alt.X("x:Q", axis=None, scale=side), alt.Y("y:Q", axis=None, scale=side)
    lines = alt.Chart(edges).transform_filter("datum.step < 0 || datum.step == step")
    shapes, sizes = zip(*(_ROLES[role] for role in roles), strict=True)
    legend = alt.Legend(columns=3, title=None, symbolFillColor="#ffffff")
    colours = alt.Scale(scheme="viridis", reverse=True, domain=[0, float(shown["load"].max()) or 1.0])
    key = alt.Legend(title=["messages", "per second"], orient="right", format=",.3~r")
    kinds: dict[str, Any] = {
        "shape": alt.Shape("role:N", scale=alt.Scale(domain=roles, range=shapes), legend=legend),
        "size": alt.Size("role:N", scale=alt.Scale(domain=roles, range=sizes), legend=legend),
    }
    if len(roles) == 1:
        kinds = {"shape": alt.value(shapes[0]), "size": alt.value(sizes[0])}
    nodes = alt.Chart(shown).transform_filter("datum.step == step")
    said = [alt.Tooltip("name:N", title="broker"), alt.Tooltip("role:N")]
    load = alt.Tooltip("load:Q", title=axis_title("load", "messages/s"), format=",.4~r")
    fill = alt.Fill("load:Q", scale=colours, legend=key)
    marks = nodes.mark_point(stroke=INK, strokeWidth=0.8, opacity=1).encode(
        x=x, y=y, **kinds, fill=fill, tooltip=[*said, load]
    )
    shape, size = _ROLES["down"]
    down = nodes.transform_filter("datum.role == 'down'").mark_point(shape=shape, size=size, opacity=1, filled=True)
    gone = down.encode(x=x, y=y, color=alt.value("#d62728"), tooltip=said)
    title = alt.Title(text=alt.ExprRef("texts[step]"), anchor="start", fontWeight="normal", color=INK)
    drawn = lines.mark_rule(color="#777777", opacity=0.5).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    return alt.layer(drawn, marks, gone).add_params(step, texts).properties(title=title)


def _figure(
    results: Results,
    variant: str,
    name: str,
    section: str,
    caption: str,
    drawn: alt.TopLevelMixin,
    steps: Sequence[_Step],
) -> Figure:
    spec = spec_of(drawn)
    del spec["autosize"]  # keeps a ring round and a map in shape at any width
    said = f"{caption} Steps: {'; '.join(step.text for step in steps)}."
    return Figure(name, section, variant, caption, said, {**spec, "height": 340}, width=340, variant=variant)
