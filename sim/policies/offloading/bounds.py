"""Upper bounds on the value of any choice of topics within the capacity, to judge decisions against.

All count subscribers that need something, and ignore topics that cost more than the capacity (except `threshold`, which follows the
paper). Sums of floats are rounded up by far more than their error.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.policies.offloading import bound_kernels as kernels
from sim.policies.offloading.kernels import received
from sim.policies.offloading.outcome import cost_of
from sim.policies.offloading.problem import Objective, OffloadingProblem

_Topics: TypeAlias = Integers

_STEPS = 25
"""The number of subgradient steps of each run of `lp_dual`."""
_FACTOR, _PATIENCE, _SHORTER = 1.5, 3, 0.5
_AT_ONCE = 1e9
_MOST = 1 << 62


def upper_bounds(problem: OffloadingProblem, objective: Objective, topics: _Topics | None = None) -> dict[str, float]:
    """All bounds that hold for the problem's costs, by name; a good decision as `topics`, if available, tightens some of them.

    "threshold", "subset-sum" (B3M) and "hull" (F-B3M) need normalised costs; "data-dependent" (F-B3M) needs topics; "lp-dual"
    always applies.
    """
    bounds = dict[str, float]()
    if problem.normalised:
        bounds["threshold"] = threshold(problem, objective)
        if objective == "satisfied":
            bounds["subset-sum"] = subset_sum(problem)
        else:
            bounds["hull"] = hull(problem)
    if objective == "satisfaction" and topics is not None:
        bounds["data-dependent"] = data_dependent(problem, topics)
    bounds["lp-dual"] = lp_dual(problem, objective, topics)
    return bounds


def threshold(problem: OffloadingProblem, objective: Objective) -> float:
    """ODS, theorem V.7 for B3M and VI.4 for F-B3M, for normalised costs: each subscriber costs max(tau_v, its lowest rate) or more.

    Costs are sorted, so that it ends at the first that does not fit (algorithm 3 does not terminate). The remaining capacity pays
    for part of that subscriber in F-B3M, where the theorem adds 1: a subscriber with the share g costs at least g tau_v, and one
    topic.
    """
    return thresholds(problem, objective, [problem.capacity])[0]


def thresholds(problem: OffloadingProblem, objective: Objective, capacities: Iterable[float]) -> list[float]:
    """`threshold` at each of these capacities, for which costs are sorted once."""
    wanting = problem.need > 0
    least = kernels.least_rate(problem.indptr, problem.indices, problem.event_rate)
    costs = np.sort(np.maximum(problem.need, least)[wanting])
    in_part = objective == "satisfaction"
    return [_cheapest_first(problem.with_capacity(capacity), costs, in_part) for capacity in capacities]


def subset_sum(problem: OffloadingProblem) -> float:
    """B3M with normalised costs: each subscriber costs the cheapest subset of its topics that brings tau_v, or can't be satisfied.

    The cost of a topic is shared by its subscribers, each of which pays its rate.
    """
    _, enough = kernels.sums_about(problem.indptr, problem.indices, _rates(problem), problem.need)
    return _cheapest_first(problem, np.sort(enough[(problem.need > 0) & (enough < kernels.NEVER)]), in_part=False)


def hull(problem: OffloadingProblem) -> float:
    """F-B3M with normalised costs: as `subset_sum`, with the concave hull of each subscriber's share as a function of what it pays.

    It rises with slope 1 / tau_v up to the largest sum of rates below tau_v, then linearly to 1 at the smallest sum that is enough:
    no subset lies above these lines. Segments are taken in order of slope, the steepest first.
    """
    _, value = _fill(*_lines(problem), _units(problem))
    return _up(problem, value)


def _lines(problem: OffloadingProblem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rise and the length of each segment of all subscribers' hulls."""
    below, enough = kernels.sums_about(problem.indptr, problem.indices, _rates(problem), problem.need)
    first = np.where(enough == problem.need, problem.need, below).astype(np.float64)
    share = first / np.maximum(problem.need, 1)
    last = (enough > problem.need) & (enough < kernels.NEVER)
    return np.concatenate([share, 1 - share[last]]), np.concatenate([first, enough[last] - first[last]])


