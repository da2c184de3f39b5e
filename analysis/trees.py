"""The charts of topic trees: on the ring, on the map, or in layers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.charts import CHART_ROWS, INK, Figure, colour_of, spec_of
from analysis.comparison import variants_of
from analysis.formatting import number
from analysis.tables import busiest_tree
from sim.experiments.results import Results

MOST_NODES = 1000
"""The most nodes of a tree that are drawn, those nearest to its root, and the most brokers around it."""

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class _Layout:
    """The positions of a tree's nodes, x and y from -1 to 1, and of all brokers, where they have positions."""

    name: str
    nodes: Points
    brokers: Points | None


def trees(results: Results) -> list[Figure]:
    """Per variant, the tree of the busiest topic at the end of the first replication."""
    return [figure for variant in variants_of(results) for figure in _tree(results, variant)]


def _tree(results: Results, variant: str) -> list[Figure]:
    found = busiest_tree(results, variant)
    if found is None:
        return []
    whole, brokers = found
    tree = whole.head(MOST_NODES).copy()
    layout = _layout(tree, brokers)
    tree["x"], tree["y"] = layout.nodes
    size = float(np.clip(6000 / len(tree), 14, 45))
    names = variants_of(results)
    colour = colour_of(variant, names)
    side = alt.Scale(domain=[-1.12, 1.12])
    x, y = alt.X("x:Q", axis=None, scale=side), alt.Y("y:Q", axis=None, scale=side)
    roles = ["root", "subscriber", "relay"]
    legend = alt.Legend(columns=3)
    # The root comes last, on top of its neighbours.
    nodes = alt.Chart(tree.iloc[::-1][["x", "y", "role", "node", "broker", "depth"]]).encode(
        x=x,
        y=y,
        shape=alt.Shape("role:N", scale=alt.Scale(domain=roles, range=["diamond", "circle", "circle"]), legend=legend),
        fill=alt.Fill("role:N", scale=alt.Scale(domain=roles, range=[INK, colour, "#ffffff"]), legend=legend),
        size=alt.when(alt.datum.role == "root").then(alt.value(170)).otherwise(alt.value(size)),
        tooltip=["role:N", "broker:Q", "node:Q", alt.Tooltip("depth:Q", title="hops below the root")],
    )
    layers = [
        alt.Chart(_edges(tree, bent=layout.name == "ring"))
        .mark_line(color=colour, opacity=0.45, strokeWidth=1)
        .encode(x=x, y=y, detail="edge:N", order="step:Q"),
        nodes.mark_point(stroke=INK, strokeWidth=0.8, opacity=1),
    ]
    if layout.brokers is not None:
        places = pd.DataFrame(dict(zip("xy", layout.brokers, strict=True)))
        ticks = alt.Chart(places.sample(min(len(places), MOST_NODES), random_state=0))
        layers.insert(0, ticks.mark_point(filled=True, size=8, color="#777777", opacity=1).encode(x=x, y=y))
    if layout.name == "ring":
        circle = pd.DataFrame(dict(zip("xy", on_ring(np.linspace(0, 1, 181)), strict=True))).assign(step=range(181))
        layers.insert(0, alt.Chart(circle).mark_line(color="#bbbbbb", strokeWidth=1).encode(x=x, y=y, order="step:Q"))
    subscribers, relays = int(whole["subscribes"].sum()), int((whole["role"] == "relay").sum())
    topic = str(whole["topic_name"].iloc[0])
    caption = (
        f"Topic {topic}: {number(subscribers)} of {number(len(brokers))} brokers subscribe, "
        f"{number(relays)} only relay, deepest {number(int(whole['depth'].max()))} hops below the root."
    )
    if len(tree) < len(whole):
        caption += f" Drawn are the {number(len(tree))} nodes nearest to the root."
    spec = spec_of(alt.layer(*layers))
    del spec["autosize"]  # keeps a ring round and a map in shape at any width
    on = {"ring": "on the ring of brokers", "map": "on the map of brokers", "layers": "in layers by hops"}[layout.name]
    return [
        Figure(
            f"tree-{names.index(variant)}-{re.sub('[^A-Za-z0-9]+', '-', variant)[:60]}".rstrip("-"),  # a file's name
            "tree",
            variant,
            caption,
            f"The busiest topic's tree under {variant}, {on}. {caption}",
            {**spec, "height": 340},
            width=340,
            variant=variant,
        )
    ]


def _layout(tree: pd.DataFrame, brokers: pd.DataFrame) -> _Layout:
    """Lay out on the ring if there is one, else on the map if brokers have distinct positions, else in layers."""
    if brokers["position"].notna().all():
        return _Layout("ring", on_ring(tree["position"].to_numpy()), on_ring(brokers["position"].to_numpy()))
    places = brokers[["longitude", "latitude"]]
    if places.notna().all(axis=None) and len(places.drop_duplicates()) > 1:
        x, y = on_map(places)
        order = brokers.index.get_indexer(pd.Index(tree["broker"]))
        return _Layout("map", (x[order], y[order]), (x, y))
    return _Layout("layers", _in_layers(tree), None)


def on_ring(position: NDArray[np.float64]) -> Points:
    """Places on the unit circle, clockwise from the top."""
    angle = 2 * np.pi * position
    return np.sin(angle).round(4), np.cos(angle).round(4)


def on_map(places: pd.DataFrame) -> Points:
    """Longitude and latitude, true to scale at the middle latitude, as large as the square allows."""
    longitude, latitude = places["longitude"].to_numpy(), places["latitude"].to_numpy()
    middle = (latitude.min() + latitude.max()) / 2
    x = (longitude - (longitude.min() + longitude.max()) / 2) * np.cos(np.radians(middle))
    y = latitude - middle
    half = max(x.max(), y.max())
    return (x / half).round(4), (y / half).round(4)


def _in_layers(tree: pd.DataFrame) -> Points:
    """The root at the top, below it a row for each number of hops, children in the order of their parents."""
    across: dict[int, float] = {}
    for _, layer in tree.groupby("depth"):
        pairs = zip(layer["node"].tolist(), layer["parent"].tolist(), strict=True)
        ordered = sorted((across.get(parent, 0.0), node) for node, parent in pairs)
        across |= {node: 2 * (place + 0.5) / len(ordered) - 1 for place, (_, node) in enumerate(ordered)}
    depth = tree["depth"].to_numpy()
    x = np.array([across[node] for node in tree["node"].tolist()])
    return x.round(4), (1 - 2 * depth / max(depth.max(), 1)).round(4)


def _edges(tree: pd.DataFrame, bent: bool) -> pd.DataFrame:
    """Each edge from parent to child as points of a line, or of a curve that bends towards the centre, more if it is longer."""
    places = tree.set_index("node")[["x", "y"]]
    children = tree[tree["parent"] >= 0]
    start = places.loc[children["parent"]].to_numpy()[:, None, :]
    end = children[["x", "y"]].to_numpy()[:, None, :]
    steps = int(np.clip(CHART_ROWS // 2 // max(1, len(children)), 2, 16)) if bent else 2
    t = np.linspace(0, 1, steps)[None, :, None]
    inwards = np.clip(1 - 0.75 * np.linalg.norm(end - start, axis=2, keepdims=True), 0.2, 0.9) if bent else 1.0
    points = ((1 - t) ** 2 * start + t * (1 - t) * inwards * (start + end) + t**2 * end).round(4)
    edge, step = np.divmod(np.arange(points.shape[0] * steps), steps)
    return pd.DataFrame({"edge": edge, "step": step, "x": points[..., 0].ravel(), "y": points[..., 1].ravel()})
