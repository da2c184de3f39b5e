"""Maps of the brokers' and links' load over time: a row for each, coloured by window."""

from __future__ import annotations

from itertools import product

import altair as alt
import pandas as pd

from analysis.charts import Figure, axis_title, rounded, spec_of
from analysis.comparison import variants_of
from analysis.formatting import number, scale
from analysis.hottest import LOADED, load_over_time
from analysis.tables import runs_of
from sim.experiments.results import Results

_ROWS, _POINTS = 40, 60
"""The most brokers or links of a map, those with most to do, and about the most points in time."""
_BUSY_ENOUGH = 0.2
"""Utilisations above this are coloured on a scale up to 1."""
_BUSY = {"broker": "Share of time in which a broker's servers are busy", "link": "Share of time in which a link sends"}
_MAPS = {
    "utilisation": ("utilisation", _BUSY),
    "queue_length": ("queue length", dict.fromkeys(LOADED, "Messages that wait, average over time")),
    "messages": (
        "messages per second",
        {"broker": "Messages of publications that a broker receives or sends, from and to users included, per second"},
    ),
}


def load_maps(results: Results) -> list[Figure]:
    """For each variant, utilisation and queue of the hottest brokers and links in its first run.

    Where brokers take no time, their messages instead; no map of links where nothing limits them.
    """
    variants, found = variants_of(results), list[Figure]()
    for place, variant in enumerate(variants):
        for run, of in product(runs_of(results, variant)[:1], LOADED):
            table = load_over_time(results, run, _POINTS, of, _ROWS)
            known = table["utilisation"].notna().any()
            quantities = ("utilisation", "queue_length") if known or of == "link" else ("messages",)
            named = variant if len(variants) > 1 else ""
            found += [_map(table, column, named, place, of) for column in quantities if table[column].max() > 0]
    return found


def _map(table: pd.DataFrame, column: str, variant: str, place: int, of: str) -> Figure:
    what, captions = _MAPS[column]
    span, unit = scale("s", table["end"].max() / 3)
    shown = pd.DataFrame(
        {
            of: table["name"],
            "from": rounded(table["start"] / span),
            "to": rounded(table["end"] / span),
            "value": rounded(table[column]),
        }
    )
    order = list(dict.fromkeys(table.sort_values("rank")["name"]))
    top = float(table[column].max())
    top = max(1.0, top) if column == "utilisation" and top > _BUSY_ENOUGH else top
    colours = alt.Scale(scheme="viridis", reverse=True, domain=[0, top])
    chart = (
        alt.Chart(shown)
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title=axis_title("time", unit), scale=alt.Scale(nice=False, zero=False)),
            x2="to:Q",
            y=alt.Y(f"{of}:N", sort=order, title=of, axis=alt.Axis(labelOverlap=True)),
            color=alt.Color("value:Q", scale=colours, legend=alt.Legend(title=None, orient="right", format=",.4~r")),
            tooltip=[
                alt.Tooltip(f"{of}:N"),
                alt.Tooltip("from:Q", title=axis_title("from", unit), format=",.4~r"),
                alt.Tooltip("to:Q", title=axis_title("to", unit), format=",.4~r"),
                alt.Tooltip("value:Q", title=what, format=",.4~r"),
            ],
        )
    )
    most = table.loc[table[column].idxmax()]
    at = f"{number(float(most['start']) / span)} to {number(float(most['end']) / span)} {unit}"
    value, which = number(float(most[column])), f"{of} {most['name']}"
    return Figure(
        f"hot-{'' if of == 'broker' else 'link-'}{column}-{place}",
        "hot",
        f"{what}{' of links' if of == 'link' else ''}{f': {variant}' if variant else ''}",
        f"{captions[of]}; the {len(order)} {of}s with most to do, in the first replication. At most {value}: {which}, {at}.",
        f"{what} of {len(order)} {of}s over time; at most {value}, {which}, from {at}.",
        {**spec_of(chart), "height": min(20 * len(order), 400) + 10},
        variant=variant or None,
    )
