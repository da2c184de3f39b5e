"""The configuration with the least delay in hops, as a linear sum assignment problem (DYNATOPS, appendix A)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem
from sim.policies.reconfiguration.process import ReconfigurationWithoutParameters


def delay_costs(problem: ReconfigurationProblem) -> NDArray[np.float64]:
    """The cost of delay if a broker (row) stands on a node (column), in hops weighted by publications (eq. 14)."""
    wanted = problem.wanted.astype(np.float64)
    costs: NDArray[np.float64] = wanted.T @ (
        problem.publications[:, None] * problem.hops[problem.roots].astype(np.float64)
    )
    return costs


def least_delay(problem: ReconfigurationProblem, relocation_cost: float = 0.0) -> NDArray[np.int32]:
    """The node of each broker (n) for which the delay in hops is least.

    Every broker that would move costs `relocation_cost` on top of its weighted delay.
    """
    costs = delay_costs(problem)
    if relocation_cost:
        costs *= problem.delay_weight
        costs += relocation_cost
        costs[np.arange(len(costs)), problem.node_of] -= relocation_cost
    return linear_sum_assignment(costs)[1].astype(np.int32)


class Lsap(ReconfigurationWithoutParameters):
    """The exact minimum of delay in hops (appendix A), regardless of overhead and of the number of brokers that move.

    With delay in round-trip times, all hops are taken to be equally long: the result is the same, but no longer the minimum.
    """

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The optimal assignment, by Jonker and Volgenant's algorithm."""
        return Reconfiguration(least_delay(problem))