def data_dependent(problem: OffloadingProblem, topics: _Topics) -> float:
    """F-B3M with any costs: the value of the topics, plus the most that others could add with the whole capacity.

    The sum of shares is submodular (ODS, VI.2): topics together add at most the sum of what each adds alone (Leskovec et
    al., "Cost-effective outbreak detection in networks", KDD 2007, III.B).
    """
    kept = _indicator(problem, topics)
    part = received(problem.indptr, problem.indices, problem.event_rate * kept)
    missing = np.maximum(problem.need - part, 0).astype(np.float64)
    worth = _inverse(problem.need)
    gains = kernels.profits(problem.indptr, problem.indices, problem.event_rate.astype(np.float64), missing, worth)
    gains[kept | (problem.cost > problem.capacity)] = 0
    value = float((1 - missing * worth)[problem.need > 0].sum())
    return _up(problem, value + _fill(gains, problem.cost, problem.capacity)[1])


def lp_dual(problem: OffloadingProblem, objective: Objective, topics: _Topics | None = None) -> float:
    """Either objective with any costs: the dual of linear relaxations, minimised by subgradient steps.

    In the relaxation a subscriber's part y_v is at most 1 and at most Σ min(ev_t, tau_v) / tau_v · x_t over its topics, of which the
    back end keeps the parts x_t. For any prices alpha_v from 0 to 1 of the second bound, Σ (1 - alpha_v) and the best fractional
    knapsack of topics worth Σ_v alpha_v min(ev_t, tau_v) / tau_v is a bound; the best one found is returned.

    In B3M subscribers that cannot be satisfied within the capacity are left out, and the bound is rounded down to a whole number.
    Its second relaxation is tighter: a subscriber whom a set of topics leaves short is satisfied only if the others bring what is
    missing, r_v, so that y_v is at most Σ min(ev_t, r_v) / r_v · x_t over these (knapsack-cover inequalities; Carr, Fleischer,
    Leung and Phillips, "Strengthening integrality gaps for capacitated network design and covering problems", 2000). The sets are
    the best knapsack of the first relaxation and the topics of the decision.

    A price falls where the knapsack brings more than is needed and rises where it brings less. Step lengths follow Polyak
    ("Minimization of unsmooth functionals", 1969): those that would reach the best sum of parts found, a lower bound of the
    minimum, along the previous slopes; they are halved after a few steps without progress. Initial prices are 1, or 0 for
    subscribers that receive more than they need from the topics.
    """
    rate, need = _rates(problem), problem.need
    if objective == "satisfied":
        capacity = problem.capacity * (1 + 1e-9)
        can = kernels.satisfiable(problem.indptr, problem.indices, rate, problem.cost, need, capacity)
        need = np.where(can, need, 0)
    start = np.zeros(problem.topics, np.bool_)
    if topics is not None and cost_of(problem, topics) <= problem.capacity:
        start = _indicator(problem, topics)
    best, kept = _descend(problem, rate, need, start, np.zeros_like(start))
    if objective == "satisfied":
        sets = [kept == 1, start] if start.any() else [kept == 1]
        best = min([best, *(_descend(problem, rate, need, given, given)[0] for given in sets)])
        return float(np.floor(_up(problem, best)))
    return _up(problem, best)


