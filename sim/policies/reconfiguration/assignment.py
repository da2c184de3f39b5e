"""The configuration with the least delay in hops, as a linear sum assignment problem (DYNATOPS, appendix A)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem
from sim.policies.reconfiguration.process import ReconfigurationWithoutParameters


def delay_costs(problem: ReconfigurationProblem) -> NDArray[np.float64]:
    """What delay costs if a broker (row) stands on a node (column), in hops weighted by publications (eq. 14)."""
    wanted = problem.wanted.astype(np.float64)
    costs: NDArray[np.float64] = wanted.T @ (
        problem.publications[:, None] * problem.hops[problem.roots].astype(np.float64)
    )
    return costs


def least_delay(problem: ReconfigurationProblem, relocation_cost: float = 0.0) -> NDArray[np.int32]:
    """The node of each broker (n) for which the delay in hops is least.

    Every broker that would move pays the `relocation_cost` on top of its weighted delay.
    """
    costs = delay_costs(problem)
    if relocation_cost:
        costs *= problem.delay_weight
        costs += relocation_cost
        costs[np.arange(len(costs)), problem.node_of] -= relocation_cost
    return linear_sum_assignment(costs)[1].astype(np.int32)


class Lsap(ReconfigurationWithoutParameters):
    """The exact least delay in hops (appendix A), regardless of overhead and of how many brokers move.

    By round-trip times all hops are taken to be equally long, which only scales the delay: the places are the same, and no longer
    those with the least delay.
    """

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The assignment that Jonker and Volgenant's algorithm finds."""
        return Reconfiguration(least_delay(problem))
