"""The greedy policies of ODS: GreedyB3M (algorithms 1, 2) and ModifiedGreedyFB3M (algorithms 4 to 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.policies.offloading import greedy_kernels, scoring, warm_start
from sim.policies.offloading.outcome import cost_of, outcome
from sim.policies.offloading.problem import By, Decision, Objective, OffloadingProblem
from sim.policies.offloading.process import OffloadingWithoutParameters

GreedyEngine = Literal["delta", "lazy", "slow"]
_ENGINES: tuple[GreedyEngine, ...] = get_args(GreedyEngine)  # in the order of the kernels' numbers
_LITTLE = 0.005
"""The largest free share of the capacity that is filled with few large topics."""
_FAIR = 1 / 8
"""The least share of that free capacity which each of the first topics takes."""


def run_greedy(
    problem: OffloadingProblem,
    objective: Objective = "satisfied",
    by: By = "ratio",
    *,
    engine: GreedyEngine = "delta",
    active: NDArray[np.bool_] | None = None,
    kept: ArrayLike = (),
    capacity: float | None = None,
) -> Decision:
    """Repeatedly pick the topic with the highest score; a topic that does not fit the remaining capacity is skipped permanently.

    `by` "ratio" divides a topic's gain by its cost (type R), "gain" does not (type G). All engines pick the same topics in the same
    order. `active` (n): the subscribers that count, all by default. `kept`: topics to start from, already paid for and received;
    they come first in the decision, in their order. `capacity` is that of the problem by default.
    """
    if objective == "satisfied" and engine == "lazy":
        raise ValueError("scores of B3M can rise, which rules out the lazy engine (allowed: delta, slow)")
    given = np.asarray(kept, np.int32)
    instance = scoring.instance_of(problem, objective, active)
    greedy_kernels.receive_all(instance, given)
    greedy_kernels.score_all(instance)
    how = objective, by, engine
    return Decision.on(
        problem, _go_on(problem, instance, given, *how, problem.capacity if capacity is None else capacity), by
    )


def again(problem: OffloadingProblem, previous: Decision, objective: Objective) -> Decision | None:
    """Decide starting from the previous decision if little has changed since; None where a new decision is better.

    The capacity left after `warm_start.kept` is filled with greedy picks; where it is small, topics that take a fair part of it
    come first, so that few topics change.
    """
    start = warm_start.kept(problem, previous, objective)
    if start is None:
        return None
    topics, capacity, how = start.topics, problem.capacity, (objective, previous.by, _ENGINES[0])
    greedy_kernels.score_all(start.instance)
    topics = _go_on(problem, start.instance, topics, *how, (1 - _LITTLE) * capacity)
    fair = _FAIR * (capacity - cost_of(problem, topics))
    topics = _go_on(problem, start.instance, topics, *how, capacity, fair)
    return Decision.on(problem, _go_on(problem, start.instance, topics, *how, capacity), previous.by)


def _go_on(
    problem: OffloadingProblem,
    instance: greedy_kernels.Instance,
    given: NDArray[np.int32],
    objective: Objective,
    by: By,
    engine: GreedyEngine,
    capacity: float,
    least: float = 0.0,
) -> NDArray[np.int32]:
    """Greedy picks after the given topics (already received in the instance), among topics that cost at least `least`."""
    spent = cost_of(problem, given)
    candidate = (problem.cost > 0) & (problem.cost >= least) & (spent + problem.cost <= capacity)
    candidate[given] = False
    picks = greedy_kernels.pick(
        instance,
        _heap(problem, objective, by),
        candidate,
        scoring.writable(problem.cost),
        spent,
        float(capacity),
        _ENGINES.index(engine),
    )
    return np.concatenate([given, picks])


def _heap(problem: OffloadingProblem, objective: Objective, by: By) -> greedy_kernels.Heap:
    topics = problem.topics
    rising = topics if objective == "satisfied" else 0
    return greedy_kernels.Heap(
        np.empty(topics, greedy_kernels.ENTRY),
        scoring.writable(problem.cost) if by == "ratio" else np.ones(topics),
        np.empty(rising, np.int32),
        np.empty(rising, np.int64),
    )


def furthest(problem: OffloadingProblem, decisions: Sequence[Decision]) -> Decision:
    """The decision with the largest total satisfaction, the first on ties."""
    if len(decisions) == 1:
        return decisions[0]
    return max(decisions, key=lambda decision: outcome(problem, decision.topics).total)


class _Greedy(OffloadingWithoutParameters):
    objective: Objective
    runs: tuple[By, ...]
    _engine: GreedyEngine = "delta"

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """Decide, from the previous decision if possible: topics in the order of the picks; the first run on ties."""
        found = again(problem, previous, self.objective) if previous is not None and self._warm_start else None
        return found or furthest(
            problem, [run_greedy(problem, self.objective, by, engine=self._engine) for by in self.runs]
        )


class B3m(_Greedy):
    """GreedyB3M (ODS, algorithm 2): the topic that satisfies most per cost next, counting shares of what subscribers still need."""

    objective = "satisfied"
    runs = ("ratio",)


class Fb3m(_Greedy):
    """ModifiedGreedyFB3M (ODS, algorithm 7): the better of greedy by gain (type G) and greedy by gain per cost (type R)."""

    objective = "satisfaction"
    runs = ("gain", "ratio")


class Fb3mSlow(Fb3m):
    """ModifiedGreedyFB3MSlow (ODS, VII.C): as fb3m, but each pick recomputes all topics that share a subscriber with it."""

    _engine = "slow"
