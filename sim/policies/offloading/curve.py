"""The value of capacity: decisions at capacities from 0 up to a given one (ODS, fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sim.policies.offloading.greedy import B3m, Fb3m, furthest, run_greedy
from sim.policies.offloading.problem import Decision, OffloadingPolicy, OffloadingProblem


def decisions(
    policy: OffloadingPolicy, problem: OffloadingProblem, steps: int
) -> Iterator[tuple[OffloadingProblem, Decision]]:
    """The problem at capacities falling from its own to 0 in equal steps, with the policy's decision at each.

    Figure 1 of the paper shows the progress of one greedy run instead, which is lower from the first topic on that does not fit: at
    a smaller capacity, the greedy continues with others that do.
    """
    decide = _resumed(policy, problem) if isinstance(policy, B3m | Fb3m) else policy.decide
    for step in range(steps - 1, -1, -1):
        smaller = problem.with_capacity(problem.capacity * step / steps)
        yield smaller, decide(smaller)


def _resumed(policy: B3m | Fb3m, problem: OffloadingProblem) -> Callable[[OffloadingProblem], Decision]:
    """A greedy policy's decisions at smaller capacities, resumed from its picks at the full one.

    Up to the first pick that does not fit, the picks at a smaller capacity are the same: it fits no more than the full one.
    """
    full = {by: run_greedy(problem, policy.objective, by).topics for by in policy.runs}
    spent = {by: np.cumsum(problem.cost[topics]) for by, topics in full.items()}

    def decide(smaller: OffloadingProblem) -> Decision:
        fitting = {by: full[by][: np.searchsorted(spent[by], smaller.capacity, "right")] for by in policy.runs}
        return furthest(
            smaller, [run_greedy(smaller, policy.objective, by, kept=topics) for by, topics in fitting.items()]
        )

    return decide
