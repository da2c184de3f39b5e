"""Offloading: decisions against the best proven bound, and decisions that start from the previous one against new ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, alternate, cpu_seconds
from benchmarks.offloading import policy, spotify
from sim.policies.offloading.bounds import upper_bounds
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Decision, Objective, OffloadingPolicy, OffloadingProblem

SCALE = 1 / 50
SEEDS = (1, 2, 3)
TAUS = (2, 27, 276, 2763)
BARS = {
    ("dense", "portfolio"): (0.99, 0.99, 0.95, 0.70),
    ("sparse", "portfolio"): (0.99, 0.99, 0.95, 0.74),
    ("dense", "fb3m"): (0.96, 0.96, 0.96, 0.96),
    ("sparse", "fb3m"): (0.96, 0.96, 0.96, 0.96),
}
"""Value over bound, at least, by shape, policy and tau."""
AGAIN = (1, 2, 3, 41, 42, 43)
"""Seeds of decisions made again: those of above, and others that no constant was chosen by."""
CHANGED, SIGMA = 0.01, 0.7
"""The share of rates that change, and the standard deviation of the logarithm of what by: two thirds by no more than twice or half."""


def figures() -> Iterator[Figure]:
    """What is proven of decisions; then what starting from the decision before saves."""
    for (shape, name), bars in BARS.items():
        for tau, bar in zip(TAUS, bars, strict=True):
            ratios = [proven(spotify(shape, SCALE, tau, seed), policy(name)) for seed in SEEDS]
            yield Figure(
                f"{name}, {shape}, scale 1/50, tau = {tau:,}: value over the best proven bound, seeds 1, 2, 3",
                ", ".join(f"{ratio:.4f}" for ratio in ratios),
                f"≥ {bar:.2f}",
                min(ratios) >= bar,
            )
    for shape in ("dense", "sparse"):
        for name in ("b3m", "fb3m"):
            for tau in TAUS:
                again = [restart(spotify(shape, SCALE, tau, seed), policy(name), seed) for seed in AGAIN]
                faster, moved = median(r.faster for r in again), max(r.moved for r in again)
                value, redrawn = min(r.value for r in again), min(r.redrawn for r in again)
                yield Figure(
                    f"{name}, {shape}, scale 1/50, tau = {tau:,}: decided again after 1 % of the rates changed (median, worst of 6)",
                    f"{faster:.1f} times faster, {moved:.2f} of the moves, value {value:.5f} (redrawn: {redrawn:.5f})",
                    "≥ 3, ≤ 0.40, ≥ 0.999",
                    faster >= 3 and moved <= 0.4 and min(value, redrawn) >= 0.999,
                )


def proven(problem: OffloadingProblem, by: OffloadingPolicy) -> float:
    """The value of a decision relative to the least of all bounds."""
    topics = by.decide(problem).topics
    bound = min(upper_bounds(problem, by.objective, topics).values())
    return outcome(problem, topics).value_of(by.objective) / bound


@dataclass(frozen=True)
class Restart:
    """A decision that starts from the one before, beside a new one: times faster, moves over moves, value over value.

    `redrawn`: value over value where rates are not some times what they were but those of any other topics.
    """

    faster: float
    moved: float
    value: float
    redrawn: float


def restart(before: OffloadingProblem, by: OffloadingPolicy, seed: int) -> Restart:
    """Change a share of the rates, and decide again, either way."""
    first = by.decide(before)
    rng = np.random.default_rng(seed)
    some = rng.choice(before.topics, round(CHANGED * before.topics), replace=False)
    after = _changed(before, some, before.event_rate[some] * rng.lognormal(0, SIGMA, len(some)))
    found: dict[bool, Decision] = {}

    def decide(warm: bool) -> float:
        return cpu_seconds(lambda: found.update({warm: by.decide(after, first if warm else None)}))

    decide(warm=True)  # compiles the kernels, and derives what both need
    _, _, faster = alternate(lambda: decide(warm=False), lambda: decide(warm=True), rounds=3)
    moves = [len(np.setxor1d(first.topics, found[warm].topics)) for warm in (True, False)]
    values = [_value(after, found[warm], by.objective) for warm in (True, False)]
    other = _changed(before, some, rng.choice(before.event_rate, len(some)))
    redrawn = [_value(other, by.decide(other, previous), by.objective) for previous in (first, None)]
    return Restart(faster, moves[0] / max(moves[1], 1), values[0] / values[1], redrawn[0] / redrawn[1])


def _changed(
    problem: OffloadingProblem, topics: NDArray[np.int64], rates: NDArray[np.number[Any]]
) -> OffloadingProblem:
    """The problem with changed rates of some topics, and their changed costs."""
    event_rate = problem.event_rate.copy()
    event_rate[topics] = np.maximum(1, np.rint(rates))
    return replace(problem, event_rate=event_rate, cost=(event_rate * problem.degrees).astype(np.float64))


def _value(problem: OffloadingProblem, decision: Decision, objective: Objective) -> float:
    """The value of a decision; 0 if it exceeds the capacity."""
    comes_to = outcome(problem, decision.topics)
    return comes_to.value_of(objective) if comes_to.cost <= problem.capacity else 0.0
