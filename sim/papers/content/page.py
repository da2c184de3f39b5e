"""“Generating Subscriptions and Publications”: the page and its drawings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from analysis.charts import INK, colour_of, spec_of
from sim.base.naming import Raw
from sim.papers.content.claims import claims
from sim.papers.content.runs import sweeps
from sim.papers.paper import Drawing, read_paper

ROWS = 2
"""The dots in one column of a drawing of sets."""


def _dots(members: pd.DataFrame) -> pd.DataFrame:
    """The position of each subscription: sets from left to right, in columns of two, common ones between their sets."""
    sets = members.groupby("subscription")["subset"].agg(["min", "max"])
    dots = sets.join(members.drop_duplicates("subscription").set_index("subscription")["target"])
    dots["place"] = dots["min"] + dots["max"]  # even inside one set, odd between two
    dots = dots.sort_values(["place", "target"], key=lambda column: column.where(column >= 0, len(members)))
    x, left = [], 0
    for _, cell in dots.groupby("place"):
        x += [left + i // ROWS for i in range(len(cell))]
        left = x[-1] + 1
    dots["x"] = x
    row = dots.groupby("x").cumcount()
    dots["y"] = row - (dots.groupby("x")["place"].transform("size") - 1) / 2
    return dots.reset_index()


def _drawing(point: str, variant: str, targets: bool, runs: pd.DataFrame) -> Raw:
    """Draw subscriptions as dots in their sets; with `targets`, those of one target are joined by a line."""
    import altair as alt

    members = runs[(runs["point"] == point) & (runs["variant"] == variant)]
    dots = _dots(members)
    placed = members.merge(dots[["subscription", "x", "y"]], on="subscription")
    names = [f"S{subset + 1}" for subset in sorted(placed["subset"].unique())]
    ends = placed.groupby("subset")["x"].agg(["min", "max"]).reset_index(drop=True)
    tall = [1.35 if subset % 2 else 1.15 for subset in ends.index]  # the edges distinguish two overlapping sets
    frames = pd.DataFrame(
        {
            "set": names,
            "left": ends["min"] - 0.42,
            "right": ends["max"] + 0.42,
            "top": tall,
            "bottom": [-height for height in tall],
            "middle": (ends["min"] + ends["max"]) / 2,
        }
    )
    scale = alt.Scale(domain=names, range=[colour_of(name, names) for name in names])
    colour = alt.Color("set:N", scale=scale, legend=None)
    x = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[-0.7, float(dots["x"].max()) + 0.7], nice=False))
    y = alt.Y("bottom:Q", axis=None, scale=alt.Scale(domain=[-1.5, 1.9], nice=False))
    sets = alt.Chart(frames).encode(x=x, x2="right:Q", y=y, y2="top:Q", color=colour)
    layers = [
        sets.mark_rect(cornerRadius=26, fillOpacity=0.12, strokeWidth=1.6),
        alt.Chart(frames).mark_text(dy=-9, fontSize=13).encode(x="middle:Q", y="top:Q", text="set:N", color=colour),
    ]
    base = alt.Chart(dots[["x", "y", "target", "subscription"]])
    if targets:
        joined = base.transform_filter("datum.target >= 0").mark_line(strokeWidth=5, color=INK, opacity=0.45)
        layers.append(joined.encode(x="x:Q", y="y:Q", detail="target:N"))
    layers.append(base.mark_point(filled=True, size=70, color=INK, opacity=1).encode(x="x:Q", y="y:Q"))
    return spec_of(alt.layer(*layers))


_OVERLAPPING = "Four sets of seven dots, neighbours with two in common; all dots are joined in eleven pairs."
_DISJOINT = "Three sets of seven dots; nine pairs, and a dot is left over in each set."
_THREE = "Three sets of seven dots in a row; the second has two dots in common with the first, and two with the third."
DRAWINGS = {
    "fig-7.1": (
        Drawing(
            "Three sets of seven, 17 subscriptions", _THREE, partial(_drawing, "figure 7.1", "three sets, v = 2", False)
        ),
    ),
    "fig-7.2": (
        Drawing(
            "Overlapping: 22 subscriptions, β(2) = 11",
            _OVERLAPPING,
            partial(_drawing, "figure 7.2", "overlapping", True),
        ),
        Drawing("Disjoint: 21 subscriptions, β(2) = 9", _DISJOINT, partial(_drawing, "figure 7.2", "disjoint", True)),
    ),
}
PAPER = read_paper(Path(__file__).parent, claims(), sweeps, drawings=DRAWINGS, by_section=False)
