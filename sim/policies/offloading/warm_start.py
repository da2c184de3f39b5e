"""A decision that starts from the one before, where rates, costs, the capacity or interests have changed a little since."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading import greedy_kernels, scoring, warm_start_kernels
from sim.policies.offloading.outcome import cost_of
from sim.policies.offloading.problem import Decision, Objective, Problem

_TAIL = 0.02
"""The share of the capacity that the last picks take which make room."""
_IGNORED = 1e-4
"""The share of what the picks are worth that may be forgone for fewer moves."""
_ANEW = 0.25
"""The share of the picks beyond whose change it is better to decide anew."""


def kept(problem: Problem, previous: Decision, objective: Objective) -> NDArray[np.int32] | None:
    """The topics of the previous decision that the greedy starts from, in the order of the picks; None if it had better decide anew.

    Topics that are gone, and those that are worth nothing any more, are dropped. The level is what topics are worth, for their cost,
    near the last picks. Earlier picks that have come to be worth less go, and topics that have come to be worth more and that the
    greedy would have picked by then take their places; but for those that change the least. Then the last picks make room, as few
    of them as do. Where nothing has changed, all is kept as it was.
    """
    picks = still_there(problem, previous)
    if not picks.size:
        return None
    divisor = scoring.writable(problem.cost) if previous.by == "ratio" else np.ones(problem.topics)
    instance = scoring.instance_of(problem, objective)
    missing = instance.missing.copy()
    scores = warm_start_kernels.replay(instance, picks)
    keys = scores / divisor[picks]
    split = _split(problem, picks, keys)
    enough = _IGNORED * scores.sum()

    doubtful = keys < keys[split]
    doubtful[split:] = False
    doubtful |= scores == 0
    doubtful[doubtful] = _most((keys[split] - keys[doubtful]) * divisor[picks[doubtful]], enough)
    instance = instance._replace(missing=missing)
    stays = ~doubtful
    stays[:split] = ~warm_start_kernels.outdated(instance, picks[:split], doubtful[:split], int(picks[split]), divisor)
    first, last = picks[:split][stays[:split]], picks[split:][stays[split:]]

    greedy_kernels.score_all(instance)
    level = instance.score[picks[split]] / divisor[picks[split]]
    candidate = (problem.cost > 0) & (cost_of(problem, first) + problem.cost <= problem.capacity)
    candidate[picks] = False
    new = np.flatnonzero(candidate & (instance.score > 0))
    new = new[instance.score[new] / divisor[new] > level]
    new = new[_most(instance.score[new] - level * divisor[new], enough)]
    new = new[np.argsort(-instance.score[new] / divisor[new], kind="stable")]
    found = within_capacity(problem, np.concatenate([first, new, last]).astype(np.int32))
    return found if few_moves(problem, previous, found) else None


def few_moves(problem: Problem, previous: Decision, topics: NDArray[np.int32]) -> bool:
    """Whether so few topics change sides that it is not better to decide anew."""
    stays = np.zeros(problem.topics, np.bool_)
    stays[topics] = True
    common = int(np.count_nonzero(stays[still_there(problem, previous)]))
    return len(topics) + len(previous.topics) - 2 * common <= _ANEW * len(previous.topics)


def still_there(problem: Problem, previous: Decision) -> NDArray[np.int32]:
    """The picks that still are topics at a cost, in their order."""
    picks = previous.topics[previous.topics < problem.topics]
    return picks[problem.cost[picks] > 0]


def _split(problem: Problem, picks: NDArray[np.int32], keys: NDArray[np.float64]) -> int:
    """Where the last picks begin: at the one with the median key of five, so that one that has changed decides nothing."""
    spent = np.cumsum(problem.cost[picks])
    end = int(np.searchsorted(spent, (1 - _TAIL) * min(problem.capacity, spent[-1])))
    near = np.arange(max(0, end - 2), min(len(picks), end + 3))
    return int(near[np.argsort(keys[near], kind="stable")[len(near) // 2]])


def _most(gains: NDArray[np.float64], enough: float) -> NDArray[np.bool_]:
    """Which of these gains to realise: all but the smallest, which come to no more than `enough`."""
    order = np.argsort(gains, kind="stable")
    wanted = np.empty(len(gains), np.bool_)
    wanted[order] = np.cumsum(gains[order]) > enough
    return wanted


def within_capacity(problem: Problem, picks: NDArray[np.int32]) -> NDArray[np.int32]:
    """The picks without as few of the last ones as have to make room."""
    window = _TAIL * problem.capacity
    spent = np.cumsum(problem.cost[picks])
    picks = picks[: np.searchsorted(spent, problem.capacity + window, "right")]
    while picks.size and (over := cost_of(problem, picks) - problem.capacity) > 0:
        cost = problem.cost[picks]
        first = int(np.searchsorted(np.cumsum(cost[::-1]), window)) + 1
        last = cost[-first:]
        larger, smaller = np.flatnonzero(last >= over), np.flatnonzero(last <= over)
        if larger.size and (not smaller.size or last[larger].min() <= 1.25 * over):
            leaves = larger[np.argmin(last[larger])]
        else:
            leaves = smaller[np.argmax(last[smaller])]
        picks = np.delete(picks, len(picks) - len(last) + leaves)
    return picks
