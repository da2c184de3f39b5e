"""Main effects and interactions of a factorial design: a sweep over all combinations of policies, or of other categories."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.sweeps.axes import Axis, axes_of, drawn
from sim.experiments.results import Results
from sim.experiments.statistics import Interval, mean_interval


@dataclass(frozen=True)
class Effect:
    """How much some factors' values change a metric, beyond what fewer of them do: `changes` has (factor, from, to) for each.

    With one factor it is a main effect, the mean difference between two of its values; with two or more an interaction, the
    difference between such differences. Other factors are averaged over. `found` is over replications, in the metric's unit.
    """

    metric: str
    variant: str
    changes: tuple[tuple[str, str, str], ...]
    found: Interval


def factors_of(results: Results) -> list[Axis]:
    """The factors of a factorial design, all combinations of two or more keys with categories; none where a sweep is not one."""
    axes = axes_of(results)
    complete = len(results.points) == math.prod(len(axis.values) for axis in axes)
    return axes if len(axes) > 1 and complete and not drawn(results) and not any(axis.numeric for axis in axes) else []


def design_effects(results: Results, metrics: Sequence[str]) -> Iterator[Effect]:
    """All effects on the metrics of each variant, main effects first; where a run is missing, of the complete replications."""
    factors = factors_of(results)
    for metric, variant in itertools.product(metrics, results.manifest["variants"]):
        cells = _cells(results, factors, metric, variant)
        for order in range(1, len(factors) + 1):
            for chosen in itertools.combinations(range(len(factors)), order):
                for levels in itertools.product(*(range(1, len(factors[number].values)) for number in chosen)):
                    found = mean_interval(_contrast(cells, chosen, levels))
                    changes = tuple(
                        _change(factors[number], level) for number, level in zip(chosen, levels, strict=True)
                    )
                    if found.n:
                        yield Effect(metric, variant, changes, found)


def short(value: object) -> str:
    """A factor's value in a word: of a table, its kind."""
    found = re.search(r'"?kind"?\s*[=:]\s*"([^"]+)"', str(value))
    return found[1] if found else str(value)


def _cells(results: Results, factors: Sequence[Axis], metric: str, variant: str) -> NDArray[np.float64]:
    """The metric by replication and by the value of each factor; NaN where there is no run."""
    runs = results.runs[results.runs["variant"] == variant]
    replications = {number: row for row, number in enumerate(sorted(runs["replication"].unique()))}
    cells = np.full((len(replications), *(len(factor.values) for factor in factors)), np.nan)
    for point, replication, value in runs[["point", "replication", metric]].itertuples(index=False):
        place = (factor.values.index(results.points[factor.key].loc[point]) for factor in factors)
        cells[(replications[replication], *place)] = value
    return cells


def _contrast(cells: NDArray[np.float64], chosen: Sequence[int], levels: Sequence[int]) -> NDArray[np.float64]:
    """The difference of differences between these levels and the first ones, per replication."""
    total = cells
    for factor, level in sorted(zip(chosen, levels, strict=True), reverse=True):
        total = np.diff(total.take([0, level], factor + 1), axis=factor + 1).squeeze(factor + 1)
    return np.asarray(total.reshape(len(total), -1).mean(axis=1), np.float64)


def _change(factor: Axis, level: int) -> tuple[str, str, str]:
    return factor.name, short(factor.values[0]), short(factor.values[level])
