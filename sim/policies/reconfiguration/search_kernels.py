"""Compiled search over swaps of brokers, on the state of `sim.policies.reconfiguration.kernels`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.policies.reconfiguration.kernels import CostState, swap, swap_change

_FIRST, _SECOND, CHANCE = 0, 1, 2
"""The purposes of a proposal's draws: the two brokers, and whether they swap."""


@kernel
def next_improvement(state: CostState, tolerance: float, first: int, second: int) -> tuple[int, int]:
    """The first pair of brokers after (first, second) whose swap lowers the cost by more than `tolerance`; (-1, -1) for none.

    The pairs (0, 1), (0, 2), … (1, 2), … are tried cyclically, once each.
    """
    n = state.node_of.size
    for _ in range(n * (n - 1) // 2):
        second += 1
        if second == n:
            first = first + 1 if first + 2 < n else 0
            second = first + 1
        overhead, delay = swap_change(state, first, second)
        if overhead + state.delay_weight * delay < -tolerance:
            return first, second
    return -1, -1


@kernel
def _pair(n: int, key: int, number: int) -> tuple[int, int]:
    """Two different brokers of n, for the proposal of this number."""
    first = int(keyed_uniform(key, number, _FIRST) * n)
    second = int(keyed_uniform(key, number, _SECOND) * (n - 1))
    return first, second + (second >= first)


@kernel
def _more_moved(state: CostState, home: NDArray[np.int32], first: int, second: int) -> int:
    """The change in the number of brokers away from home if two swap."""
    at, to = state.node_of[first], state.node_of[second]
    before = (at != home[first]) + (to != home[second])
    return int((to != home[first]) + (at != home[second]) - before)


@kernel
def anneal(
    state: CostState, home: NDArray[np.int32], relocation_cost: float, hot: float, cold: float, proposals: int, key: int
) -> NDArray[np.int32]:
    """The best configuration (n) found by simulated annealing (Metropolis et al. 1953, Kirkpatrick et al. 1983).

    Minimises the cost plus the `relocation_cost` of every broker that is not at its `home` (n). A swap that raises it by d is
    made with probability exp(-d / temperature). The temperature falls from `hot` to `cold`, geometrically; both are shares of the
    mean cost change of n random swaps at the start. Draws are keyed by `key` and the number of the proposal.
    """
    n = state.node_of.size
    best = state.node_of.copy()
    if n < 2:
        return best
    scale = 0.0
    for i in range(n):
        first, second = _pair(n, key, ~i)
        overhead, delay = swap_change(state, first, second)
        scale += abs(overhead + state.delay_weight * delay) / n
    level = lowest = 0.0
    for i in range(proposals):
        temperature = scale * hot * (cold / hot) ** (i / proposals)
        first, second = _pair(n, key, i)
        change = swap_change(state, first, second)
        rise = change[0] + state.delay_weight * change[1] + relocation_cost * _more_moved(state, home, first, second)
        if rise <= 0 or rise < -temperature * math.log(keyed_uniform(key, i, CHANCE)):
            swap(state, first, second, change)
            level += rise
            if level < lowest:
                lowest = level
                for node in range(n):
                    best[node] = state.node_of[node]
    return best
