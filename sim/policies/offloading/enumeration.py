"""F-B3M with at least 1 - 1/e of the optimum, for few topics: greedy from each set of up to three topics."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np

from sim.base.errors import InputError
from sim.policies.offloading.greedy import run_greedy
from sim.policies.offloading.outcome import cost_of, outcome
from sim.policies.offloading.problem import Decision, Objective, OffloadingProblem
from sim.policies.offloading.process import OffloadingWithoutParameters

MOST_TOPICS = 40
"""The most topics: their 10,701 starts take seconds."""
_SEED = 3


class PartialEnumeration(OffloadingWithoutParameters):
    """The best of greedy by gain per cost (ODS, algorithm 5, type R) from each set of up to three topics that fits.

    For a submodular objective and any costs this reaches at least 1 - 1/e of the optimum (Khuller, Moss and Naor, "The budgeted maximum
    coverage problem", 1999; Sviridenko, "A note on maximizing a submodular set function subject to a knapsack constraint", 2004; Krause
    and Guestrin, 2005, to which ODS VI.B refers).
    """

    objective: Objective = "satisfaction"

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """The seed's topics first, then the picks; on ties the smallest seed, with the lowest ids.

        Raises InputError where too many topics could be kept.
        """
        useful = (problem.event_rate > 0) & (problem.degrees > 0)
        candidates = np.flatnonzero(useful & (problem.cost > 0) & (problem.cost <= problem.capacity))
        if candidates.size > MOST_TOPICS:
            seeds = sum(math.comb(candidates.size, size) for size in range(_SEED + 1))
            raise InputError(
                f"policy partial-enumeration: {candidates.size:,} topics that fit give {seeds:,} sets to start from, "
                f"allowed: up to {MOST_TOPICS} topics (policy fb3m takes any number)"
            )
        best, most = Decision(np.empty(0, np.int32)), -1.0
        for seed in chain.from_iterable(combinations(candidates.tolist(), size) for size in range(_SEED + 1)):
            kept = np.array(seed, np.int32)
            if cost_of(problem, kept) <= problem.capacity:
                found = run_greedy(problem, self.objective, "ratio", kept=kept)
                value = outcome(problem, found.topics).total
                if value > most:
                    best, most = found, value
        return best
