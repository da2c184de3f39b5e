"""The best points and variants of results: by one metric's mean, under limits on others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.comparison import by_replication, variants_of
from sim import toml
from sim.experiments.statistics import Interval, mean_interval, paired_t, welch_t
from sim.expressions import Limit, Value

if TYPE_CHECKING:
    from sim.experiments.results import Results

Place = tuple[int, str]
"""A point's number and a variant's name."""


@dataclass(frozen=True)
class Bound:
    """A limit, and what a candidate's mean of its metric is."""

    limit: Limit
    value: Interval

    @property
    def holds(self) -> bool:
        """Whether the mean is within the limit."""
        return bool(self.value.n) and self.limit.holds(self.value.mean)

    @property
    def surely(self) -> bool:
        """Whether all of the mean's 95 % interval is; of a single value nothing is sure."""
        ends = (self.value.low, self.value.high) if self.value.bounded else (self.value.mean,)
        return self.value.n > 1 and all(map(self.limit.holds, ends))


@dataclass(frozen=True)
class Candidate:
    """A variant at a point: the metric's mean, what its limits say, and the difference of the mean to that of the best.

    Differences are in the metric's unit, paired where runs share their random numbers; None for the best itself.
    """

    point: int
    variant: str
    value: Interval
    bounds: Sequence[Bound]
    difference: Interval | None

    @property
    def tied(self) -> bool:
        """Whether it cannot be told apart from the best: the difference's 95 % interval contains 0, or there are no two runs."""
        d = self.difference
        return d is not None and (d.n < 2 or not (d.excludes(0) if d.bounded else d.mean != 0))


@dataclass(frozen=True)
class Ranking:
    """Those that meet all limits, the best first; of how many; and the limits with how many do not meet each, and the nearest mean."""

    candidates: Sequence[Candidate]
    count: int
    missed: Mapping[Limit, tuple[int, float | None]]


def best(results: Results, metric: str, maximise: bool = False, limits: Sequence[Limit] = ()) -> Ranking:
    """All points and variants by the mean of a metric; the lower point number comes first where means are the same.

    Left out are those where the metric is undefined, or the mean of a limit's metric is not within it. A variant that is the same
    run at several points counts once, at the first.
    """
    values = _values(results, metric)
    bounds = {limit: _values(results, limit.metric) for limit in limits}
    places = [place for place in _places(results) if not np.isnan(values[place]).all()]
    bound = {place: [Bound(limit, mean_interval(of[place])) for limit, of in bounds.items()] for place in places}
    means = {place: mean_interval(values[place]) for place in places if all(b.holds for b in bound[place])}
    ranked = sorted(means, key=lambda place: -means[place].mean if maximise else means[place].mean)
    candidates = [
        Candidate(*place, means[place], bound[place], _difference(values[place], values[ranked[0]]) if n else None)
        for n, place in enumerate(ranked)
    ]
    return Ranking(
        candidates, len(places), {limit: _missed([bound[p][n] for p in places]) for n, limit in enumerate(limits)}
    )


def _values(results: Results, metric: str) -> dict[Place, NDArray[np.float64]]:
    """By point and variant, a value for each set of runs that share their random numbers, in one order; NaN where there is none."""
    values = by_replication(results, metric)
    pairs = values.index.droplevel("point")
    known, count = pairs.unique(), len(results.manifest["points"])
    table = np.full((count, len(known), values.shape[1]), np.nan)
    table[values.index.get_level_values("point"), known.get_indexer(pairs)] = values
    return {(point, str(name)): table[point, :, n] for point in range(count) for n, name in enumerate(values)}


def _places(results: Results) -> list[Place]:
    """Points and variants in their order, each once that is the same runs."""
    runs: dict[Place, list[str]] = {}
    for run, point, name in results.runs[["run", "point", "variant"]].itertuples(index=False, name=None):
        runs.setdefault((int(point), str(name)), []).append(run)
    order = variants_of(results)
    first: dict[tuple[str, ...], Place] = {}
    for place in sorted(runs, key=lambda place: (place[0], order.index(place[1]))):
        first.setdefault(tuple(runs[place]), place)
    return list(first.values())


def _difference(values: NDArray[np.float64], best: NDArray[np.float64]) -> Interval:
    paired = (~np.isnan(values) & ~np.isnan(best)).any()
    return (paired_t(values, best) if paired else welch_t(values, best)).difference


def _missed(bounds: Sequence[Bound]) -> tuple[int, float | None]:
    means = [bound.value.mean for bound in bounds if bound.value.n]
    nearest = min if bounds[0].limit.op.startswith("<") else max
    return sum(not bound.holds for bound in bounds), nearest(means, default=None)


def arguments(results: Results, point: int) -> list[str]:
    """A point as arguments of `brokersim run`: `--set`, `network.brokers=20`, …"""
    values, sweep = results.manifest["points"][point], results.manifest.get("sweep", {})
    pairs = [f"{key}={_written(value, sweep.get(key))}" for key, value in values.items()]
    return [part for pair in pairs for part in ("--set", pair)]


def _written(value: Value, said: object) -> str:
    """A value as --set reads it: a table, of which points have the kind alone, as the sweep says it."""
    for whole in said if isinstance(said, list) else ():
        if isinstance(whole, dict) and value in (whole.get("kind"), toml.text(whole)):
            return toml.text(whole)
    text = toml.text(value)
    return text if toml.value(text) == value else json.dumps(value)
