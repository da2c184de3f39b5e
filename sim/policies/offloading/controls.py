"""Baselines for comparison: topics in a fixed or random order, each kept if it fits."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading.problem import Decision, Objective, OffloadingProblem
from sim.policies.offloading.process import OffloadingWithoutParameters


class _InOrder(OffloadingWithoutParameters, ABC):
    objective: Objective = "satisfied"

    @abstractmethod
    def order(self, problem: OffloadingProblem) -> NDArray[np.int64]:
        """All topics in order of preference."""

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """Keep each topic that has a cost, in turn, if it fits the remaining capacity."""
        order = self.order(problem)
        delivers = (problem.event_rate > 0) & (problem.degrees > 0) & (problem.cost > 0)
        order = order[delivers[order]]
        kept, spent = list[int](), 0.0
        for topic, cost in zip(order.tolist(), problem.cost[order].tolist(), strict=True):
            if spent + cost <= problem.capacity:
                kept.append(topic)
                spent += cost
        return Decision(np.array(kept, np.int32))


class Random(_InOrder):
    """A baseline: topics in random order, each kept if it fits."""

    def order(self, problem: OffloadingProblem) -> NDArray[np.int64]:
        """A permutation determined by the problem's key."""
        return np.random.default_rng(problem.key).permutation(problem.topics)


class Popular(_InOrder):
    """A baseline: topics by number of subscribers, each kept if it fits."""

    def order(self, problem: OffloadingProblem) -> NDArray[np.int64]:
        """The most subscribers first, the lowest id on ties."""
        return np.argsort(-problem.degrees, kind="stable")


class Loudest(_InOrder):
    """A baseline: topics by event rate, each kept if it fits."""

    def order(self, problem: OffloadingProblem) -> NDArray[np.int64]:
        """The highest event rate first, the lowest id on ties."""
        return np.argsort(-problem.event_rate, kind="stable")
