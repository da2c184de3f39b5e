"""The numbers that claims are tested by. Each is taken per replication, whose points and variants share what is random."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from sim.papers.claims import ClaimedQuantity

NOTHING = pd.Series(dtype=float)
"""No value in any replication: the runs that a number needs are missing."""


def _table(runs: pd.DataFrame, metric: str, variant: str, by: str) -> pd.DataFrame:
    """A row per replication, a column per point, ascending."""
    chosen = runs[runs["variant"] == variant]
    table: pd.DataFrame = chosen.pivot_table(index="replication", columns=by, values=metric, dropna=False)
    return table.sort_index(axis=1)


def _extreme(table: pd.DataFrame, largest: bool) -> pd.Series:
    """The column whose mean is the largest, or the smallest."""
    means = table.mean().dropna()
    return NOTHING if means.empty else table[means.idxmax() if largest else means.idxmin()]


def largest_ratio(metric: str, variant: str, baseline: str, by: str) -> ClaimedQuantity:
    """The ratio of two variants at the point where it is largest on average."""

    def of(runs: pd.DataFrame) -> pd.Series:
        ratio = _table(runs, metric, variant, by) / _table(runs, metric, baseline, by)
        return _extreme(ratio, largest=True)

    return ClaimedQuantity(f"largest {variant} / {baseline}, over {by}", "", of)


def mean_gain(metric: str, variant: str, baseline: str, by: str) -> ClaimedQuantity:
    """By how many per cent a variant is below another, mean over the points."""

    def of(runs: pd.DataFrame) -> pd.Series:
        return (100 * (1 - _table(runs, metric, variant, by) / _table(runs, metric, baseline, by))).mean(axis=1)

    return ClaimedQuantity(f"mean gain of {variant} over {baseline}", " %", of)


def change(metric: str, variant: str, by: str, *between: float) -> ClaimedQuantity:
    """The relative change from the first point to the last, or between two of them."""

    def of(runs: pd.DataFrame) -> pd.Series:
        table = _table(runs, metric, variant, by)
        if not table.size or not set(between) <= set(table):
            return NOTHING
        first, last = between or (table.columns[0], table.columns[-1])
        return 100 * (table[last] / table[first] - 1)

    ends = f"{by} {between[0]} to {between[1]}" if between else f"the least to the most {by}"
    return ClaimedQuantity(f"change of {variant} from {ends}", " %", of)


def shift(metric: str, variant: str, by: str) -> ClaimedQuantity:
    """The difference between the last point and the first, which may be 0."""

    def of(runs: pd.DataFrame) -> pd.Series:
        table = _table(runs, metric, variant, by)
        return table.iloc[:, -1] - table.iloc[:, 0] if table.size else NOTHING

    return ClaimedQuantity(f"{metric.replace('_', ' ')} of {variant}, most minus least {by}", "", of)


def extreme_step(metric: str, variant: str, by: str, largest: bool) -> ClaimedQuantity:
    """Of the relative changes between neighbouring points the one that is largest (or smallest) on average."""

    def of(runs: pd.DataFrame) -> pd.Series:
        table = _table(runs, metric, variant, by)
        steps = 100 * (table.shift(-1, axis=1) / table - 1).iloc[:, :-1]
        return _extreme(steps, largest)

    which = "largest" if largest else "smallest"
    return ClaimedQuantity(f"{which} change of {variant} from one number of {by} to the next", " %", of)


def largest(metric: str, variants: Sequence[str]) -> ClaimedQuantity:
    """The largest value in any run of these variants."""

    def of(runs: pd.DataFrame) -> pd.Series:
        return runs[runs["variant"].isin(variants)].groupby("replication")[metric].max()

    return ClaimedQuantity(f"largest {metric.replace('_', ' ')} of {', '.join(variants)}", "", of)


def metric_value(metric: str, variant: str, point: str) -> ClaimedQuantity:
    """A metric itself, at one point."""

    def of(runs: pd.DataFrame) -> pd.Series:
        chosen = runs[(runs["variant"] == variant) & (runs["point"] == point)]
        return chosen.set_index("replication")[metric]

    return ClaimedQuantity(f"{metric.replace('_', ' ')} of {variant}", "", of)


def gain(metric: str, variant: str, baseline: str, by: str, point: object) -> ClaimedQuantity:
    """By how many per cent a variant is below another, at one point."""

    def of(runs: pd.DataFrame) -> pd.Series:
        one, other = (_table(runs, metric, name, by) for name in (variant, baseline))
        if point not in one or point not in other:
            return NOTHING
        return 100 * (1 - one[point] / other[point])

    return ClaimedQuantity(f"gain of {variant} over {baseline}, {by} {point}", " %", of)


def mean_of(metric: str, variant: str) -> ClaimedQuantity:
    """A number itself, mean over all that a replication has of it."""

    def of(runs: pd.DataFrame) -> pd.Series:
        return runs[runs["variant"] == variant].groupby("replication")[metric].mean()

    return ClaimedQuantity(f"{metric.replace('_', ' ')} of {variant}", "", of)


def least(metric: str, variant: str, by: str, point: object, over: str) -> ClaimedQuantity:
    """The least value at one point, over all that another column has."""

    def of(runs: pd.DataFrame) -> pd.Series:
        chosen = runs[(runs["variant"] == variant) & (runs[by] == point) & runs[over].notna()]
        return chosen.groupby("replication")[metric].min()

    return ClaimedQuantity(f"least {metric.replace('_', ' ')} of {variant}, {by} {point}", " %", of)


def variant_difference(metric: str, variant: str, by: str, one: object, other: object) -> ClaimedQuantity:
    """By how much a number is higher in one group of points than in another, on average."""

    def of(runs: pd.DataFrame) -> pd.Series:
        table = _table(runs, metric, variant, by)
        return table[one] - table[other] if {one, other} <= set(table) else NOTHING

    return ClaimedQuantity(f"{metric.replace('_', ' ')} of {variant}, {one} minus {other}", " points", of)


def between_variants(metric: str, variant: str, baseline: str) -> ClaimedQuantity:
    """The relative difference between two variants, mean over the points."""

    def of(runs: pd.DataFrame) -> pd.Series:
        one, other = (
            runs[runs["variant"] == name].set_index(["replication", "point"])[metric] for name in (variant, baseline)
        )
        return (100 * (one / other - 1)).groupby("replication").mean()

    return ClaimedQuantity(f"{metric.replace('_', ' ')} of {variant} against {baseline}", " %", of)
