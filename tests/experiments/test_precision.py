"""The number of replications needed: the rule against its definition, and its edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import replications as oracle

from sim.experiments.precision import FEWEST_REPLICATIONS, precise, replications_needed
from sim.experiments.statistics import mean_interval

values = st.lists(st.integers(50, 150), min_size=FEWEST_REPLICATIONS, max_size=40).filter(lambda x: np.ptp(x) > 0)
relatives = st.sampled_from([0.01, 0.03, 0.1, 0.2])


@given(values, relatives, st.sampled_from([0.8, 0.95, 0.99]), st.booleans())
def test_the_least_number_that_would_do(x: list[int], relative: float, confidence: float, below: bool) -> None:
    x = [-v for v in x] if below else x
    needed = replications_needed(x, relative, confidence, 10_000)
    assert needed == oracle.replications_needed(x, relative, confidence)
    assert precise(x, relative, confidence) == (needed == len(x))
    assert replications_needed([1000 * v for v in x], relative, confidence, 10_000) == needed


@given(values, relatives, st.integers(1, 60))
def test_more_precision_or_confidence_never_takes_fewer(x: list[int], relative: float, limit: int) -> None:
    needed = replications_needed(x, relative, 0.95, limit)
    assert replications_needed(x, relative / 2, 0.95, limit) >= needed
    assert replications_needed(x, relative, 0.99, limit) >= needed
    assert replications_needed(x, relative, 0.95, limit + 5) >= needed
    assert len(x) <= needed <= max(len(x), min(2 * len(x), limit))


def test_replications_go_on_until_the_interval_is_narrow() -> None:
    generator, x, rounds = np.random.default_rng(1), np.empty(0), []
    while (needed := replications_needed(x, 0.02, 0.95, 10_000)) > x.size:
        x = np.append(x, generator.normal(10.0, 2.0, needed - x.size))
        rounds.append(needed)
    assert rounds[:2] == [10, 20]  # no more than twice as many
    assert 300 < needed < 480  # (1.96 · 2 / 0.196)² = 400 for the limit of many
    interval = mean_interval(x)
    assert interval.high is not None
    assert interval.high - interval.mean <= 0.02 / 1.02 * interval.mean


@pytest.mark.parametrize("there", [0, 1, 2, FEWEST_REPLICATIONS - 1])
def test_no_stop_before_the_least(there: int) -> None:
    assert replications_needed([5.0] * there, 0.02) == FEWEST_REPLICATIONS
    assert replications_needed([5.0] * there, 0.02, max_replications=4) == max(there, 4)
    assert replications_needed([5.0] * there, 0.02, least=3) == max(there, 3)


def test_what_does_not_vary_or_is_undefined_stops_at_the_least() -> None:
    assert replications_needed([5.0] * 10, 0.02) == 10
    assert replications_needed([0.0] * 10, 0.02) == 10
    assert replications_needed([math.nan] * 10, 0.02) == 10
    assert not precise([math.nan] * 10, 0.02)
    assert not precise([5.0], 0.02)
    assert precise([0.0, 0.0], 0.02)


def test_a_mean_of_0_is_never_precise() -> None:
    assert replications_needed([-1.0, 1.0] * 10, 0.5, max_replications=500) == 40
    assert replications_needed([-1.0, 1.0] * 20, 0.5, max_replications=50) == 50
    assert replications_needed([-1.0, 1.0] * 25, 0.5, max_replications=50) == 50


def test_the_limit_takes_nothing_back() -> None:
    assert replications_needed([1.0, 9.0] * 20, 0.01, max_replications=20) == 40


def test_replications_without_a_value_are_expected_to_recur() -> None:
    """If the metric is defined in every second replication only, twice as many are needed."""
    x = np.random.default_rng(2).normal(10, 1, 20)
    full = replications_needed(x, 0.04)
    assert 20 < full < 40
    holes = np.full(40, math.nan)
    holes[::2] = x
    assert replications_needed(holes, 0.04, max_replications=100) == 2 * full
    assert replications_needed([3.0] + [math.nan] * 9, 0.04) == 20


@pytest.mark.parametrize("relative", [0.025, 0.03, 0.035, 0.04])
def test_a_replication_too_few_is_never_asked_for(relative: float) -> None:
    """If the metric is defined in two replications of three, half as many again are needed, rounded up."""
    x = np.random.default_rng(2).normal(10, 1, 20)
    full = replications_needed(x, relative)
    thirds = np.full((10, 3), math.nan)
    thirds[:, :2] = x.reshape(10, 2)
    assert replications_needed(thirds.ravel(), relative, max_replications=100) == math.ceil(1.5 * full)
