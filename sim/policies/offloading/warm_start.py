"""A decision that starts from the one before, where rates, costs, the capacity or interests have changed a little since."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading import greedy_kernels, scoring, warm_start_kernels
from sim.policies.offloading.outcome import cost_of
from sim.policies.offloading.problem import Decision, Objective, Problem

_TAIL = 0.05
"""The share of the capacity that the last picks take which make room."""
_IGNORED = 2e-4
"""The share of what the picks are worth that may be forgone for fewer moves."""
_OUT_OF_ORDER = 1.25
"""A pick may have come too early where a later one is worth so many times as much for its cost."""
_ANEW = 0.25
"""The share of the picks beyond whose change it is better to decide anew."""


class Start(NamedTuple):
    """Topics that are kept, in the order of the picks, and the instance in which subscribers have received their events."""

    topics: NDArray[np.int32]
    instance: greedy_kernels.Instance


def kept(problem: Problem, previous: Decision, objective: Objective) -> Start | None:
    """What the greedy starts from; None if it had better decide anew.

    The picks of the previous decision are made again, but for those that are worth nothing any more or come too early; the level is
    what topics are worth, for their cost, where the last picks begin. What came too early stays if it is worth the level there, and
    topics join that are worth more and that the greedy would have picked by then. Of those that go or join, the ones that matter
    least do not. Then the last picks make room, as few of them as do. Where nothing has changed, all is kept as it was.
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

    place = warm_start_kernels.median_after(keys)
    later, later_keys = picks[place], keys[place]
    doubtful = (_OUT_OF_ORDER * keys < later_keys) | (scores == 0)
    worst = (np.maximum(later_keys, keys[split]) - keys)[doubtful] * divisor[picks[doubtful]]
    doubtful[doubtful] = _most(worst, enough)
    instance = instance._replace(missing=missing.copy())
    out = np.empty(len(picks), np.bool_)
    out[:split] = warm_start_kernels.outdated(instance, picks[:split], doubtful[:split], later[:split], divisor)
    greedy_kernels.score_all(instance)
    out[split:] = warm_start_kernels.outdated(instance, picks[split:], doubtful[split:], later[split:], divisor)
    first, last, late = picks[:split][~out[:split]], picks[split:][~out[split:]], picks[out]

    level = float(instance.score[picks[split]] / divisor[picks[split]])
    loss = level * divisor[late] - instance.score[late]
    goes = loss > 0
    goes[goes] = _most(loss[goes], enough)
    lowest = np.minimum.accumulate(keys[:split][~out[:split]])
    new = _joining(problem, instance._replace(missing=missing), divisor, picks, first, lowest, level, enough)
    found = within_capacity(problem, np.concatenate([first, late[~goes], new, last]).astype(np.int32))
    if not few_moves(problem, previous, found):
        return None
    _exchange(problem, instance, np.concatenate([first, last]), found)
    return Start(found, instance)


def _exchange(
    problem: Problem, instance: greedy_kernels.Instance, received: NDArray[np.int32], wanted: NDArray[np.int32]
) -> None:
    """From an instance with the events of some topics to that with those of others, which mostly are the same."""
    is_received, is_wanted = (np.zeros(problem.topics, np.bool_) for _ in range(2))
    is_received[received], is_wanted[wanted] = True, True
    greedy_kernels.receive_all(instance, np.flatnonzero(is_wanted & ~is_received).astype(np.int32))
    gone = np.flatnonzero(is_received & ~is_wanted)
    warm_start_kernels.withdraw(instance, scoring.writable(problem.need), is_wanted, gone)


def _joining(
    problem: Problem,
    instance: greedy_kernels.Instance,
    divisor: NDArray[np.float64],
    picks: NDArray[np.int32],
    first: NDArray[np.int32],
    lowest: NDArray[np.float64],
    level: float,
    enough: float,
) -> NDArray[np.int64]:
    """Topics beside the picks that the greedy would have picked by the end of the first ones, when scores are as in the instance.

    `lowest`: of each of the first picks, and those before it, the least that one is worth for its cost. Where it is less than what a
    topic is worth, the topic comes before, and has room that is taken later.
    """
    candidate = (problem.cost > 0) & (instance.score > 0)
    candidate[picks] = False
    new = np.flatnonzero(candidate)
    keys = instance.score[new] / divisor[new]
    place = np.searchsorted(-lowest, -keys, "right")
    spent = np.cumsum(np.append(0.0, problem.cost[first]))
    joins = (keys > level) & (spent[place] + problem.cost[new] <= problem.capacity)
    joins[joins] = _most((keys[joins] - level) * divisor[new[joins]], enough)
    new, keys, place = new[joins], keys[joins], place[joins]
    order = np.lexsort((new, -keys, place))
    new, place = new[order], place[order]
    early = spent[-1] + problem.cost[new] > problem.capacity
    early[early] = ~warm_start_kernels.preferred(instance, first, new[early], place[early], divisor)
    joining: NDArray[np.int64] = new[~early]
    return joining


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
