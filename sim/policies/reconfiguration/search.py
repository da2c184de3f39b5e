"""Searches by swaps of two brokers: down to where no swap helps, or by chance, cooling down."""

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
"""Fewest proposals: in small networks a few hundred per broker would sometimes miss the least cost."""


def _improvements(objective: CostModel) -> Iterator[Swap]:
    """All pairs of brokers in turn, (0, 1), (0, 2) …, swapped where that lowers the cost, round and round until no swap does.

    Swaps are made as they are asked for. A round looks at n (n - 1) / 2 pairs.
    """
    first = second = 0
    while True:
        first, second = search_kernels.next_improvement(objective.state, objective.tolerance, first, second)
        if first < 0:
            return
        objective.swap(first, second)
        yield Swap(first, second, objective.cost)


class Sweep(ReconfigurationWithoutParameters):
    """All swaps of two brokers in turn, each made that lowers the cost, until none does: a local optimum of swaps."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """Where the sweep from the present places ends."""
        objective = CostModel(problem)
        swaps = tuple(_improvements(objective))
        return Reconfiguration(objective.node_of, swaps)


class LsapSweep(ReconfigurationWithoutParameters):
    """The least delay in hops (`lsap`), and from there a sweep, which brings the overhead in."""

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """Where the sweep ends, or the present places, should they cost no more."""
        objective = CostModel(problem)
        staying = objective.cost
        objective.place(least_delay(problem))
        deque(_improvements(objective), maxlen=0)
        return Reconfiguration(objective.node_of if objective.cost < staying else problem.node_of)


class Anneal:
    """Random swaps from the least delay in hops (`lsap`), for better and at first also for worse: simulated annealing.

    A proposal costs what the change of a swap takes to compute, whether it is made or not. By hops this is a few steps for each topic
    that one of the two brokers wants alone, O(|S1 xor S2| log n). By round-trip times the links of both nodes, O(log n) on Chord, come
    on top, each priced by the flow over it; what stands below the two nodes in the trees, much or little, is never visited.
    """

    class Parameters(ProcessParameters):
        """How long a walk is, and how it cools."""

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
        """The best places of the walk, or the present ones, should they cost no more."""
        objective = CostModel(problem)
        staying = objective.cost
        self._walk(objective, relocation_cost=0.0)
        return Reconfiguration(objective.node_of if objective.cost < staying else problem.node_of)

    def _walk(self, objective: CostModel, relocation_cost: float) -> None:
        """Move brokers to the best configuration of a walk on which each moved broker pays the relocation cost."""
        problem, p = objective.problem, self._parameters
        objective.place(least_delay(problem, relocation_cost))
        proposals = max(p.proposals * len(problem.node_of), FEWEST_PROPOSALS)
        best = search_kernels.anneal(
            objective.state, problem.node_of, relocation_cost, p.hot, p.cold, proposals, problem.key
        )
        objective.place(best)


class CostAware(Anneal):
    """A walk as of `anneal` on which every broker pays eq. 11 while it stands elsewhere than now, so that few move for little.

    It starts where the sum of delay in hops and these relocation costs is least: the present places unless much is published.
    """

    def reconfigure(self, problem: ReconfigurationProblem) -> Reconfiguration:
        """The best places of the walk where they gain more than it costs to go there; else the present ones."""
        objective = CostModel(problem)
        staying = objective.cost
        self._walk(objective, objective.relocation_cost)
        pays = staying - objective.cost > objective.move_cost(objective.moved)
        return Reconfiguration(objective.node_of if pays else problem.node_of)
