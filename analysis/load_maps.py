"""Maps of the hottest brokers' load over time: a row for each broker, coloured by window."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.charts import CHART_ROWS, Figure, axis_title, rounded, spec_of
from analysis.comparison import variants_of
from analysis.formatting import number, scale
from analysis.hottest import HOTTEST, load_over_time
from analysis.tables import runs_of
from sim.experiments.results import Results

_MAPS = {
    "utilisation": ("utilisation", "Share of time in which a broker's servers are busy"),
    "queue_length": ("queue length", "Messages that wait, average over time"),
    "messages": ("messages per second", "Messages of publications that a broker receives or sends, per second"),
}


def load_maps(results: Results) -> list[Figure]:
    """For each variant, utilisation and queue of the hottest brokers in its first run, or their messages where brokers take no time."""
    variants, found = variants_of(results), list[Figure]()
    for place, variant in enumerate(variants):
        for run in runs_of(results, variant)[:1]:
            table = load_over_time(results, run, points=min(240, CHART_ROWS // HOTTEST))
            known = table["utilisation"].notna().any()
            quantities = ("utilisation", "queue_length") if known else ("messages",)
            named = variant if len(variants) > 1 else ""
            found += [_map(table, column, named, place) for column in quantities if table[column].max() > 0]
    return found


def _map(table: pd.DataFrame, column: str, variant: str, place: int) -> Figure:
    what, caption = _MAPS[column]
    span, unit = scale("s", table["end"].max() / 3)
    shown = pd.DataFrame(
        {
            "broker": table["name"],
            "from": rounded(table["start"] / span),
            "to": rounded(table["end"] / span),
            "value": rounded(table[column]),
        }
    )
    order = list(dict.fromkeys(table.sort_values("rank")["name"]))
    top = max(1.0, float(table[column].max())) if column == "utilisation" else float(table[column].max())
    colours = alt.Scale(scheme="viridis", reverse=True, domain=[0, top])
    chart = (
        alt.Chart(shown)
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title=axis_title("time", unit), scale=alt.Scale(nice=False, zero=False)),
            x2="to:Q",
            y=alt.Y("broker:N", sort=order, title="broker"),
            color=alt.Color("value:Q", scale=colours, legend=alt.Legend(title=None, orient="right", format=",.4~r")),
            tooltip=[
                alt.Tooltip("broker:N"),
                alt.Tooltip("from:Q", title=axis_title("from", unit), format=",.4~r"),
                alt.Tooltip("to:Q", title=axis_title("to", unit), format=",.4~r"),
                alt.Tooltip("value:Q", title=what, format=",.4~r"),
            ],
        )
    )
    most = table.loc[table[column].idxmax()]
    at = f"{number(float(most['start']) / span)} to {number(float(most['end']) / span)} {unit}"
    return Figure(
        f"hot-{column}-{place}",
        "hot",
        f"{what}{f': {variant}' if variant else ''}",
        f"{caption}; the {len(order)} brokers with the most to do, in the first replication. At most "
        f"{number(float(most[column]))}: broker {most['name']}, {at}.",
        f"{what} of {len(order)} brokers over time; at most {number(float(most[column]))}, broker {most['name']}, from {at}.",
        {**spec_of(chart), "height": 20 * len(order) + 10},
    )
