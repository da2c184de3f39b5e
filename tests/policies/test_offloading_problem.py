"""Offloading problems from rates of any kind, the values derived from them, and the baselines."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from test_offloading_greedy import CASES, problem_of

from sim import plugins
from sim.base.errors import InputError
from sim.policies.offloading.greedy import run_greedy
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import OffloadingProblem

INDPTR, INDICES = np.array([0, 2, 2, 3, 5]), np.array([0, 2, 1, 0, 1], np.int32)  # the second subscriber wants nothing


def keeps(name: str, problem: OffloadingProblem) -> list[int]:
    policy = plugins.load("offloading", name)
    return [int(topic) for topic in policy(policy.Parameters()).decide(problem).topics]


def test_what_subscribers_need_and_who_they_are() -> None:
    for case in CASES[:100]:
        problem = problem_of(case)
        assert problem.need.tolist() == [case.need(v) for v in range(len(case.interests))]
        starts, subscribers = problem.by_topic
        by_topic = [subscribers[start:stop].tolist() for start, stop in pairwise(starts)]
        assert by_topic == [case.subscribers(topic) for topic in range(len(case.event_rate))]
        assert problem.degrees.tolist() == [len(those) for those in by_topic]


def test_whole_rates_stay_as_they_are() -> None:
    problem = OffloadingProblem.of(INDPTR, INDICES, [3.0, 2.0, 9.0], 5.0, 4)
    assert (problem.scale, problem.event_rate.tolist(), problem.threshold) == (1, [3, 2, 9], 4)
    assert (problem.need.tolist(), problem.cost.tolist(), problem.normalised) == ([4, 0, 2, 4], [6.0, 4.0, 9.0], True)


def test_other_rates_are_in_thousandths_and_never_vanish() -> None:
    problem = OffloadingProblem.of(INDPTR, INDICES, [2.5, 1e-9, 0.0], 5.0, [1.0, 7.0, 0.25, math.inf])
    assert (problem.scale, problem.event_rate.tolist()) == (1000, [2500, 1, 0])
    assert problem.need.tolist() == [1000, 0, 1, 2501]
    assert problem.cost.tolist() == [5.0, 0.002, 0.0]
    assert OffloadingProblem.of(INDPTR, INDICES, [3, 2, 9], 5.0, 2.5).need.tolist() == [2500, 0, 2000, 2500], (
        "tau counts, too"
    )


def test_a_threshold_of_nothing_is_free() -> None:
    problem = OffloadingProblem.of(INDPTR, INDICES, [3, 2, 9], 99.0, [-1.0, 5.0, 0.0, 5.0])
    assert problem.need.tolist() == [0, 0, 0, 5]
    found = outcome(problem, run_greedy(problem).topics)
    assert (found.free, found.satisfied, found.satisfaction) == (3, 1, 1.0)
    nobody = outcome(OffloadingProblem.of(INDPTR, INDICES, [3, 2, 9], 99.0, 0), [1])
    assert (nobody.free, nobody.satisfied, nobody.satisfaction, nobody.cost) == (4, 0, None, 4.0)


@pytest.mark.parametrize(
    ("rates", "tau", "message"),
    [
        ([1.0, math.nan, 2.0], 3, "event rates: expected finite numbers of 0 or more, found nan for topic 1"),
        ([1.0, 1.0, math.inf], 3, "found inf for topic 2"),
        ([-1, 1, 1], 3, "found -1 for topic 0"),
        ([1, 1, 1], math.nan, "tau: expected numbers, found nan"),
        ([1, 1, 1 << 62], 3, "too large for a subscriber to 2 topics"),
    ],
)
def test_rates_that_cannot_be(rates: Any, tau: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        OffloadingProblem.of(INDPTR, INDICES, rates, 5.0, tau)


def test_controls_take_topics_in_turn_if_they_fit() -> None:
    """Costs are 6, 4, 9 and 5; topic 4 has no subscribers, topic 5 no events."""
    indptr, indices = np.array([0, 2, 5, 7]), np.array([0, 2, 0, 1, 3, 1, 5], np.int32)
    problem = OffloadingProblem.of(indptr, indices, [3, 2, 9, 5, 7, 0], 15.0, 3, key=5)
    assert keeps("popular", problem) == [0, 1, 3]
    assert keeps("loudest", problem) == [2, 3]
    order = np.random.default_rng(5).permutation(6).tolist()
    chosen = keeps("random", problem)
    assert chosen == sorted(chosen, key=order.index)
    assert (
        len(
            {
                tuple(keeps("random", OffloadingProblem.of(indptr, indices, [3, 2, 9, 5, 7, 0], 15.0, 3, key=key)))
                for key in range(9)
            }
        )
        > 1
    )


def test_fb3m_is_the_better_of_its_two_types_and_by_gain_on_ties() -> None:
    """By gain for the cost, the small topic comes first, and the large one, that all want, no longer fits (ODS VI.A)."""
    indptr, indices = np.arange(6), np.array([0, 1, 1, 1, 1], np.int32)
    problem = OffloadingProblem.of(indptr, indices, [1, 1], 5.0, 1, np.array([1.0, 5.0]))
    assert run_greedy(problem, "satisfaction", "ratio").topics.tolist() == [0]
    assert keeps("fb3m", problem) == keeps("fb3m-slow", problem) == [1]
    tied = OffloadingProblem.of(np.arange(3), np.array([0, 1], np.int32), [1, 1], 5.0, 1, np.array([5.0, 4.0]))
    assert run_greedy(tied, "satisfaction", "ratio").topics.tolist() == [1]
    assert keeps("fb3m", tied) == [0]
