"""Searches by swaps of two brokers: local search, and simulated annealing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from sim.policies.reconfiguration import search_kernels
from sim.policies.reconfiguration.assignment import least_delay
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem, Swap
from sim.policies.reconfiguration.process import ProcessParameters, ReconfigurationWithoutParameters

FEWEST_PROPOSALS = 50_000
"""The fewest proposals: in small networks a few hundred per broker would sometimes miss the least cost."""


def _improvements(objective: CostModel) -> Iterator[Swap]:
    """Swap the pairs of brokers (0, 1), (0, 2), … in turn where that lowers the cost, in rounds, until no swap does.

    Swaps are made on demand. A round tries n (n - 1) / 2 pairs.
    """
    first = second = 0
    while True:
        first, second = search_kernels.next_improvement(objective.state, objective.tolerance, first, second)
        if first < 0:
            return
        objective.swap(first, second)
        yield Swap(first, second, objective.cost)


class Sweep(ReconfigurationWithoutParameters):
    """Local search: all swaps of two brokers in turn, each made if it lowers the cost, until none does."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The local optimum reached from the present configuration."""
        objective = CostModel(problem)
        swaps = tuple(_improvements(objective))
        return Reconfiguration(objective.node_of, swaps)


class LsapSweep(ReconfigurationWithoutParameters):
    """The least delay in hops (`lsap`), and from there a sweep, which takes overhead into account."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The end of the sweep, or the present configuration if it costs no more."""
        objective = CostModel(problem)
        staying = objective.cost
        objective.place(least_delay(problem))
        deque(_improvements(objective), maxlen=0)
        return Reconfiguration(objective.node_of if objective.cost < staying else problem.node_of)


class Anneal:
    """Simulated annealing: random swaps, starting from the least delay in hops (`lsap`).

    The time per proposal is that of computing a swap's change, whether it is made or not. With delay in hops this is a few steps
    for each topic that only one of the two brokers wants, O(|S1 xor S2| log n). With round-trip times the links of both nodes are
    added, O(log n) on Chord, each priced by the flow over it; the subtrees below the two nodes are never visited.
    """

    class Parameters(ProcessParameters):
        """The length of a walk, and its temperatures."""

        proposals: int = Field(500, gt=0, le=1_000_000)
        """Proposed swaps per broker; in small networks 50,000 in all."""
        hot: float = Field(0.1, gt=0, le=2**53)
        """Initial temperature, as a share of the mean cost change of random swaps."""
        cold: float = Field(0.02, gt=0, le=2**53)
        """Final temperature."""

        @model_validator(mode="after")
        def _cools(self) -> Self:
            if self.cold > self.hot:
                raise ValueError(f"cold is above hot ({self.cold:g} and {self.hot:g})")
            return self

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The best configuration of the walk, or the present one if it costs no more."""
        objective = CostModel(problem)
        staying = objective.cost
        self._walk(objective, relocation_cost=0.0)
        return Reconfiguration(objective.node_of if objective.cost < staying else problem.node_of)

    def _walk(self, objective: CostModel, relocation_cost: float) -> None:
        """Move brokers to the best configuration of a walk in which each moved broker costs `relocation_cost`."""
        problem, p = objective.problem, self._parameters
        objective.place(least_delay(problem, relocation_cost))
        proposals = max(p.proposals * len(problem.node_of), FEWEST_PROPOSALS)
        best = search_kernels.anneal(
            objective.state, problem.node_of, relocation_cost, p.hot, p.cold, proposals, problem.key
        )
        objective.place(best)


class CostAware(Anneal):
    """A walk like `anneal`'s that adds each moved broker's share of eq. 11 to the cost, so that few brokers move for little gain.

    It starts where the sum of delay in hops and relocation costs is least: the present configuration unless much is published.
    """

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The best configuration of the walk if it gains more than moving costs, otherwise the present one."""
        objective = CostModel(problem)
        staying = objective.cost
        self._walk(objective, objective.relocation_cost)
        pays = staying - objective.cost > objective.move_cost(objective.moved)
        return Reconfiguration(objective.node_of if pays else problem.node_of)
