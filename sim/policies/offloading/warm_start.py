"""Start a decision from the previous one if few rates have changed since."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading import greedy_kernels, scoring
from sim.policies.offloading.outcome import cost_of
from sim.policies.offloading.problem import Decision, Objective, OffloadingProblem

_MANY = 0.05
"""The share of changed topics above which a new decision is better."""
_TAIL = 0.05
"""The share of the capacity that the last picks take, which may be dropped to free capacity."""
_LARGE = 0.0125
"""The share of the capacity above which a pick is too large to be one of the last."""
_NEAR = 5
"""How many of the last picks determine the value of free capacity, so that no single one decides."""
_IGNORED = 3e-4
"""The share of the value that may be forgone for less churn, once for topics that leave and once for those that join."""


class Start(NamedTuple):
    """Topics that are kept, in the order of the picks, and the instance in which subscribers have received their events."""

    topics: NDArray[np.int32]
    instance: greedy_kernels.Instance


def kept(problem: OffloadingProblem, previous: Decision, objective: Objective) -> Start | None:
    """The kept picks from which the greedy starts; None if it should decide from scratch.

    The previous picks are kept, except for the last ones. The value per cost of the first of those is the value of free capacity.
    Among topics whose rate or cost has changed, picks worth less than their capacity are dropped and others worth more are added,
    except where it matters least. Then the last picks are added, without the few that must leave to free enough capacity. If
    nothing has changed, all picks are kept.
    """
    if previous.event_rate is None or previous.cost is None or len(previous.event_rate) != problem.topics:
        return None
    changed = (problem.event_rate != previous.event_rate) | (problem.cost != previous.cost)
    if np.count_nonzero(changed) > _MANY * np.count_nonzero(problem.cost):
        return None
    picks = previous.topics[problem.cost[previous.topics] > 0]
    last = _last(problem, picks)
    near = picks[last & ~changed[picks]][:_NEAR]
    if not near.size:
        return None

    divisor = scoring.writable(problem.cost) if previous.by == "ratio" else np.ones(problem.topics)
    instance = scoring.instance_of(problem, objective)
    greedy_kernels.receive_all(instance, picks[~last & ~changed[picks]])
    level = float(np.median(greedy_kernels.scores_of(instance, near) / divisor[near]))
    enough = _IGNORED * _value(problem, instance)

    doubtful = picks[changed[picks]]
    goes = doubtful[_most(level * divisor[doubtful] - greedy_kernels.scores_of(instance, doubtful), enough)]
    stays = ~np.isin(picks, goes)
    greedy_kernels.receive_all(instance, picks[stays & ~last & changed[picks]])
    changed[picks] = False
    other = np.flatnonzero(changed & (problem.cost > 0)).astype(np.int32)
    joins = other[_most(greedy_kernels.scores_of(instance, other) - level * divisor[other], enough)]
    greedy_kernels.receive_all(instance, joins)

    place = int(np.argmax(last))
    found = np.concatenate([picks[:place][stays[:place]], joins, picks[place:][stays[place:]]])
    last = np.isin(found, picks[last])
    while (over := cost_of(problem, found) - problem.capacity) > 0:
        if not last.any():
            return None
        leaves = _to_make_room(np.where(last, problem.cost[found], np.nan), over)
        found, last = np.delete(found, leaves), np.delete(last, leaves)
    greedy_kernels.receive_all(instance, found[last])
    return Start(found, instance)


def _last(problem: OffloadingProblem, picks: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the picks are among the last, large ones excluded."""
    cost = np.where(problem.cost[picks] <= _LARGE * problem.capacity, problem.cost[picks], 0)
    return (cost > 0) & (np.cumsum(cost[::-1])[::-1] <= _TAIL * problem.capacity)


def _to_make_room(cost: NDArray[np.float64], over: float) -> np.intp:
    """The topic to drop: the smallest that costs at least the excess, if that is close; otherwise the largest that costs less."""
    larger, smaller = np.where(cost >= over, cost, np.inf), np.where(cost < over, cost, 0)
    return np.argmin(larger) if larger.min() <= 1.25 * over or not smaller.any() else np.argmax(smaller)


def _value(problem: OffloadingProblem, instance: greedy_kernels.Instance) -> float:
    """The total share of their need that subscribers receive, in the unit of scores."""
    one = int((problem.need * instance.weight).max()) if instance.of_shares else instance.one
    return one * float(np.count_nonzero(problem.need) - np.sum(instance.missing / np.maximum(problem.need, 1)))


def _most(gains: NDArray[np.float64], enough: float) -> NDArray[np.int64]:
    """Which of these gains to realise, the largest first: those above 0, except for the smallest, with a total of up to `enough`."""
    order = np.argsort(-gains, kind="stable")
    order = order[gains[order] > 0]
    return order[np.cumsum(gains[order][::-1])[::-1] > enough]
