"""Intervals and paired differences against scipy.stats and against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.experiments.statistics import mean_interval, paired_difference_percent

# no differences so small that their squares are 0: scipy warns of those
numbers = st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 6)), min_size=2, max_size=30)


@given(numbers, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students_t(values: list[float], confidence: float) -> None:
    found = mean_interval(values, confidence)
    if not found.varies:
        assert np.ptp(values) <= 1e-9 * np.abs(values).max()
        return
    low, high = stats.t.interval(confidence, len(values) - 1, np.mean(values), stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((np.mean(values), low, high), rel=1e-9, abs=1e-6)
    assert found.n == len(values)


def test_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(1).normal(5.0, 2.0, (4000, 6))
    covered = np.mean([not mean_interval(sample).excludes(5.0) for sample in samples])
    assert covered == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("values", [[7.0], [0.1 + 0.2, 0.3], [1.0, 1.0 + 4e-10], [0.0, 0.0, 0.0]])
def test_no_interval_without_variance_or_with_one_replication(values: list[float]) -> None:
    found = mean_interval(values)
    assert (found.mean, found.n, found.varies) == (values[0], len(values), False)
    assert not found.bounded
    assert (found.low, found.high) == (None, None)
    assert not found.excludes(-1)


def test_undefined_values_are_left_out() -> None:
    assert mean_interval([math.nan, 1.0, 3.0]) == mean_interval([1.0, 3.0])
    nothing = mean_interval([math.nan, math.nan])
    assert math.isnan(nothing.mean)
    assert nothing.n == 0


def test_confidence_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1, found 95"):
        mean_interval([1, 2], 95)


def test_paired_difference_is_per_replication() -> None:
    found = paired_difference_percent([50, 30, math.nan, 1, 8], [100, 40, 5, 0, math.nan])
    assert found[:2].tolist() == [-50.0, -25.0]
    assert np.isnan(found[2:]).all()
    with pytest.raises(ValueError, match="one baseline value per value"):
        paired_difference_percent([1, 2], [1])


def test_pairing_removes_the_noise_that_variants_share() -> None:
    noise = np.random.default_rng(2).lognormal(0, 1, 10)
    difference = mean_interval(paired_difference_percent(80 * noise, 100 * noise))
    assert difference.mean == pytest.approx(-20)
    assert difference.high is None or difference.high - difference.mean < 1e-9
