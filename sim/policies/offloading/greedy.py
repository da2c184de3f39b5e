"""The greedy policies of ODS: GreedyB3M (algorithms 1, 2) and ModifiedGreedyFB3M (algorithms 4 to 7)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Decision, Objective, Problem
from sim.policies.offloading.process import WithoutParameters

Engine = Literal["delta", "lazy", "slow"]


def run(
    problem: Problem,
    objective: Objective = "satisfied",
    by: Literal["ratio", "gain"] = "ratio",
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
    topics = [int(topic) for topic in np.asarray(kept, np.int64)]
    capacity = problem.capacity if capacity is None else capacity
    remaining = problem.need if active is None else np.where(active, problem.need, 0)
    indptr, subscribers = problem.by_topic
    bits = 62 - int(np.diff(indptr).max(initial=1)).bit_length()
    weight = (1 << bits) // np.maximum(problem.need, 1)
    spent, candidates = 0.0, np.ones(problem.topics, np.bool_)

    def take(topic: int) -> None:
        nonlocal spent, remaining
        remaining = remaining.copy()
        remaining[subscribers[indptr[topic] : indptr[topic + 1]]] -= problem.event_rate[topic]
        remaining = np.maximum(remaining, 0)
        spent += float(problem.cost[topic])
        candidates[topic] = False

    for topic in topics:
        take(topic)
    of = np.repeat(np.arange(problem.topics), np.diff(indptr))
    while True:
        left, rate = remaining[subscribers], problem.event_rate[of]
        if objective == "satisfaction":
            gains = np.minimum(left, rate) * weight[subscribers]
        else:
            gains = np.where(rate >= left, 1 << bits, rate * ((1 << bits) // np.maximum(left, 1)))
            gains[left == 0] = 0
        score = np.zeros(problem.topics, np.int64)
        np.add.at(score, of, gains)
        ratio = score.astype(np.float64)
        ratio[~candidates | (problem.cost == 0)] = 0
        if by == "ratio":
            ratio[problem.cost > 0] /= problem.cost[problem.cost > 0]
        best = int(np.argmax(ratio)) if len(ratio) else 0
        if not len(ratio) or ratio[best] == 0:
            return Decision(np.array(topics, np.int32))
        if spent + problem.cost[best] <= capacity:
            topics.append(best)
            take(best)
        candidates[best] = False


class B3m(WithoutParameters):
    """GreedyB3M (ODS, algorithm 2): the topic that satisfies most for its cost, shares of what subscribers still need counted in."""

    objective: Objective = "satisfied"

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
        """Topics in the order of the picks."""
        return run(problem, self.objective)


class Fb3m(WithoutParameters):
    """ModifiedGreedyFB3M (ODS, algorithm 7): the better of greedy by gain (type G) and greedy by gain for the cost (type R)."""

    objective: Objective = "satisfaction"
    _engine: Engine = "delta"

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
        """Topics in the order of the picks; type G where both are worth the same."""
        by_gain = run(problem, self.objective, "gain", engine=self._engine)
        by_ratio = run(problem, self.objective, "ratio", engine=self._engine)
        values = [outcome(problem, decision.topics).total for decision in (by_gain, by_ratio)]
        return by_gain if values[0] >= values[1] else by_ratio


class Fb3mSlow(Fb3m):
    """ModifiedGreedyFB3MSlow (ODS, VII.C): as fb3m, but each pick computes all topics anew that share a subscriber with it."""

    _engine: Engine = "slow"
