"""The greedy policies of ODS: GreedyB3M (algorithms 1, 2) and ModifiedGreedyFB3M (algorithms 4 to 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.policies.offloading import greedy_kernels
from sim.policies.offloading.outcome import cost_of, outcome
from sim.policies.offloading.problem import Decision, Objective, Problem
from sim.policies.offloading.process import WithoutParameters

By = Literal["ratio", "gain"]
Number = TypeVar("Number", bound=np.generic)
Engine = Literal["delta", "lazy", "slow"]
ENGINES: tuple[Engine, ...] = get_args(Engine)  # in the order of the kernels' numbers


def run(
    problem: Problem,
    objective: Objective = "satisfied",
    by: By = "ratio",
    *,
    engine: Engine = "delta",
    active: NDArray[np.bool_] | None = None,
    kept: ArrayLike = (),
    capacity: float | None = None,
) -> Decision:
    """Pick the topic with the highest score again and again; one that does not fit the rest of the capacity is skipped for good.

    `by` ratio divides what a topic gains by its cost (type R), gain does not (type G). All engines pick the same topics in the same
    order. `active` (n): the subscribers that count, all by default. `kept`: topics to start from, whose cost is spent and whose events
    are received; they come first in the decision, in their order. `capacity` is that of the problem by default.
    """
    if objective == "satisfied" and engine == "lazy":
        raise ValueError("scores of B3M can rise, so that it cannot be lazy (allowed: delta, slow)")
    given = np.asarray(kept, np.int32)
    spent, capacity = cost_of(problem, given), problem.capacity if capacity is None else capacity
    candidate = (problem.cost > 0) & (spent + problem.cost <= capacity)
    candidate[given] = False
    instance = _instance(problem, objective, active)
    greedy_kernels.receive_all(instance, given)
    engine_number = ENGINES.index(engine)
    picks = greedy_kernels.pick(
        instance, _heap(problem, by), candidate, _writable(problem.cost), spent, capacity, engine_number
    )
    return Decision(np.concatenate([given, picks]))


def _instance(problem: Problem, objective: Objective, active: NDArray[np.bool_] | None) -> greedy_kernels.Instance:
    of_shares = objective == "satisfaction"
    one = 1 << (62 - int(problem.degrees.max(initial=1)).bit_length())
    # half the width is half the cache lines, where that is enough
    largest = max(problem.event_rate.max(initial=0), problem.need.max(initial=0))
    events = np.dtype(np.int32 if largest < 1 << 31 else np.int64)
    missing = problem.need.astype(events)
    if active is not None:
        missing[~active] = 0
    return greedy_kernels.Instance(
        _writable(problem.indptr),
        _writable(problem.indices) if of_shares else problem.indices.copy(),
        np.zeros(0 if of_shares else problem.subscribers, np.bool_),
        *problem.by_topic,
        problem.event_rate.astype(events),
        missing,
        greedy_kernels.worth_of_events(problem.need, one) if of_shares else np.zeros(0, np.int64),
        one,
        of_shares,
        np.zeros(problem.topics, np.int64),
    )


def _heap(problem: Problem, by: By) -> greedy_kernels.Heap:
    topics = problem.topics
    return greedy_kernels.Heap(
        np.empty(topics),
        np.empty(topics, np.int32),
        np.zeros(1, np.int64),
        np.empty(topics, np.int32),
        np.empty(topics, np.int64),
        _writable(problem.cost) if by == "ratio" else np.ones(topics),
    )


def furthest(problem: Problem, decisions: Sequence[Decision]) -> Decision:
    """The one with the largest sum of satisfaction, the first of those on ties."""
    if len(decisions) == 1:
        return decisions[0]
    return max(decisions, key=lambda decision: outcome(problem, decision.topics).total)


def _writable(array: NDArray[Number]) -> NDArray[Number]:
    """The array or its copy; kernels are compiled once for arrays that can be written."""
    return np.require(array, requirements="W")


class B3m(WithoutParameters):
    """GreedyB3M (ODS, algorithm 2): the topic that satisfies most for its cost, shares of what subscribers still need counted in."""

    objective: Objective = "satisfied"
    runs: tuple[By, ...] = ("ratio",)

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
        """Topics in the order of the picks."""
        return run(problem, self.objective)


class Fb3m(WithoutParameters):
    """ModifiedGreedyFB3M (ODS, algorithm 7): the better of greedy by gain (type G) and greedy by gain for the cost (type R)."""

    objective: Objective = "satisfaction"
    runs: tuple[By, ...] = ("gain", "ratio")
    _engine: Engine = "delta"

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
        """Topics in the order of the picks; type G where both are worth the same."""
        return furthest(problem, [run(problem, self.objective, by, engine=self._engine) for by in self.runs])


class Fb3mSlow(Fb3m):
    """ModifiedGreedyFB3MSlow (ODS, VII.C): as fb3m, but each pick computes all topics anew that share a subscriber with it."""

    _engine: Engine = "slow"
