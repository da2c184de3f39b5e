"""How means settle as replications are added."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts import CHART_ROWS, Figure, axis_title, by_colour, by_dash, rounded, spec_of, whole_axis
from analysis.comparison import by_replication, label, variants_of
from analysis.formatting import number, scale, with_unit
from sim.experiments.results import Results
from sim.experiments.statistics import mean_interval
from sim.metrics import METRICS

_FEW = 3
"""The fewest replications whose convergence is shown."""


def convergence(results: Results, metrics: Sequence[str]) -> list[Figure]:
    """For each metric, mean and 95 % confidence interval of the first 2, 3, … replications of each variant."""
    found = []
    for metric in metrics:
        table = running_means(by_replication(results, metric))
        if not (table["high"] > table["low"]).any():
            continue
        names = variants_of(results)
        factor, unit = scale(METRICS[metric].unit, table["mean"].abs().max())
        shown = table.assign(**{name: rounded(table[name] / factor) for name in ("mean", "low", "high")})
        whole = whole_axis(2, int(table["replications"].max()))
        x = alt.X("replications:Q", title="replications", axis=whole, scale=alt.Scale(zero=False, nice=False))
        title = axis_title(label(metric), unit)
        y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
        base = alt.Chart(shown).encode(x=x, color=by_colour(names))
        tips = [alt.Tooltip(f"{name}:Q", format=",.4~r") for name in ("mean", "low", "high")]
        chart = alt.layer(
            base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=title), y2="high:Q"),
            base.mark_line(strokeWidth=1.6, point={"size": 14}).encode(
                y=y, strokeDash=by_dash(names), tooltip=["variant:N", "replications:Q", *tips]
            ),
        )
        last = table.groupby("variant", sort=False).last()["mean"] / factor
        ends = "; ".join(f"{name}: {with_unit(number(mean), unit)}" for name, mean in last.items())
        said = f"Mean {label(metric)} of the first replications by variant; of all: {ends}."
        spec = {**spec_of(chart), "height": 200}
        found.append(Figure(f"convergence-{metric}", "convergence", label(metric), "", said, spec))
    return found


def running_means(values: pd.DataFrame) -> pd.DataFrame:
    """Columns variant, replications, mean, low, high of the first replications, from a column of values for each variant.

    At most as many rows as a chart has, evenly chosen; none of variants with fewer than three replications.
    """
    rows = []
    for variant in values:
        known = values[variant].dropna().to_numpy(np.float64)
        most = max(2, CHART_ROWS // values.shape[1])
        sizes = np.unique(np.linspace(2, known.size, min(most, max(known.size - 1, 0))).astype(int))
        for size in sizes if known.size >= _FEW else ():
            interval = mean_interval(known[:size])
            rows.append((variant, int(size), interval.mean, *interval.ends))
    return pd.DataFrame(rows, columns=["variant", "replications", "mean", "low", "high"])
