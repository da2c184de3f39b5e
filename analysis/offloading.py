"""The value of capacity: satisfied subscribers, or their satisfaction, against the back end's capacity (ODS, fig. 1, 2)."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from analysis.charts import Figure, by_colour, by_dash, rounded, spec_of
from analysis.formatting import number
from sim.base.naming import Raw

BOUND = "upper bound"
_OBJECTIVES = {"satisfied": "satisfied subscribers", "satisfaction": "sum of subscribers' satisfaction"}


def capacity_curve(points: Sequence[Raw], policy: str, objective: str) -> Figure:
    """The chart of a policy's curve: `capacity`, `value` of the objective and optionally `upper_bounds` at each point, ascending."""
    names = [policy]
    rows = [{"variant": policy, "capacity": point["capacity"], "value": float(point["value"])} for point in points]
    if any(point["upper_bounds"] for point in points):
        names.append(BOUND)
        rows += [
            {"variant": BOUND, "capacity": point["capacity"], "value": min(point["upper_bounds"].values())}
            for point in points
            if point["upper_bounds"]
        ]
    table = pd.DataFrame(rows)
    table = table.assign(capacity=rounded(table["capacity"]), value=rounded(table["value"]))
    title = _OBJECTIVES[objective]
    chart = (
        alt.Chart(table)
        .mark_line(point={"size": 16})
        .encode(
            x=alt.X("capacity:Q", title="capacity (upper limit of the cost of kept topics)"),
            y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=True)),
            color=by_colour(names),
            strokeDash=by_dash(names),
            tooltip=[
                alt.Tooltip("variant:N"),
                alt.Tooltip("capacity:Q", format=",.6~g"),
                alt.Tooltip("value:Q", title=title, format=",.6~g"),
            ],
        )
    )
    last = points[-1]
    return Figure(
        "capacity",
        "offloading",
        "What capacity buys",
        "",
        f"{title} against capacity by {policy}: {number(last['value'])} at {number(last['capacity'])}.",
        {**spec_of(chart), "title": f"Value of capacity ({policy})", "height": 320},
    )
