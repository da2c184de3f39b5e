"""Evaluate a choice of topics: its cost, and the satisfaction of subscribers (ODS, eq. 1 to 4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import Integers
from sim.policies.offloading.problem import Objective, OffloadingProblem

_DIGITS = 90


@dataclass(frozen=True)
class OffloadingOutcome:
    """The outcome of a choice of topics: its cost, and the `satisfied` subscribers, without the `free` ones, which need nothing.

    `satisfaction`: the mean share (at most 1) of their need that subscribers receive, without the free ones; None where all are
    free. `total`: the sum of these shares. Both are correctly rounded, whatever the order of subscribers and topics.
    """

    cost: float
    satisfied: int
    free: int
    satisfaction: float | None
    total: float

    def value_of(self, objective: Objective) -> float:
        """The value of the objective: satisfied subscribers (eq. 1), or the sum of shares (eq. 3)."""
        return float(self.satisfied) if objective == "satisfied" else self.total


def outcome(problem: OffloadingProblem, topics: ArrayLike) -> OffloadingOutcome:
    """Evaluate keeping these topics, each named once; costs are summed in their order."""
    topics = np.asarray(topics, np.int64)
    part = problem.received(topics)
    free = int(np.count_nonzero(problem.need == 0))
    short = part < problem.need
    satisfied = problem.subscribers - free - int(np.count_nonzero(short))
    total = satisfied + _sum_of_shares(part[short], problem.need[short])
    wanting = problem.subscribers - free
    mean = float(total / wanting) if wanting else None
    return OffloadingOutcome(cost_of(problem, topics), satisfied, free, mean, float(total))


def cost_of(problem: OffloadingProblem, topics: Integers) -> float:
    """The cost of these topics, summed in their order."""
    return float(np.cumsum(np.append(0.0, problem.cost[topics]))[-1])


def _sum_of_shares(part: NDArray[np.int64], whole: NDArray[np.int64]) -> Fraction:
    """The sum of part / whole, each below 1, by long division to 90 binary digits: far more than any float64 has."""
    if not part.size:
        return Fraction(0)
    digits = 63 - max(int(whole.max()).bit_length(), part.size.bit_length())
    total, places = 0, 0
    while places < _DIGITS:
        quotient, part = np.divmod(part << digits, whole)
        total = (total << digits) + int(quotient.sum())
        places += digits
    return Fraction(total, 1 << places)
