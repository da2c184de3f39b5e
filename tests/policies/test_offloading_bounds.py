"""Upper bounds against the optimum by brute force and by a solver, and the policy with a guaranteed ratio."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from oracles import offloading_optimum as oracle
from oracles.offloading import Case

from sim.base.errors import InputError
from sim.policies.offloading import bound_kernels as kernels
from sim.policies.offloading import enumeration
from sim.policies.offloading.bounds import lp_dual, threshold, upper_bounds
from sim.policies.offloading.enumeration import MOST_TOPICS, PartialEnumeration
from sim.policies.offloading.greedy import run_greedy
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Objective, OffloadingProblem

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
NORMALISED = {
    "satisfied": ["threshold", "subset-sum", "lp-dual"],
    "satisfaction": ["threshold", "hull", "data-dependent", "lp-dual"],
}


def normalised(interests: list[list[int]], rates: list[int], capacity: float, tau: list[int]) -> Case:
    counts = Counter(topic for wanted in interests for topic in wanted)
    return Case(interests, rates, [float(rate * counts[topic]) for topic, rate in enumerate(rates)], capacity, tau)


def random_case(seed: int, topics: int = 8, subscribers: int = 10) -> Case:
    """By the seed: few rates, so that there are many ties, or many; one tau or many; every third with any costs."""
    rng = np.random.default_rng(seed)
    topics, subscribers = int(rng.integers(topics // 2, topics + 1)), int(rng.integers(1, subscribers + 1))
    interests = [np.flatnonzero(rng.random(topics) < rng.choice([0.2, 0.4, 0.7])).tolist() for _ in range(subscribers)]
    most = int(rng.choice([1, 3, 40, 3000]))
    rates = rng.integers(seed % 5 > 0, most + 1, topics).tolist()
    tau = (
        rng.integers(0, 2 * most + 2, subscribers) if seed % 2 else np.full(subscribers, rng.integers(1, 2 * most + 2))
    )
    case = normalised(interests, rates, 0.0, tau.tolist())
    if seed % 3 == 0:
        cost = rng.integers(0, 5, topics) if seed % 2 else rng.uniform(0.1, 3, topics)
        case = replace(case, cost=[float(value) for value in cost])
    share = rng.choice([0.05, 0.15, 0.3, 0.5, 0.8])
    return replace(case, capacity=float(np.floor(share * sum(case.cost)) if seed % 4 else share * sum(case.cost)))


def problem_of(case: Case, unit: float = 1) -> OffloadingProblem:
    """`unit`: an event of the case, in events."""
    indptr = np.cumsum([0, *map(len, case.interests)])
    indices = np.array([topic for wanted in case.interests for topic in wanted], np.int32)
    rates, tau, cost = (np.array(values) * unit for values in (case.event_rate, case.tau, case.cost))
    return OffloadingProblem.of(indptr, indices, rates, case.capacity * unit, tau, cost)


@pytest.fixture(scope="module")
def solved() -> list[tuple[Case, dict[Objective, float | Fraction]]]:
    cases = [random_case(seed) for seed in range(330)]
    return [(case, dict(zip(OBJECTIVES, oracle.optima(case), strict=True))) for case in cases]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_bound_is_below_the_optimum(
    objective: Objective, solved: list[tuple[Case, dict[Objective, float | Fraction]]]
) -> None:
    tight, close, better = Counter[str](), Counter[str](), Counter[str]()
    for number, (case, optimum) in enumerate(solved):
        problem = problem_of(case, 0.5 if number % 4 == 1 else 1)
        topics = run_greedy(problem, objective).topics if number % 5 else None
        bounds = upper_bounds(problem, objective, topics)
        wanting = sum(case.need(v) > 0 for v in range(len(case.interests)))
        for name, bound in bounds.items():
            assert bound >= optimum[objective], (number, name)
            assert bound <= wanting
            tight[name] += bound < wanting and bound - optimum[objective] < 1e-9
            close[name] += bound - optimum[objective] < 1
            better[name] += "threshold" in bounds and bound < bounds["threshold"] - 1e-9
        assert list(bounds) == [
            name
            for name in NORMALISED[objective]
            if name == "lp-dual" or (topics is not None if name == "data-dependent" else problem.normalised)
        ]
    assert all(tight[name] >= 5 for name in NORMALISED[objective]), tight
    assert all(better[name] >= 40 for name in NORMALISED[objective][1:]), better
    assert close["lp-dual"] >= 200, close


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_larger_optima_by_a_solver(objective: Objective) -> None:
    """In B3M the dual can be below the linear relaxation, where events that are not enough count."""
    below = 0
    for seed in range(24):
        case = random_case(1000 + seed, topics=16, subscribers=30)
        best = oracle.programme(case, objective == "satisfaction")
        problem = problem_of(case)
        bounds = upper_bounds(problem, objective, run_greedy(problem, objective).topics)
        for name, bound in bounds.items():
            assert bound >= best - 1e-6, (seed, name)
        below += bounds["lp-dual"] < oracle.programme(case, in_part=True, relaxed=True) - 1
    assert below >= 3 if objective == "satisfied" else below == 0, below


def test_events_that_are_not_enough_are_worth_nothing() -> None:
    """Topic 0 brings four subscribers 9 of 10 for 1, and another topic each the rest for 4: of 5, one is satisfied, not 3.7."""
    case = Case([[0, 1], [0, 2], [0, 3], [0, 4]], [9, 1, 1, 1, 1], [1.0, 4, 4, 4, 4], 5, [10] * 4)
    problem = problem_of(case)
    assert oracle.optima(case) == (1, Fraction(37, 10))
    assert oracle.programme(case, in_part=True, relaxed=True) == pytest.approx(3.7)
    for topics in (None, np.array([0, 1])):
        assert lp_dual(problem, "satisfaction", topics) == pytest.approx(3.7)
        assert lp_dual(problem, "satisfied", topics) == 1


def test_both_oracles_agree() -> None:
    for seed in range(20):
        case = random_case(seed)
        exact = oracle.optima(case)
        assert oracle.programme(case, in_part=False) == pytest.approx(exact[0])
        assert oracle.programme(case, in_part=True) == pytest.approx(float(exact[1]))


def test_the_dual_comes_close_to_the_linear_relaxation() -> None:
    for seed in range(12):
        case = random_case(2000 + seed, topics=40, subscribers=80)
        problem = problem_of(case)
        relaxed = oracle.programme(case, in_part=True, relaxed=True)
        for topics in (None, run_greedy(problem, "satisfaction").topics):
            assert relaxed - 1e-6 <= lp_dual(problem, "satisfaction", topics) <= 1.015 * relaxed, seed


def test_sums_of_rates_about_a_need() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, most, size) for most in (4, 70, 300, 5000) for size in rng.integers(0, 9, 80)]
    rates = np.concatenate(rows)
    need = np.array([rng.integers(0, row.sum() + 2) for row in rows])
    indptr = np.cumsum([0, *map(len, rows)])
    below, enough = kernels.sums_about(indptr, np.arange(rates.size, dtype=np.int32), rates, need)
    for row, goal, least, most in zip(rows, need.tolist(), below.tolist(), enough.tolist(), strict=True):
        expected = oracle.sums_about(row.tolist(), goal)
        assert most == (kernels.NEVER if expected[1] is None else expected[1])
        assert least == (expected[0] if most > goal else 0)


def test_needs_of_many_events_stand_for_their_sums() -> None:
    """250,000 and 260,000 are 510,000; of 500,001 events it is not asked for how many more there have to be."""
    need = np.array([500_001, 500_001, 510_000])
    rates = np.array([250_000, 260_000, 500_000])
    _, enough = kernels.sums_about(np.array([0, 2, 5, 7]), np.array([0, 1, 0, 1, 2, 0, 1], np.int32), rates, need)
    assert enough.tolist() == [500_001, 500_001, 510_000]


def test_what_is_left_pays_for_a_part_where_the_theorem_adds_one() -> None:
    case = normalised([[0], [1], [2]], [4, 4, 4], 9, [4, 4, 4])
    assert oracle.theorem(case) == threshold(problem_of(case), "satisfied") == 2
    assert threshold(problem_of(case), "satisfaction") == pytest.approx(2.25)  # VI.4 as printed: 3


def test_the_theorem_is_as_printed(solved: list[tuple[Case, dict[Objective, float | Fraction]]]) -> None:
    ours = list[float]()
    for case, _ in solved:
        problem = problem_of(case)
        if problem.normalised:
            assert threshold(problem, "satisfied") == oracle.theorem(case)
            ours.append(oracle.theorem(case) + 1 - threshold(problem, "satisfaction"))
    assert len(ours) > 200
    assert min(ours) > -1e-9
    assert np.mean(ours) > 0.4


def test_who_cannot_be_satisfied_is_dropped() -> None:
    """The only topic of subscriber 0 costs 12 of 11; both that subscriber 1 needs cost 6 each; subscriber 2 can have what it needs."""
    case = normalised([[0], [1, 2], [3]], [12, 6, 6, 5], 11, [9, 9, 3])
    problem = problem_of(case)
    assert lp_dual(problem, "satisfied") == oracle.optima(case)[0] == 1
    assert lp_dual(problem, "satisfaction") == pytest.approx(float(oracle.optima(case)[1]))  # 1 2/3
    assert upper_bounds(problem, "satisfied")["subset-sum"] == 1
    assert threshold(problem, "satisfied") == 1


def test_topics_that_do_not_fit_say_nothing() -> None:
    case = random_case(17)
    problem = problem_of(case)
    every = np.arange(problem.topics)
    assert lp_dual(problem, "satisfaction", every) == lp_dual(problem, "satisfaction")
    assert upper_bounds(problem, "satisfaction", every)["data-dependent"] >= oracle.optima(case)[1]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nothing_to_gain(objective: Objective) -> None:
    """No subscribers, no topics, no capacity, nothing needed: 0 by each bound."""
    for case in (
        Case([], [3, 4], [0.0, 0.0], 5, []),
        Case([], [], [], 5, []),
        Case([[], []], [], [], 5, [1, 2]),
        normalised([[0, 1], [1]], [3, 4], 0, [3, 4]),
        normalised([[0, 1], [1]], [3, 4], 9, [0, -1]),
    ):
        bounds = upper_bounds(problem_of(case), objective, np.empty(0, np.int32))
        assert bounds == dict.fromkeys(NORMALISED[objective], 0.0)


def test_partial_enumeration_is_within_its_guarantee() -> None:
    """And better than greedy at times: it starts with the topic that greedy cannot pay for any more."""
    guarantee, better = 1 - 1 / math.e, 0
    policy = PartialEnumeration(PartialEnumeration.Parameters())
    for seed in range(40):
        case = random_case(seed, topics=7)
        case = replace(case, cost=[max(value, 0.25) for value in case.cost])
        problem = problem_of(case)
        topics = policy.decide(problem).topics
        assert len(set(topics.tolist())) == len(topics)
        found = outcome(problem, topics)
        assert found.cost <= problem.capacity
        assert found.total >= guarantee * oracle.optima(case)[1]
        greedy = outcome(problem, run_greedy(problem, "satisfaction").topics).total
        assert found.total >= greedy
        better += found.total > greedy
    assert better >= 5


def test_partial_enumeration_refuses_many_topics() -> None:
    count = MOST_TOPICS + 1
    case = normalised([[topic] for topic in range(count)], [1] * count, 10, [1] * count)
    expected = (
        r"41 topics that fit give 11,522 sets to start from, allowed: up to 40 topics \(policy fb3m takes any number\)"
    )
    with pytest.raises(InputError, match=expected):
        PartialEnumeration(PartialEnumeration.Parameters()).decide(problem_of(case))


def test_partial_enumeration_takes_as_many_topics_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "MOST_TOPICS", 4)
    policy = PartialEnumeration(PartialEnumeration.Parameters())
    few, many = (
        problem_of(normalised([[topic] for topic in range(count)], [1] * count, 10, [1] * count)) for count in (4, 5)
    )
    assert sorted(policy.decide(few).topics.tolist()) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="5 topics that fit give 26 sets to start from, allowed: up to 4 topics"):
        policy.decide(many)
