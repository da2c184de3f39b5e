"""The value of capacity: decisions at capacities from 0 up to a given one (ODS, fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sim.policies.offloading.greedy import B3m, Fb3m, furthest, run_greedy
from sim.policies.offloading.problem import Decision, OffloadingPolicy, OffloadingProblem


def decisions(
    policy: OffloadingPolicy, problem: OffloadingProblem, steps: int
) -> Iterator[tuple[OffloadingProblem, Decision]]:
    """The problem at capacities below its own that fall to 0 by equal steps, with what the policy decides at each.

    Figure 1 of the paper shows the progress of one run instead, which is less from the first topic on that does not fit a smaller
    capacity: a run goes on with others that do.
    """
    decide = _resumed(policy, problem) if isinstance(policy, B3m | Fb3m) else policy.decide
    for step in range(steps - 1, -1, -1):
        smaller = problem.with_capacity(problem.capacity * step / steps)
        yield smaller, decide(smaller)


def _resumed(policy: B3m | Fb3m, problem: OffloadingProblem) -> Callable[[OffloadingProblem], Decision]:
    """A greedy policy's decisions at smaller capacities, resumed from its picks at the full one.

    Up to the first that does not fit these are also the picks of the smaller one: what has not fitted before, does not fit there.
    """
    full = {by: run_greedy(problem, policy.objective, by).topics for by in policy.runs}
    spent = {by: np.cumsum(problem.cost[topics]) for by, topics in full.items()}

    def decide(smaller: OffloadingProblem) -> Decision:
        fitting = {by: full[by][: np.searchsorted(spent[by], smaller.capacity, "right")] for by in policy.runs}
        return furthest(
            smaller, [run_greedy(smaller, policy.objective, by, kept=topics) for by, topics in fitting.items()]
        )

    return decide
