"""Sensitivity: the share of a metric's variance due to each swept key, by Sobol indices on a Saltelli sample."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.charts import Figure, rounded, spec_of
from analysis.comparison import label
from analysis.formatting import number
from analysis.sweeps.axes import zipped
from analysis.sweeps.lines import slug
from analysis.sweeps.summary import over_points
from sim.base.installed import need_extra
from sim.experiments.results import Results
from sim.experiments.statistics import varies
from sim.scenario.sweep import SALTELLI

FIRST, TOTAL = "first order", "total"
_COLOURS = ["#0072B2", "#E69F00"]
_SEED = 1
COLUMNS = ["metric", "variant", "key", "order", "index", "low", "high"]


def saltelli(results: Results) -> bool:
    """Whether the points are such a sample."""
    return bool(results.manifest["sweep"].get("sample") == SALTELLI)


def dimensions(results: Results) -> list[str]:
    """The dimensions of the sample: swept keys with the keys zipped to them."""
    groups = zipped(results)
    names = (next((keys for keys in groups if key in keys), [key]) for key in results.manifest["parameters"])
    return list(dict.fromkeys(", ".join(keys) for keys in names))


def sensitivity(results: Results, metrics: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """First-order and total indices of the metrics' means with 95 % confidence intervals, by variant, and reasons for missing ones.

    Columns metric, variant, key (swept), order ("first order": the share of the variance that the key explains alone, "total": with
    all its interactions), index, low, high (bootstrap). Where a mean is missing at any point, or all are equal, there is a sentence
    instead of an index. Source: Saltelli et al. (2010), as SALib estimates them.
    """
    summary = over_points(results, metrics)
    keys = dimensions(results)
    points, samples = len(results.manifest["points"]), int(results.manifest["sweep"]["samples"])
    frames, missing = [], list[str]()
    for metric in metrics:
        for variant in results.manifest["variants"]:
            own = summary[(summary["metric"] == metric) & (summary["variant"] == variant)]
            means = own.set_index("point")["mean"].reindex(range(points)).to_numpy(np.float64)
            absent = np.flatnonzero(np.isnan(means))
            what = f"{label(metric)} of {variant}"
            if points != samples * (2 * len(keys) + 2):
                missing.append(
                    f"No index of {what}: the sample's {points} points are not all those that the estimator needs."
                )
            elif absent.size:
                some = ", ".join(map(str, absent[:5])) + (", …" if absent.size > 5 else "")
                missing.append(
                    f"No index of {what}: {absent.size} of {points} points have no value ({some}); their runs failed, or it is "
                    "undefined there. The estimator needs all."
                )
            elif not varies(means):
                missing.append(f"No index of {what}: it is the same at all points.")
            else:
                rows = list(_indices(means, keys))
                frames.append(pd.DataFrame(rows, columns=COLUMNS[2:]).assign(metric=metric, variant=variant))
    return (pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)), missing


def _indices(means: NDArray[np.float64], keys: list[str]) -> Iterator[tuple[str, str, float, float, float]]:
    need_extra("sensitivity", "a Sobol index")
    from SALib.analyze import sobol

    problem = {"num_vars": len(keys), "names": keys, "bounds": [[0.0, 1.0]] * len(keys)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from resamples that happen not to vary
        found = sobol.analyze(problem, means, seed=_SEED)
    for order, index in ((FIRST, "S1"), (TOTAL, "ST")):
        for key, value, half in zip(keys, found[index], found[f"{index}_conf"], strict=True):
            yield key, order, float(value), float(value - half), float(value + half)


def bars(indices: pd.DataFrame, metric: str, variant: str, place: int) -> Figure:
    """The indices of one metric and variant as bars with their intervals, the largest total first."""
    own = indices[(indices["metric"] == metric) & (indices["variant"] == variant)]
    keys = own[own["order"] == TOTAL].sort_values("index", ascending=False)["key"].tolist()
    shown = own[["key", "order"]].assign(**{column: rounded(own[column]) for column in ("index", "low", "high")})
    base = alt.Chart(shown).encode(
        y=alt.Y("key:N", sort=keys, title=None, axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset("order:N", sort=[FIRST, TOTAL]),
    )
    colour = alt.Color("order:N", scale=alt.Scale(domain=[FIRST, TOTAL], range=_COLOURS), legend=alt.Legend(title=None))
    chart = alt.layer(
        base.mark_bar(opacity=0.85).encode(
            x=alt.X("index:Q", title="share of the variance"),
            color=colour,
            tooltip=[alt.Tooltip("key:N"), alt.Tooltip("order:N"), alt.Tooltip("index:Q", format=".3f")],
        ),
        base.mark_rule(color="#222222", strokeWidth=1.4).encode(x="low:Q", x2="high:Q"),
    )
    first, total = (
        dict(zip(own["key"], own["index"], strict=True)) for _, own in own.groupby(own["order"] == TOTAL, sort=True)
    )
    texts = "; ".join(f"{key}: {number(first[key], 2)} alone, {number(total[key], 2)} in all" for key in keys)
    several = indices["variant"].nunique() > 1
    return Figure(
        f"sobol-{metric}-{place}-{slug(variant)}",
        "sobol",
        f"{label(metric)}: {variant}" if several else label(metric),
        "",
        f"Sobol indices of {label(metric)} under {variant}. {texts}.",
        {**spec_of(chart), "height": 34 * len(keys) + 10},
        variant=variant,
    )
