"""“Generating Subscriptions and Publications”: what is shown of what we design and publish."""

from __future__ import annotations

from functools import partial

import altair as alt
import pandas as pd

from analysis.charts import INK, colour_of
from sim.papers.content.claims import DERIVED, MISPRINTS, OVERLAPS, claims
from sim.papers.content.runs import sweeps
from sim.papers.paper import Drawing, Paper, PaperTable, Section, charts, paper_tables

ROWS = 2
"""Dots one above the other in a drawing of sets."""


def _dots(members: pd.DataFrame) -> pd.DataFrame:
    """Where each subscription is drawn: sets from left to right, in columns of two, those in common between their sets."""
    sets = members.groupby("subscription")["subset"].agg(["min", "max"])
    dots = sets.join(members.drop_duplicates("subscription").set_index("subscription")["target"])
    dots["place"] = dots["min"] + dots["max"]  # even where it is in one set, odd between two
    dots = dots.sort_values(["place", "target"], key=lambda column: column.where(column >= 0, len(members)))
    x, left = [], 0
    for _, cell in dots.groupby("place"):
        x += [left + i // ROWS for i in range(len(cell))]
        left = x[-1] + 1
    dots["x"] = x
    row = dots.groupby("x").cumcount()
    dots["y"] = row - (dots.groupby("x")["place"].transform("size") - 1) / 2
    return dots.reset_index()


def _drawing(point: str, variant: str, targets: bool, runs: pd.DataFrame) -> alt.TopLevelMixin:
    """Subscriptions as dots in the sets that they are in; with `targets`, those of one target are joined by a line."""
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
    return alt.layer(*layers)


SECTIONS = (
    Section(
        "table-1",
        "Table 1: disjoint subsets",
        "100 subscriptions of m = 4 predicates over n = 11 fields make 12 full subsets of t = n − m + 1 = 8. Every target that "
        "they have has been published, and matched against all 100 subscriptions; α(z) counts those that were hit exactly, β(z) the "
        "most that have no subscription in common. Optimal would be a single perfectly compatible set of 100, which theorem 12 rules "
        "out. As in the paper, four subscriptions that make no full subset count for nothing.",
        tables=(
            PaperTable("Table 1", ("alpha", "optimal_alpha", "beta", "optimal_beta"), "z"),
            PaperTable("Targets tried, and those that other subscriptions matched, too", ("tried", "missed"), "z"),
        ),
    ),
    Section(
        "table-2",
        "Table 2: subsets that overlap",
        "Each subset has v subscriptions of the one before. Their private predicates are locked, and new members share only predicates "
        "that are nobody's own.",
        charts("z", "z", "alpha", variants=OVERLAPS),
        paper_tables("z", {"α(z)": "alpha"}),
    ),
    Section(
        "beta",
        "β(z) with overlap, and of a grid",
        "The paper has no numbers, and believes that overlap can only help. It costs where z is nearly as large as a subset: a subset "
        "that has given some of its members to the next has too few left. A grid has one pool of m − 1 predicates for all, and "
        "subscription i has its private one in the (i mod t)-th of the other fields. Its β(z) is floor(h / z), which nothing can "
        "exceed, and its α(z) is far larger (counted by formula; 2,000 random targets for each z were hit). The price is predicates "
        "that everybody asks for. By formula, β(z) along a chain is the best way to deal out what two subsets have in common.",
        (*charts("z", "z", "beta"), *charts("z", "z", "beta", relative_to="v = 0")),
        (
            *paper_tables("z", {"β(z)": "beta"}),
            PaperTable(
                "Counted and by formula",
                ("alpha", "alpha_formula", "beta", "beta_formula", "tried", "missed"),
                "z",
                "variant",
            ),
        ),
        runs="table-2",
    ),
    Section(
        "across",
        "Targets that the paper does not count",
        "Every subscription has a predicate that no other has, so any set that does not contradict itself can be hit exactly, also "
        "where it lies in no one subset. Where subsets overlap and all subscriptions have one size, the pool is handed on from subset "
        "to subset: the chain is a grid, and nearly all pairs are targets. α(z) has the last subset in it here, though it is not full.",
        tables=(
            PaperTable(
                "Targets within subsets, and all that there are",
                ("alpha", "compatible", "optimal_alpha"),
                "variant",
                "point",
            ),
        ),
    ),
    Section(
        "fig-7.1",
        "Figure 7.1: three sets with an overlap of two",
        "A dot is a subscription; t = 7, v = 2.",
        (
            Drawing(
                "Three sets of seven, 17 subscriptions",
                "Three sets of seven dots in a row; the second has two dots in common with the first, and two with the third.",
                partial(_drawing, "figure 7.1", "three sets, v = 2", False),
                170,
            ),
        ),
        runs="figures",
    ),
    Section(
        "fig-7.2",
        "Figure 7.2: what overlap does for β(2)",
        "Lines join disjoint targets of two. Four sets of seven with an overlap of two have 22 subscriptions, three disjoint ones 21.",
        (
            Drawing(
                "Overlapping: 22 subscriptions, β(2) = 11",
                "Four sets of seven dots, neighbours with two in common; all dots are joined in eleven pairs.",
                partial(_drawing, "figure 7.2", "overlapping", True),
                170,
            ),
            Drawing(
                "Disjoint: 21 subscriptions, β(2) = 9",
                "Three sets of seven dots; nine pairs, and a dot is left over in each set.",
                partial(_drawing, "figure 7.2", "disjoint", True),
                170,
            ),
        ),
        runs="figures",
    ),
    Section(
        "printed",
        "Algorithm 2 as printed",
        "Step (d)(ii) takes shared predicates from all that the subset has, among them the one that made an earlier subscription "
        "independent. Of {1,2,3,4}, {1,2,3,5} and {1,2,4,6} no publication matches the last two and not the first. With a "
        "private predicate for each, taken from no pool, nothing is missed in as many fields.",
        charts("z", "z", "missed_targets"),
        paper_tables("z", {"Targets missed, of those drawn from subsets (%)": "missed_targets"}),
    ),
)

PAPER = Paper(
    title="Generating Subscriptions and Publications, reproduced",
    source="Content-based subscriptions, and publications that match those of them that one chooses, and no others.",
    text="All 72 values of both tables come out, by formula and by counting: subscriptions are designed by the corrected algorithm, "
    "every target that the tables count is published, and each publication is matched against all subscriptions. The algorithm as "
    "printed misses targets, and overlap does not always help β(z).",
    readings=("",),
    sections=SECTIONS,
    claims=tuple(claims()),
    misprints=MISPRINTS,
    sweeps=sweeps,
    derived=DERIVED,
)
