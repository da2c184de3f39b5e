"""The greedy policies of DYNATOPS: the broker with the highest cost swaps with its best partner, again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem, Swap
from sim.policies.reconfiguration.process import ReconfigurationWithoutParameters


def _improvements(objective: CostModel) -> Iterator[Swap]:
    """Yield the swaps of SSBR-Greedy (DYNATOPS, algorithm 2), each made on demand.

    The broker with the highest cost, the lowest number on ties, swaps with the partner that lowers the cost most, the lowest number on
    ties. It ends at the first such broker for which no swap lowers the cost.
    """
    while True:
        costs = objective.broker_costs
        highest = int(np.argmax(costs >= costs.max() - objective.tolerance))
        partner = objective.best_partner(highest)
        if partner is None:
            return
        objective.swap(highest, partner)
        yield Swap(highest, partner, objective.cost)


class SsbrGreedy(ReconfigurationWithoutParameters):
    """SSBR-Greedy (DYNATOPS, algorithm 2): the broker with the highest cost swaps with its best partner while that lowers the cost."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The end of the path of improvements."""
        objective = CostModel(problem)
        swaps = tuple(_improvements(objective))
        return Reconfiguration(objective.node_of, swaps)


class DynatopsGreedy(ReconfigurationWithoutParameters):
    """DYNATOPS-Greedy (algorithm 4): the point on SSBR-Greedy's path where the gain exceeds the cost of moving the most."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The point of the path, start included, with the highest utility; the earliest on ties."""
        objective = CostModel(problem)
        start, swaps = objective.cost, list[Swap]()
        highest, best, taken = 0.0, objective.node_of, 0
        for swap in _improvements(objective):
            swaps.append(swap)
            utility = start - swap.cost - objective.move_cost(objective.moved)
            if utility > highest:
                highest, best, taken = utility, objective.node_of, len(swaps)
        return Reconfiguration(best, tuple(swaps[:taken]))
