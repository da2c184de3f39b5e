"""The optimal choice of topics within the capacity: by trying all sets, and as a mixed integer linear programme."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from oracles.offloading import Case
from scipy.optimize import Bounds, LinearConstraint, milp


def optima(case: Case) -> tuple[int, Fraction]:
    """The optima of B3M and of F-B3M, by trying all sets."""
    topics, subscribers = len(case.event_rate), len(case.interests)
    sets = (np.arange(1 << topics)[:, None] >> np.arange(topics)) & 1
    sets = sets[sets @ np.array(case.cost, np.float64).reshape(topics) <= case.capacity]
    wants = np.zeros((subscribers, topics), np.int64)
    for v, wanted in enumerate(case.interests):
        wants[v, list(wanted)] = 1
    received = sets @ (wants * np.array(case.event_rate, np.int64)).T
    needs = [case.need(v) for v in range(subscribers)]
    wanting = np.flatnonzero(needs)
    need = np.array(needs, np.int64)[wanting]
    part = np.minimum(received[:, wanting], need)
    shares = (part / need).sum(axis=1)
    near = part[shares >= shares.max() - 1e-9]
    exact = max(sum((Fraction(int(a), int(b)) for a, b in zip(row, need, strict=True)), Fraction(0)) for row in near)
    return int((part == need).sum(axis=1).max()), exact


def programme(case: Case, in_part: bool, relaxed: bool = False) -> float:
    """The optimum of F-B3M, or of B3M; or of the linear relaxation, in which topics that do not fit by themselves stay out too.

    Maximise Σ y_v, where Σ min(ev_t, tau_v) x_t ≥ tau_v y_v.
    """
    topics = len(case.event_rate)
    wanting = [v for v in range(len(case.interests)) if case.need(v) > 0]
    rows = np.zeros((len(wanting) + 1, topics + len(wanting)))
    for row, v in enumerate(wanting):
        for topic in case.interests[v]:
            rows[row, topic] = min(case.event_rate[topic], case.need(v))
        rows[row, topics + row] = -case.need(v)
    rows[-1, :topics] = case.cost
    upper = np.ones(topics + len(wanting))
    upper[:topics] = np.array(case.cost) <= case.capacity
    whole = np.zeros(len(upper))
    if not relaxed:
        whole[: topics if in_part else len(upper)] = 1
    found = milp(
        -np.repeat((0.0, 1.0), (topics, len(wanting))),
        integrality=whole,
        bounds=Bounds(0, upper),
        constraints=LinearConstraint(
            rows, np.r_[np.zeros(len(wanting)), -np.inf], np.r_[[np.inf] * len(wanting), case.capacity]
        ),
        options={"mip_rel_gap": 0.0},
    )
    return float(-found.fun)


def sums_about(rates: Sequence[int], need: int) -> tuple[int, int | None]:
    """The largest sum of some of the rates below the need, and the smallest that is no less."""
    sums = {0}
    for rate in rates:
        sums |= {rate + other for other in sums}
    return max((s for s in sums if s < need), default=0), min((s for s in sums if s >= need), default=None)


def theorem(case: Case) -> int:
    """ODS, theorem V.7: the most subscribers whose max(tau_v, lowest rate) the capacity pays for, by trying all numbers of them."""
    costs = sorted(
        max(case.need(v), min(case.event_rate[t] for t in wanted if case.event_rate[t] > 0))
        for v, wanted in enumerate(case.interests)
        if case.need(v) > 0
    )
    return max(count for count in range(len(costs) + 1) if sum(costs[:count]) <= case.capacity)
