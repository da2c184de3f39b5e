"""Summaries of a sweep: means, confidence intervals and paired differences, at each point or averaged over points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import PAIR
from sim.experiments.results import Results
from sim.experiments.statistics import ROUNDING, half_width, paired_difference_percent

NUMBERS = ["n", "mean", "low", "high", "difference", "difference_low", "difference_high"]


def over_points(results: Results, metrics: Sequence[str]) -> pd.DataFrame:
    """Metrics at each point: columns point, the swept keys, and those of `summarise`."""
    keys = ["point", *results.manifest["parameters"]]
    return summarise(results.runs, keys, metrics, str(results.manifest["report"]["baseline"]))


def summarise(
    runs: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str], baseline: str | None = None
) -> pd.DataFrame:
    """Metrics by `keys` (columns of the table of runs) and variant, means over replications with 95 % confidence intervals.

    Columns: the keys, variant, metric, n (replications), mean, low, high (in the metric's unit), difference,
    difference_low, difference_high (paired, in % of the baseline's, replication by replication). NaN where there is no interval, no
    run paired with the baseline's, or a pair whose baseline is 0; rows whose metric is never defined are left out.

    Where points differ in other keys too, a replication's value is its mean over the points at which all variants have a value
    (variants without any value are ignored), and only replications with all of these count.
    """
    frames = [_of_metric(runs, list(keys), metric, baseline) for metric in metrics if metric in runs]
    columns = [*keys, "variant", "metric", *NUMBERS]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def _of_metric(runs: pd.DataFrame, keys: list[str], metric: str, baseline: str | None) -> pd.DataFrame:
    place = list(dict.fromkeys([*keys, "point"]))
    pair = ["variant", *(column for column in PAIR if column in runs)]
    index = pd.MultiIndex.from_frame(runs[place + pair])
    values = pd.Series(runs[metric].to_numpy(np.float64, na_value=np.nan), index).unstack(pair)
    values = _averaged(values.reindex(index.droplevel(pair).unique()), keys)
    found = []
    for variant in runs["variant"].unique():
        x = values[variant].to_numpy(np.float64)
        numbers = dict(zip(NUMBERS, interval_rows(x), strict=False))
        if baseline is not None and variant != baseline and baseline in values:
            other = pd.DataFrame(values[baseline]).reindex(columns=values[variant].columns).to_numpy(np.float64)
            percent = paired_difference_percent(x, other)
            percent[((other == 0) & ~np.isnan(x)).any(axis=1)] = (
                np.nan
            )  # percentages would represent only the other pairs
            difference = interval_rows(percent)[1:]
            numbers |= dict(zip(NUMBERS[4:], difference, strict=True))
        table = pd.DataFrame(numbers, values.index, columns=NUMBERS, dtype=np.float64).reset_index()
        found.append(table.assign(variant=variant, metric=metric))
    table = pd.concat(found).sort_index(kind="stable")
    return table[table["n"] > 0].astype({"n": np.int64})


def _averaged(values: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Rows (points) by keys, columns (variant, replication): means over the points that share the keys."""
    groups = values.groupby(level=keys, sort=False, dropna=False)
    if groups.ngroups == len(values):
        return groups.first()
    has = values.notna().T.groupby(level="variant").any().T
    fair = has.loc[:, has.any()].all(axis=1)
    groups = values[fair].groupby(level=keys, sort=False, dropna=False)
    return groups.mean().where(groups.count().eq(groups.size(), axis=0))


def interval_rows(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.int_], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """n, mean, low and high of each row's values (NaN: undefined), as `mean_interval` finds them; NaN where there is none."""
    defined = ~np.isnan(values)
    n = defined.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(defined, values, 0.0).sum(axis=1) / n
        residual = np.where(defined, values - mean[:, None], 0.0)
        deviation = np.sqrt((residual**2).sum(axis=1) / (n - 1))
        half = half_width(deviation / np.sqrt(n), np.maximum(n - 1, 1), 0.95)
    least, most = (
        pick(np.where(defined, values, -sign * np.inf), axis=1) for pick, sign in ((np.min, -1), (np.max, 1))
    )
    size = np.where(defined, np.abs(values), 0.0).max(axis=1, initial=0.0)
    half = np.where(defined.any(axis=1) & (most - least > ROUNDING * size), half, np.nan)
    return n, mean, mean - half, mean + half
