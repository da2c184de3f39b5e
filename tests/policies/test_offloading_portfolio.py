"""The portfolio and the warm start against steps by hand, and invariants for all changes between two decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import portfolio as oracle
from test_offloading_greedy import problem_of, random_case

from sim import plugins
from sim.policies.offloading import greedy_kernels, portfolio, scoring, warm_start
from sim.policies.offloading.greedy import B3m, Fb3m, run_greedy
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.portfolio import Portfolio
from sim.policies.offloading.problem import Decision, OffloadingProblem

CASES = [replace(random_case(seed), active=None, kept=()) for seed in range(200)]
POLICIES = [B3m, Fb3m, Portfolio]


def decide(policy: Any, problem: OffloadingProblem, previous: Decision | None = None, **parameters: Any) -> Decision:
    decision: Decision = policy(policy.Parameters(**parameters)).decide(problem, previous)
    return decision


def market(
    seed: int = 1, topics: int = 300, subscribers: int = 1500, rates: NDArray[np.int64] | None = None
) -> OffloadingProblem:
    """Lognormal rates, popular topics and others; a tenth of what all would cost."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, topics + 1) ** 0.9
    wanted = [
        np.unique(rng.choice(topics, size, p=weight / weight.sum()))
        for size in np.minimum(rng.geometric(0.15, subscribers), topics)
    ]
    own = np.maximum(rng.lognormal(3, 2, topics), 1).astype(np.int64)
    indptr = np.cumsum([0, *map(len, wanted)])
    indices = np.concatenate(wanted).astype(np.int32)
    problem = OffloadingProblem.of(indptr, indices, own if rates is None else rates, 0.0, 100)
    return problem.with_capacity(float(np.floor(0.1 * np.sum(own * problem.degrees))))


def satisfied(problem: OffloadingProblem, topics: NDArray[np.int32]) -> set[int]:
    return set(np.flatnonzero(portfolio.satisfied(problem, topics)).tolist())


def test_the_portfolio_goes_by_its_name() -> None:
    assert plugins.load("offloading", "portfolio") is Portfolio


def test_what_is_given_away_and_who_is_out_of_reach_as_by_trying() -> None:
    given_away = out_of_reach = 0
    rng = np.random.default_rng(1)
    for case in CASES:
        problem = problem_of(case)
        topics = rng.permutation(problem.topics)[: rng.integers(problem.topics + 1)].astype(np.int32)
        left = portfolio.without_idle(problem, topics)
        assert left.tolist() == oracle.without_idle(case, topics.tolist())
        given_away += len(topics) - len(left)
        reach = portfolio.within_reach(problem)
        by_trying = np.array([oracle.within_reach(case, v) for v in range(problem.subscribers)], bool)
        assert not np.any(by_trying & ~reach)  # who can be satisfied counts
        out_of_reach += np.count_nonzero(~reach & (problem.need > 0))
    assert given_away > 100
    assert out_of_reach > 100


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_polish_loses_nobody_and_the_portfolio_never_to_greedy(seed: int) -> None:
    problem = problem_of(replace(random_case(seed), active=None, kept=()))
    start = run_greedy(problem).topics
    assert satisfied(problem, portfolio.without_idle(problem, start)) == satisfied(problem, start)
    values = [len(satisfied(problem, start)), len(satisfied(problem, portfolio.polished(problem, start)))]
    found = decide(Portfolio, problem).topics
    values += [len(satisfied(problem, found))]
    assert values == sorted(values)
    assert outcome(problem, found).cost <= problem.capacity
    assert len(set(found.tolist())) == len(found)


def test_the_portfolio_finds_what_greedy_does_not() -> None:
    problem = market()
    plain, found = (len(satisfied(problem, decide(policy, problem).topics)) for policy in (B3m, Portfolio))
    assert found > plain


@pytest.mark.parametrize("policy", POLICIES)
def test_where_nothing_has_changed_nothing_moves(policy: Any) -> None:
    for case in CASES[::2]:
        problem = problem_of(case)
        first = decide(policy, problem)
        assert decide(policy, problem, first).topics.tolist() == first.topics.tolist()
    problem = market()
    first = decide(policy, problem)
    assert decide(policy, problem, first).topics.tolist() == first.topics.tolist()
    if policy is not Portfolio:  # it is the start that says so, not a decision made anew
        kept = warm_start.kept(problem, first, policy.objective)
        assert kept is not None
        assert kept.topics.tolist() == first.topics.tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_few_topics_move_where_few_rates_change(policy: Any) -> None:
    """Ten of 1000 rates are doubled: as good as what is decided anew, with fewer moves."""
    moved_anew = moved = 0
    for seed in range(5):
        before = market(seed, topics=1000, subscribers=3000)
        first = decide(policy, before)
        rng = np.random.default_rng(seed)
        rates = before.event_rate.copy()
        rates[rng.choice(1000, 10, replace=False)] *= 2
        after = replace(before, event_rate=rates, cost=(rates * before.degrees).astype(np.float64))
        anew, warm = decide(policy, after, first, warm_start=False), decide(policy, after, first)
        assert anew.topics.tolist() == decide(policy, after).topics.tolist()
        values = [outcome(after, found.topics).value_of(policy.objective) for found in (anew, warm)]
        assert values[1] >= 0.99 * values[0]
        assert outcome(after, warm.topics).cost <= after.capacity
        moved_anew += len(np.setxor1d(first.topics, anew.topics))
        moved += len(np.setxor1d(first.topics, warm.topics))
    assert moved < 0.5 * moved_anew