def _descend(
    problem: OffloadingProblem,
    rate: NDArray[np.int64],
    need: NDArray[np.int64],
    start: NDArray[np.bool_],
    given: NDArray[np.bool_],
) -> tuple[float, NDArray[np.float64]]:
    """The best bound, starting from prices for the topics `start`, and its knapsack; the others bring what `given` leaves missing."""
    missing = need - received(problem.indptr, problem.indices, rate * given)
    np.copyto(missing, need, where=missing <= 0)
    cover = kernels.Cover(problem.indptr, problem.indices, need, missing, given)
    price = (need > 0).astype(np.float64)
    topics = np.column_stack((rate.astype(np.float64), np.zeros(rate.size)))
    best, best_kept = float(np.count_nonzero(need)), start.astype(np.float64)
    reached, factor, in_vain = 0.0, _FACTOR, 0
    kept, length = best_kept, _AT_ONCE if start.any() else 0.0
    for _ in range(_STEPS):
        np.copysign(topics[:, 0], np.where(kept > 0, 1.0, -1.0), out=topics[:, 0])
        parted = np.flatnonzero((kept > 0) & (kept < 1))
        part = (int(parted[0]), float(kept[parted[0]])) if parted.size else (-1, 1.0)
        free, sum_of_parts, steepness = kernels.descend(cover, *part, length, price, topics)
        reached = max(reached, sum_of_parts)
        kept, value = _fill(topics[:, 1], problem.cost, problem.capacity)
        value += free
        if value < best:
            best, best_kept, in_vain = value, kept, 0
        else:
            in_vain += 1
            if in_vain == _PATIENCE:
                factor, in_vain = factor * _SHORTER, 0
        if best <= reached:
            break
        length = factor * (value - reached) / steepness if steepness > 0 else _AT_ONCE
    return best, best_kept


def _rates(problem: OffloadingProblem) -> NDArray[np.int64]:
    """The rates (l) of topics that can be kept, 0 for others."""
    return np.where(problem.cost <= problem.capacity, problem.event_rate, 0)


def _inverse(need: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 / need (n), 0 for 0."""
    return np.divide(1, need, out=np.zeros(need.size), where=need > 0)


def _indicator(problem: OffloadingProblem, topics: _Topics) -> NDArray[np.bool_]:
    kept = np.zeros(problem.topics, np.bool_)
    kept[topics] = True
    return kept


def _fill(gains: NDArray[np.float64], costs: NDArray[np.float64], capacity: float) -> tuple[NDArray[np.float64], float]:
    """The fractional knapsack: the part taken of each item, and the total value; the first items on ties."""
    dearness = np.negative(np.divide(gains, costs, out=np.full(gains.size, np.inf), where=costs > 0))
    order = np.argsort(dearness, kind="stable")
    del dearness  # they are large
    spent = np.cumsum(costs[order])
    whole = int(np.searchsorted(spent, capacity, side="right"))
    taken = np.zeros(gains.size)
    taken[order[:whole]] = 1
    value = float(gains[order[:whole]].sum())
    if whole < gains.size:
        last, left = order[whole], capacity - (spent[whole - 1] if whole else 0.0)
        taken[last] = left / costs[last]
        value += float(gains[last] * taken[last])
    return taken, value


def _units(problem: OffloadingProblem) -> int:
    """The capacity in notifications of 1 / scale events, plus the rounding error of sums of costs."""
    rounding = 1 + Fraction(problem.topics + 2, 1 << 52)
    return int(Fraction(min(problem.capacity, float(_MOST))) * problem.scale * rounding)


def _cheapest_first(problem: OffloadingProblem, costs: NDArray[np.int64], in_part: bool) -> float:
    """How many subscribers the capacity pays for, of sorted costs, optionally with a part of the next one."""
    units = min(_units(problem), _MOST)
    beyond = np.cumsum(np.minimum(costs, units + 1)) > units  # correct up to the first; sums may overflow only after it
    count = int(beyond.argmax()) if beyond.any() else costs.size
    if not in_part or count == costs.size:
        return float(count)
    left = units - int(costs[:count].sum())
    return _up(problem, count + left / int(costs[count]))


def _up(problem: OffloadingProblem, bound: float) -> float:
    """A bound plus more than the error of sums over subscribers and topics; at most the number of subscribers that need something."""
    bound *= 1 + (problem.subscribers + problem.topics + 64) * 2.0**-51
    return min(bound, float(np.count_nonzero(problem.need)))
