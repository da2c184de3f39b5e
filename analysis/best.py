"""The best points and variants of results: by one metric's mean, under limits on others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.comparison import by_replication, variants_of
from sim.base.errors import ResultsError, unknown
from sim.experiments.results import Results
from sim.experiments.statistics import Interval, mean_interval, paired_t, welch_t
from sim.files import toml
from sim.scenario.experiment import unit_of
from sim.scenario.expressions import KEEPS_UP, Limit, Value, guarded
from sim.scenario.keys import option_of

Place = tuple[int, str]
"""A point's number and a variant's name."""


@dataclass(frozen=True)
class Bound:
    """A limit with a candidate's mean of the limited metric."""

    limit: Limit
    value: Interval

    @property
    def holds(self) -> bool:
        """Whether the mean is within the limit."""
        return bool(self.value.n) and self.limit.holds(self.value.mean)

    @property
    def surely(self) -> bool:
        """Whether the mean's whole 95 % confidence interval meets the limit; False for a single value."""
        return self.value.n > 1 and all(map(self.limit.holds, self.value.ends))


@dataclass(frozen=True)
class Candidate:
    """A variant at a point: its mean of the ranked metric, its limits, and the difference of its mean from the best one.

    Differences are in the metric's unit, paired where runs share their random numbers; None for the best itself.
    """

    point: int
    variant: str
    value: Interval
    bounds: Sequence[Bound]
    difference: Interval | None

    @property
    def tied(self) -> bool:
        """Whether it cannot be distinguished from the best: the difference's 95 % confidence interval contains 0, or does not exist."""
        d = self.difference
        return d is not None and (d.n < 2 or not (d.excludes(0) if d.bounded else d.mean != 0))


@dataclass(frozen=True)
class Ranking:
    """The candidates that meet all limits, best first; the total number; and for each limit, how many miss it, and the nearest mean.

    `fixed` are the keys whose values all of them share.
    """

    fixed: Mapping[str, Value]
    candidates: Sequence[Candidate]
    count: int
    missed: Mapping[Limit, tuple[int, float | None]]


def best(results: Results, metric: str, maximise: bool = False, limits: Sequence[Limit] = ()) -> Ranking:
    """Rank all points and variants by the mean of a metric; of equal means the lower point number comes first.

    Candidates are left out where the metric is undefined or a limit is missed; and, if the metrics cover only deliveries, where
    brokers are saturated, which is a limit of its own. A variant with the same runs at several points counts once, at the first.
    """
    (ranking,) = best_for_each(results, (), metric, maximise, limits)
    return ranking


def best_for_each(
    results: Results, keys: Sequence[str], metric: str, maximise: bool = False, limits: Sequence[Limit] = ()
) -> list[Ranking]:
    """Rank as `best` does, separately for each combination of the given keys' values, in the order of the points.

    Raises ResultsError where a key is not swept.
    """
    swept, points = results.manifest["parameters"], results.manifest["points"]
    for key in keys:
        if key not in swept:
            raise ResultsError(
                f"for each {key}: {unknown('swept key', key, swept) if swept else 'no key is swept here'}"
            )
    groups: dict[tuple[Value, ...], list[int]] = {}
    for number, point in enumerate(points):
        groups.setdefault(tuple(point[key] for key in keys), []).append(number)
    values = _values(results, metric)
    if (results.runs[KEEPS_UP.metric] > 0).any():
        limits = guarded(limits, [metric])
    bounds = {limit: _values(results, limit.metric) for limit in limits}
    return [
        _ranking(dict(zip(keys, fixed, strict=True)), _places(results, own), values, maximise, bounds)
        for fixed, own in groups.items()
    ]


def _ranking(
    fixed: Mapping[str, Value],
    places: Sequence[Place],
    values: Mapping[Place, NDArray[np.float64]],
    maximise: bool,
    bounds: Mapping[Limit, Mapping[Place, NDArray[np.float64]]],
) -> Ranking:
    places = [place for place in places if not np.isnan(values[place]).all()]
    bound = {place: [Bound(limit, mean_interval(of[place])) for limit, of in bounds.items()] for place in places}
    means = {place: mean_interval(values[place]) for place in places if all(b.holds for b in bound[place])}
    ranked = sorted(means, key=lambda place: -means[place].mean if maximise else means[place].mean)
    candidates = [
        Candidate(*place, means[place], bound[place], _difference(values[place], values[ranked[0]]) if n else None)
        for n, place in enumerate(ranked)
    ]
    missed = {limit: _missed(limit, [bound[place][n] for place in places]) for n, limit in enumerate(bounds)}
    return Ranking(fixed, candidates, len(places), missed)


def _values(results: Results, metric: str) -> dict[Place, NDArray[np.float64]]:
    """The values by point and variant, one per set of runs that share random numbers, in the same order; NaN where missing."""
    values = by_replication(results, metric)
    pairs = values.index.droplevel("point")
    known, count = pairs.unique(), len(results.manifest["points"])
    table = np.full((count, len(known), values.shape[1]), np.nan)
    table[values.index.get_level_values("point"), known.get_indexer(pairs)] = values
    return {(point, str(name)): table[point, :, n] for point in range(count) for n, name in enumerate(values)}


def _places(results: Results, points: Sequence[int]) -> list[Place]:
    """The given points with their variants, in order; those with the same runs appear once."""
    table = results.runs.loc[results.runs["point"].isin(points), ["run", "point", "variant"]]
    runs: dict[Place, list[str]] = {}
    for run, point, name in table.itertuples(index=False, name=None):
        runs.setdefault((int(point), str(name)), []).append(run)
    order = variants_of(results)
    first: dict[tuple[str, ...], Place] = {}
    for place in sorted(runs, key=lambda place: (place[0], order.index(place[1]))):
        first.setdefault(tuple(runs[place]), place)
    return list(first.values())


def _difference(values: NDArray[np.float64], best: NDArray[np.float64]) -> Interval:
    paired = (~np.isnan(values) & ~np.isnan(best)).any()
    return (paired_t(values, best) if paired else welch_t(values, best)).difference


def _missed(limit: Limit, bounds: Sequence[Bound]) -> tuple[int, float | None]:
    means = [bound.value.mean for bound in bounds if bound.value.n]
    nearest = min if limit.op.startswith("<") else max
    return sum(not bound.holds for bound in bounds), nearest(means, default=None)


def arguments(results: Results, point: int) -> list[str]:
    """A point as arguments of `brokersim run`, such as `--set network.brokers=20`."""
    values, sweep = results.manifest["points"][point], results.manifest.get("sweep", {})
    scenario, variants = results.manifest["scenario"], results.manifest["variants"]
    pairs = [
        f"{key}={_written(value, sweep.get(key), unit_of(key, scenario, variants))}" for key, value in values.items()
    ]
    return [part for pair in pairs for part in ("--set", pair)]


def _written(value: Value, said: object, unit: str) -> str:
    """A value as --set reads it; a table, whose kind alone is recorded at points, as written in the sweep."""
    for whole in said if isinstance(said, list) else ():
        if isinstance(whole, dict) and value in (whole.get("kind"), toml.text(whole)):
            return toml.text(whole)
    if unit == "s":
        return option_of(value, unit)
    text = toml.text(value)
    return text if toml.value(text) == value else json.dumps(value)
