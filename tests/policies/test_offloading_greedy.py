"""Greedy picks against B3M and F-B3M word for word, and the paper's algorithms as printed, which end differently or not at all."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import offloading as oracle
from oracles.offloading import Case

from sim.policies.offloading.greedy import GreedyEngine, run_greedy
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Objective, OffloadingProblem

RUNS: list[tuple[Objective, oracle.By, list[GreedyEngine]]] = [
    ("satisfied", "ratio", ["delta", "slow"]),
    ("satisfied", "gain", ["delta", "slow"]),
    ("satisfaction", "ratio", ["delta", "lazy", "slow"]),
    ("satisfaction", "gain", ["delta", "lazy", "slow"]),
]
WHOLE = {"satisfied": oracle.whole_b3m, "satisfaction": oracle.whole_fb3m}
EXACT = {"satisfied": oracle.exact_b3m, "satisfaction": oracle.exact_fb3m}


def random_case(seed: int) -> Case:
    """Few rates, so that there are many ties; by the seed: one tau or many, normalised costs or any, all or some subscribers."""
    rng = np.random.default_rng(seed)
    topics, subscribers = int(rng.integers(1, 12)), int(rng.integers(0, 16))
    interests = [np.flatnonzero(rng.random(topics) < rng.choice([0.1, 0.3, 0.6])).tolist() for _ in range(subscribers)]
    if seed % 11 == 0:
        interests = [[0]] * subscribers  # one topic for all
    most = int(rng.choice([1, 4, 30, 3000]))
    rates = rng.integers(seed % 5 > 0, most + 1, topics).tolist()
    tau = (
        rng.integers(0, 2 * most + 2, subscribers) if seed % 2 else np.full(subscribers, rng.integers(0, 2 * most + 2))
    )
    counts = [sum(topic in wanted for wanted in interests) for topic in range(topics)]
    cost = [float(rate * count) for rate, count in zip(rates, counts, strict=True)]
    if seed % 3 == 0:
        cost = [float(value) for value in (rng.integers(0, 5, topics) if seed % 2 else rng.uniform(0, 3, topics))]
    capacity = float(rng.choice([0, 0.2, 0.5, 0.7, 1]) * sum(cost))
    case = Case(interests, rates, cost, capacity, tau.tolist())
    if seed % 7 == 0:
        kept = [topic for topic in range(topics) if rng.random() < 0.2]
        case = replace(case, active=(rng.random(subscribers) < 0.7).tolist(), kept=kept)
    return case


def problem_of(case: Case, **more: Any) -> OffloadingProblem:
    indptr = np.cumsum([0, *map(len, case.interests)])
    indices = np.array([topic for wanted in case.interests for topic in wanted], np.int32)
    rates, tau, cost = np.array(case.event_rate), np.array(case.tau, np.int64), np.array(case.cost)
    return OffloadingProblem.of(indptr, indices, rates, case.capacity, tau, cost, **more)


def picks(case: Case, objective: Objective, by: oracle.By, engine: GreedyEngine = "delta") -> list[int]:
    active = None if case.active is None else np.array(case.active, bool)
    found = run_greedy(problem_of(case), objective, by, engine=engine, active=active, kept=case.kept)
    return [int(topic) for topic in found.topics]


CASES = [random_case(seed) for seed in range(400)]


@pytest.mark.parametrize(("objective", "by", "engines"), RUNS)
def test_picks_are_those_of_the_same_scores_computed_anew(
    objective: Objective, by: oracle.By, engines: list[GreedyEngine]
) -> None:
    lengths = []
    for case in CASES:
        expected = oracle.picks(case, WHOLE[objective], by)
        for engine in engines:
            assert picks(case, objective, by, engine) == expected, (engine, case)
        lengths.append(len(expected))
    assert np.mean(lengths) > 1.5, "there is something to be picked"


@pytest.mark.parametrize(("objective", "by", "engines"), RUNS)
def test_picks_are_those_of_exact_fractions_where_no_other_is_as_good(
    objective: Objective, by: oracle.By, engines: list[GreedyEngine]
) -> None:
    alone = 0
    for case in CASES:
        chosen = list(case.kept)
        for pick in [*picks(case, objective, by)[len(chosen) :], None]:
            scores = oracle.scores(case, EXACT[objective], by, chosen)
            if pick is None:
                assert scores == {}, case
                continue
            near = [
                topic for topic, score in scores.items() if score >= max(scores.values()) * (1 - Fraction(1, 10**9))
            ]
            assert pick in near, case
            alone += len(near) == 1
            chosen.append(pick)
    assert alone > 500


def test_topics_that_are_worth_the_same_for_their_cost_go_by_their_numbers() -> None:
    """With tau = 5 topics 0, 3 and 4 are worth 1 / 5 for each notification, whoever wants them."""
    interests = [[0, 1, 3, 4], [1, 2], [0, 2], [], [0, 1, 3, 4]]
    indptr, indices = np.cumsum([0, *map(len, interests)]), np.concatenate(interests).astype(np.int32)
    assert run_greedy(OffloadingProblem.of(indptr, indices, [2, 0, 10, 1, 4], 10.0, 5)).topics.tolist() == [0, 3]


def test_what_they_come_to_is_exact() -> None:
    for case in CASES:
        if case.active is not None:
            continue
        chosen = picks(case, "satisfaction", "ratio")
        found = outcome(problem_of(case), chosen)
        wanting = [v for v in range(len(case.interests)) if case.need(v) > 0]
        total = case.satisfaction(chosen)
        assert (found.satisfied, found.free) == (case.satisfied(chosen), len(case.interests) - len(wanting))
        assert (found.total, found.satisfaction) == (float(total), float(total / len(wanting)) if wanting else None)
        assert found.cost == pytest.approx(sum(case.cost[topic] for topic in chosen))
        assert found.value_of("satisfied") == found.satisfied
        assert found.value_of("satisfaction") == found.total


def test_of_equal_shares_of_thirds_the_sum_is_whole() -> None:
    problem = OffloadingProblem.of(np.arange(4), np.zeros(3, np.int32), [1, 2], 9.0, 3)
    assert outcome(problem, [0]).total == 3
    problem = OffloadingProblem.of(np.arange(0, 8, 2), np.array([0, 1] * 3, np.int32), [1, 2], 9.0, 3)
    assert (outcome(problem, [0]).total, outcome(problem, [0]).satisfaction) == (1, 1 / 3)


@pytest.mark.parametrize("factor", [10**9, 10**15])
def test_rates_of_any_size(factor: int) -> None:
    for case in CASES[:40]:
        if max(case.event_rate) <= 30:
            large = replace(
                case,
                event_rate=[rate * factor for rate in case.event_rate],
                tau=[tau * factor for tau in case.tau],
            )
            for objective, by, _ in RUNS:
                assert picks(large, objective, by) == oracle.picks(large, WHOLE[objective], by), large


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return replace(random_case(draw(st.integers(1000, 10**6))), active=None, kept=())


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 9), st.sampled_from([(objective, by) for objective, by, _ in RUNS]))
def test_what_holds_of_any_run(case: Case, first: int, how: tuple[Objective, oracle.By]) -> None:
    chosen = picks(case, *how)
    assert len(set(chosen)) == len(chosen)
    assert sum(case.cost[topic] for topic in chosen) <= case.capacity * (1 + 1e-12)
    problem = problem_of(case)
    on_the_way = [outcome(problem, chosen[:count]) for count in range(len(chosen) + 1)]
    for before, after in itertools.pairwise(on_the_way):
        assert after.satisfied >= before.satisfied
        assert after.total > before.total, "every pick is worth something"
    assert picks(replace(case, kept=chosen[:first]), *how) == chosen, "it goes on from where it stands"
    assert run_greedy(problem, *how, capacity=0.0).topics.tolist() == []
    nobody = np.zeros(len(case.interests), np.bool_)
    assert run_greedy(problem, *how, active=nobody).topics.tolist() == []


@settings(max_examples=60, deadline=None)
@given(cases(), st.data())
def test_the_gain_of_a_topic_never_rises_for_shares(case: Case, data: st.DataObject) -> None:
    """Theorem VI.2."""
    order = data.draw(st.permutations(range(len(case.event_rate))))
    topic, *others = order
    more = data.draw(st.integers(0, len(others)))
    fewer = data.draw(st.integers(0, more))

    def gain(chosen: list[int]) -> Fraction:
        return case.satisfaction([*chosen, topic]) - case.satisfaction(chosen)

    assert gain(others[:fewer]) >= gain(others[:more]) >= 0
    assert gain(others[:fewer]) == oracle.exact_fb3m(case, topic, others[:fewer])


def test_the_score_of_a_topic_can_rise_for_whole_subscribers() -> None:
    """The subscriber needs both topics: once it has one, the other is worth twice as much. A lazy run would not see that."""
    case = Case([[0, 1]], [1, 1], [1.0, 1.0], 2.0, [2])
    assert oracle.exact_b3m(case, 1, []) == Fraction(1, 2)
    assert oracle.exact_b3m(case, 1, [0]) == 1
    with pytest.raises(ValueError, match="rules out the lazy engine"):
        run_greedy(problem_of(case), engine="lazy")


def test_a_rise_can_decide() -> None:
    """Topic 2 is third at first, and second once topic 0 is kept: who wants both then lacks one event alone."""
    case = Case([[0, 2], [0, 2], [1]], [9, 1, 1], [1.0, 5.0, 2.0], 3.0, [10, 10, 1])
    assert picks(case, "satisfied", "ratio") == oracle.picks(case, oracle.exact_b3m, "ratio") == [0, 2]
    assert picks(case, "satisfaction", "ratio") == [0, 2]


def test_algorithm_3_as_printed_never_ends_once_a_subscriber_does_not_fit() -> None:
    case = Case([[0], [1]], [2, 3], [2.0, 3.0], 5.0, [9, 9])
    assert oracle.printed_upper_bound(case) == 2
    with pytest.raises(oracle.Endless):
        oracle.printed_upper_bound(replace(case, capacity=4.0))


def printed_and_right(case: Case, by: oracle.By) -> tuple[list[int], list[int]]:
    right = picks(case, "satisfaction", by)
    assert right == picks(case, "satisfaction", by, "lazy") == oracle.picks(case, oracle.exact_fb3m, by)
    return oracle.printed_greedy_fb3m(case, by), right


def test_algorithm_5_as_printed_looks_for_the_highest_of_no_topics() -> None:
    with pytest.raises(ValueError, match="empty"):
        oracle.printed_greedy_fb3m(Case([[0, 1]], [1, 1], [1.0, 1.0], 2.0, [9]), "gain")


def test_algorithm_5_as_printed_keeps_what_is_worth_nothing() -> None:
    assert printed_and_right(Case([[1]], [1, 1, 1], [1.0, 1.0, 1.0], 2.0, [1]), "gain") == ([1, 0], [1])


def test_algorithm_5_as_printed_believes_old_values_after_a_topic_that_does_not_fit() -> None:
    """Topic 1 does not fit; topic 2, worth nothing since topic 0 is kept, is taken for what it was before that."""
    case = Case([[1, 3], [0, 2]], [3, 3, 1, 1], [3.0, 3.0, 1.0, 1.0], 4.0, [1, 1])
    assert printed_and_right(case, "gain") == ([0, 2], [0, 3])


def test_algorithm_5_as_printed_stops_as_two_topics_are_worth_the_same() -> None:
    """Topics 1 and 2 come down to 1/8 one after the other, and topic 3, worth 1/12 by now, stays on top with 1/4."""
    case = Case([[0, 2, 3], [0, 1]], [3, 2, 2, 3], [6.0, 2.0, 2.0, 3.0], 10.0, [4, 4])
    printed, right = printed_and_right(case, "ratio")
    assert (printed, right) == ([0, 3], [0, 1, 2])
    assert case.satisfaction(printed) < case.satisfaction(right)