def test_a_topic_that_has_grown_leaves_and_one_that_has_shrunk_comes() -> None:
    before = market()
    first = decide(B3m, before)
    is_kept = np.zeros(300, np.bool_)
    is_kept[first.topics] = True
    grown = int(first.topics[len(first.topics) // 2])
    shrunk = int(np.argmax(np.where(is_kept, -1, before.cost)))
    rates = before.event_rate.copy()
    rates[grown], rates[shrunk] = 200 * rates[grown], 1 + rates[shrunk] // 500
    after = replace(before, event_rate=rates, cost=(rates * before.degrees).astype(np.float64))
    kept = warm_start.kept(after, first, "satisfied")
    assert kept is not None
    assert grown not in kept.topics
    assert shrunk in kept.topics


def test_where_many_rates_have_changed_all_is_decided_anew() -> None:
    before = market()
    first = decide(B3m, before)
    rates = before.event_rate.copy()
    rates[:30] += 1
    after = replace(before, event_rate=rates, cost=(rates * before.degrees).astype(np.float64))
    assert warm_start.kept(after, first, "satisfied") is None
    assert decide(B3m, after, first).topics.tolist() == decide(B3m, after).topics.tolist()
    assert warm_start.kept(before, Decision(first.topics), "satisfied") is None  # nobody knows what has changed


def check_decision(problem: OffloadingProblem, policy: Any, previous: Decision) -> bool:
    """Check a decision made after `previous`: each topic at most once, within the capacity, none left out that fits.

    Returns whether it started from `previous`.
    """
    start = warm_start.kept(problem, previous, policy.objective)
    if start is not None:
        received = scoring.instance_of(problem, policy.objective)
        greedy_kernels.receive_all(received, start.topics)
        assert start.instance.missing.tolist() == received.missing.tolist()
        assert outcome(problem, start.topics).cost <= problem.capacity
    found = decide(policy, problem, previous)
    topics = found.topics.tolist()
    assert len(set(topics)) == len(topics)
    assert all(0 <= topic < problem.topics and problem.cost[topic] > 0 for topic in topics)
    assert outcome(problem, topics).cost <= problem.capacity
    assert run_greedy(problem, policy.objective, found.by, kept=topics).topics.tolist() == topics
    return start is not None


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), other=st.integers(0, 2**32), share=st.sampled_from([0, 0.3, 1.0]))
def test_decisions_hold_whatever_changes(seed: int, other: int, share: float) -> None:
    """Other subscribers, interests, rates, costs and thresholds, topics that vanish, and less capacity, down to none."""
    before, case = (problem_of(replace(random_case(s), active=None, kept=())) for s in (seed, other))
    after = case.with_capacity(share * case.capacity)
    for policy in POLICIES:
        check_decision(after, policy, decide(policy, before))


def test_decisions_hold_whatever_few_topics_change() -> None:
    """Rates that vanish or come to many times as much, dearer topics, other thresholds, and more capacity or less."""
    started = 0
    for seed in range(20):
        before, rng = market(seed, 200, 500), np.random.default_rng(seed)
        some = rng.choice(200, 5, replace=False)
        rates, dearer = before.event_rate.copy(), rng.choice([1.0, 1.0, 2.5], 5)
        rates[some] = rates[some] * rng.choice([0, 0.1, 0.5, 2, 10, 100], 5)
        cost = (rates * before.degrees).astype(np.float64)
        cost[some] *= dearer
        threshold = int(rng.choice([1, 100, 1000]))
        after = replace(before, event_rate=rates, cost=cost, threshold=threshold)
        after = after.with_capacity(before.capacity * rng.choice([0, 0.5, 0.98, 1, 1.02, 2]))
        started += sum(check_decision(after, policy, decide(policy, before)) for policy in POLICIES)
    assert started >= 20


@pytest.mark.parametrize("policy", POLICIES)
def test_without_capacity_nothing_is_kept(policy: Any) -> None:
    problem = market()
    assert not decide(policy, problem.with_capacity(0.0), decide(policy, problem)).topics.size
