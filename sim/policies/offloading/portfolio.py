"""A portfolio of greedy choices for B3M, with local improvement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading import bound_kernels, portfolio_kernels, scoring
from sim.policies.offloading.greedy import again, run_greedy
from sim.policies.offloading.problem import Decision, Objective, OffloadingProblem
from sim.policies.offloading.process import OffloadingWithoutParameters

_Topics = NDArray[np.int32]


class Portfolio(OffloadingWithoutParameters):
    """The best of several greedy runs (GreedyB3M, GreedyFB3M), also over reachable subscribers only, improved: never below `b3m`."""

    objective: Objective = "satisfied"

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """The best choice found, the first on ties, its topics in the order of the last picks."""
        if previous is not None and self._warm_start:
            start = again(problem, previous, self.objective)
            if start is not None:
                return Decision.on(problem, polished(problem, start.topics))
        found = [polished(problem, start) for start in _starts(problem)]
        return Decision.on(problem, max(found, key=lambda topics: satisfied(problem, topics).sum()))


def polished(problem: OffloadingProblem, topics: _Topics) -> _Topics:
    """Improve the topics by steps that satisfy more subscribers, until no step does.

    A step drops topics that satisfy nobody, and fills the free capacity.
    """
    value = satisfied(problem, topics).sum()
    while True:
        other = run_greedy(problem, kept=without_idle(problem, topics)).topics
        higher = satisfied(problem, other).sum()
        if higher <= value:
            return topics
        topics, value = other, higher


def satisfied(problem: OffloadingProblem, topics: _Topics) -> NDArray[np.bool_]:
    """Whether these topics satisfy each subscriber (n); False for those that need nothing."""
    return (problem.need > 0) & (problem.received(topics) >= problem.need)


def within_reach(problem: OffloadingProblem) -> NDArray[np.bool_]:
    """Whether the capacity may satisfy each subscriber (n): fractions of topics that fit suffice within it."""
    fitting = np.where(problem.cost <= problem.capacity, problem.event_rate, 0)
    return bound_kernels.satisfiable(
        problem.indptr,
        problem.indices,
        fitting,
        problem.cost,
        problem.need,
        problem.capacity * (1 + 1e-9),  # so that rounding excludes nobody
    )


def without_idle(problem: OffloadingProblem, topics: _Topics) -> _Topics:
    """The topics without those that satisfy nobody, dropped one by one, the most expensive first, the first on ties."""
    order = np.argsort(-problem.cost[topics], kind="stable")
    stays = np.ones(len(topics), np.bool_)
    stays[order] = ~portfolio_kernels.idle(
        *problem.by_topic,
        scoring.writable(problem.event_rate),
        problem.need,
        problem.received(topics),
        topics[order],
    )
    return topics[stays]


def _starts(problem: OffloadingProblem) -> Iterator[_Topics]:
    """GreedyB3M; both GreedyB3M and GreedyFB3M (type R) over all that the capacity can satisfy; each of the three focused."""
    yield run_greedy(problem).topics
    active = within_reach(problem)
    objectives: tuple[Objective, Objective] = ("satisfied", "satisfaction")
    for objective in objectives:
        start = run_greedy(problem, objective, active=active).topics
        yield start
        for aim in objectives:
            yield _focused(problem, start, aim)


def _focused(problem: OffloadingProblem, topics: _Topics, aim: Objective) -> _Topics:
    """Greedy for only those whom the topics satisfy, which may cost less, then for all; repeated while that satisfies more."""
    reached = satisfied(problem, topics)
    while True:
        other = run_greedy(problem, kept=run_greedy(problem, aim, active=reached).topics).topics
        more = satisfied(problem, other)
        if more.sum() <= reached.sum():
            return topics
        topics, reached = other, more
