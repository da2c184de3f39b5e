"""The numbers that test claims. Each is computed per replication, whose points and variants share random numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

import pandas as pd

from sim.papers.claims import ClaimedQuantity

_P = ParamSpec("_P")
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


def _quantity(
    name: str, unit: str = ""
) -> Callable[[Callable[Concatenate[pd.DataFrame, _P], pd.Series]], Callable[_P, ClaimedQuantity]]:
    """Decorator: makes a quantity of a function of a table of runs and arguments, which `name` has in braces."""

    def decorate(of: Callable[Concatenate[pd.DataFrame, _P], pd.Series]) -> Callable[_P, ClaimedQuantity]:
        @wraps(of)
        def asked(*arguments: _P.args, **named: _P.kwargs) -> ClaimedQuantity:
            given = inspect.signature(of).bind(pd.DataFrame(), *arguments, **named).arguments
            said = {"metric": given["metric"].replace("_", " "), "variants": ", ".join(given.get("variants", ()))}

            def number(runs: pd.DataFrame) -> pd.Series:
                return of(**given | {"runs": runs})  # type: ignore[call-arg]  # all arguments are in it

            return ClaimedQuantity(name.format_map(given | said), unit, number)

        return asked

    return decorate


@_quantity("largest {variant} / {baseline}, over {by}")
def largest_ratio(runs: pd.DataFrame, metric: str, variant: str, baseline: str, by: str) -> pd.Series:
    """The ratio of two variants at the point where it is largest on average."""
    ratio = _table(runs, metric, variant, by) / _table(runs, metric, baseline, by)
    return _extreme(ratio, largest=True)


@_quantity("mean gain of {variant} over {baseline}", " %")
def mean_gain(runs: pd.DataFrame, metric: str, variant: str, baseline: str, by: str) -> pd.Series:
    """By how many per cent a variant is below another, averaged over the points."""
    return (100 * (1 - _table(runs, metric, variant, by) / _table(runs, metric, baseline, by))).mean(axis=1)


@_quantity("largest gain of {variant} over {baseline}, over {by}", " %")
def largest_gain(runs: pd.DataFrame, metric: str, variant: str, baseline: str, by: str) -> pd.Series:
    """By how many per cent a variant is below another at the point where that is most on average."""
    return _extreme(100 * (1 - _table(runs, metric, variant, by) / _table(runs, metric, baseline, by)), largest=True)


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


@_quantity("{metric} of {variant}, most minus least {by}")
def shift(runs: pd.DataFrame, metric: str, variant: str, by: str) -> pd.Series:
    """The difference between the last point and the first, which may be 0."""
    table = _table(runs, metric, variant, by)
    return table.iloc[:, -1] - table.iloc[:, 0] if table.size else NOTHING


def extreme_step(metric: str, variant: str, by: str, largest: bool) -> ClaimedQuantity:
    """The relative change between neighbouring points that is largest (or smallest) on average."""

    def of(runs: pd.DataFrame) -> pd.Series:
        table = _table(runs, metric, variant, by)
        steps = 100 * (table.shift(-1, axis=1) / table - 1).iloc[:, :-1]
        return _extreme(steps, largest)

    which = "largest" if largest else "smallest"
    return ClaimedQuantity(f"{which} change of {variant} from one number of {by} to the next", " %", of)


@_quantity("largest {metric} of {variants}")
def largest(runs: pd.DataFrame, metric: str, variants: Sequence[str]) -> pd.Series:
    """The largest value in any run of these variants."""
    return runs[runs["variant"].isin(variants)].groupby("replication")[metric].max()


@_quantity("{metric} of {variant}")
def metric_value(runs: pd.DataFrame, metric: str, variant: str, point: str) -> pd.Series:
    """A metric itself, at one point."""
    chosen = runs[(runs["variant"] == variant) & (runs["point"] == point)]
    return chosen.set_index("replication")[metric]


@_quantity("gain of {variant} over {baseline}, {by} {point}", " %")
def gain(runs: pd.DataFrame, metric: str, variant: str, baseline: str, by: str, point: object) -> pd.Series:
    """By how many per cent a variant is below another, at one point."""
    one, other = (_table(runs, metric, name, by) for name in (variant, baseline))
    if point not in one or point not in other:
        return NOTHING
    return 100 * (1 - one[point] / other[point])


@_quantity("{metric} of {variant}")
def mean_of(runs: pd.DataFrame, metric: str, variant: str) -> pd.Series:
    """A number itself, averaged within each replication."""
    return runs[runs["variant"] == variant].groupby("replication")[metric].mean()


@_quantity("least {metric} of {variant}, {by} {point}", " %")
def least(runs: pd.DataFrame, metric: str, variant: str, by: str, point: object, over: str) -> pd.Series:
    """The least value at one point, over all values of another column."""
    chosen = runs[(runs["variant"] == variant) & (runs[by] == point) & runs[over].notna()]
    return chosen.groupby("replication")[metric].min()


@_quantity("{metric} of {variant}, {one} minus {other}", " points")
def variant_difference(runs: pd.DataFrame, metric: str, variant: str, by: str, one: object, other: object) -> pd.Series:
    """By how much a number is higher in one group of points than in another, on average."""
    table = _table(runs, metric, variant, by)
    return table[one] - table[other] if {one, other} <= set(table) else NOTHING


@_quantity("{metric} of {variant} against {baseline}", " %")
def between_variants(runs: pd.DataFrame, metric: str, variant: str, baseline: str) -> pd.Series:
    """The relative difference between two variants, mean over the points."""
    one, other = (
        runs[runs["variant"] == name].set_index(["replication", "point"])[metric] for name in (variant, baseline)
    )
    return (100 * (one / other - 1)).groupby("replication").mean()
