"""Intervals, differences and their tests against scipy.stats and their definitions; Holm's correction."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import replications as oracle
from scipy import stats

from sim.experiments.statistics import holm, mean_interval, paired_difference_percent, paired_t, welch_percent, welch_t

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


def test_what_is_the_same_but_for_rounding_does_not_differ() -> None:
    values, baseline = [0.1 + 0.2, 1 / 3 + 1 / 3, 7.0], [0.3, 2 / 3, 7.0]
    assert paired_difference_percent(values, baseline).tolist() == [0, 0, 0]
    test = paired_t(values, baseline)
    assert (test.difference.mean, test.difference.n, test.p, test.effect) == (0, 3, None, None)


pairs = st.integers(3, 20).flatmap(lambda n: st.tuples(*[st.lists(st.integers(-999, 999), min_size=n, max_size=n)] * 2))


@given(pairs, st.sampled_from([0.8, 0.95, 0.99]))
def test_paired_test_is_students_test_of_the_differences(both: tuple[list[int], list[int]], confidence: float) -> None:
    values, baseline = map(np.array, both)
    test = paired_t(values, baseline, confidence)
    assert test.paired
    assert test.difference == mean_interval(values - baseline, confidence)
    assert test == paired_t(values - baseline, 0, confidence)
    assume(test.difference.varies)
    found = stats.ttest_rel(values, baseline)
    assert test.p == pytest.approx(found.pvalue, rel=1e-9, abs=1e-15)
    assert test.freedom == found.df == len(values) - 1
    assert test.effect is not None
    assert np.sign(test.effect) == np.sign(test.difference.mean)


@given(
    st.lists(st.integers(-999, 999), min_size=2, max_size=20), st.lists(st.integers(-99, 99), min_size=2, max_size=9)
)
def test_unpaired_test_is_welchs(values: list[int], baseline: list[int]) -> None:
    test = welch_t(values, baseline)
    assert not test.paired
    assert test.difference.mean == pytest.approx(np.mean(values) - np.mean(baseline))
    assert test.difference.n == min(len(values), len(baseline))
    assume(np.ptp(values) > 0 and np.ptp(baseline) > 0)  # else scipy warns
    found = stats.ttest_ind(values, baseline, equal_var=False)
    low, high = found.confidence_interval(0.95)
    assert (test.p, test.freedom) == pytest.approx((found.pvalue, found.df), rel=1e-6, abs=1e-12)
    assert (test.difference.low, test.difference.high) == pytest.approx((low, high))


@pytest.mark.parametrize("compare", [paired_t, welch_t])
@given(both=pairs, factor=st.integers(1, 50), shift=st.integers(-500, 500))
def test_differences_keep_to_the_scale(
    compare: Any, both: tuple[list[int], list[int]], factor: int, shift: int
) -> None:
    values, baseline = map(np.array, both)
    test = compare(values, baseline)
    assume(test.difference.varies)
    other = compare(factor * values + shift, factor * baseline + shift)
    turned = compare(baseline, values)
    assert (other.p, other.effect, other.freedom) == pytest.approx((test.p, test.effect, test.freedom), abs=1e-9)
    assert (turned.p, -turned.effect) == pytest.approx((test.p, test.effect), abs=1e-9)
    interval = [test.difference.mean, test.difference.low, test.difference.high]
    bounds = [other.difference.mean, other.difference.low, other.difference.high]
    assert bounds == pytest.approx([factor * x for x in interval], abs=1e-6)
    assert [turned.difference.low, turned.difference.high] == pytest.approx([-interval[2], -interval[1]], abs=1e-6)
    assume(abs(test.p - 0.05) > 1e-9)
    assert test.difference.excludes(0) == (test.p < 0.05)


@pytest.mark.parametrize(("compare", "other"), [(paired_t, 0.0), (welch_t, 1.0)])
def test_effects_of_small_samples_are_unbiased(compare: Any, other: float) -> None:
    """Five replications overrate an effect by a quarter without Hedges' correction."""
    generator, effect = np.random.default_rng(5), 1.5
    samples, baselines = generator.normal(effect, 1, (3000, 5)), other * generator.normal(0, 1, (3000, 5))
    effects = [compare(x, b).effect for x, b in zip(samples, baselines, strict=True)]
    assert np.mean(effects) == pytest.approx(effect, abs=4 * stats.sem(effects))
    assert 4 * stats.sem(effects) < 0.15


@pytest.mark.parametrize(
    ("values", "baseline", "mean", "n"),
    [([], [], math.nan, 0), ([math.nan], [1], math.nan, 0), ([3], [1], 2, 1), ([4, 4, 4], [1, 1, 1], 3, 3)],
)
def test_no_test_where_nothing_varies_or_values_are_too_few(
    values: list[float], baseline: list[float], mean: float, n: int
) -> None:
    for test in (paired_t(values, baseline), welch_t(values, baseline)):
        assert test.difference.mean == pytest.approx(mean, nan_ok=True)
        assert (test.difference.n, test.difference.bounded) == (n, False)
        assert (test.p, test.effect, test.freedom) == (None, None, None)


def test_what_is_undefined_leaves_out_its_pair_alone() -> None:
    values, baseline = [5, math.nan, 3, 9, 4], [1, 2, math.nan, 4, 2]
    assert paired_t(values, baseline) == paired_t([5, 9, 4], [1, 4, 2])
    assert welch_t(values, baseline) == welch_t([5, 3, 9, 4], [1, 2, 4, 2])
    two = paired_t([1, 2], [0, 4])
    assert two.p is not None
    assert two.effect is None  # of two differences, the standardised mean has no expectation


def test_samples_of_different_size_and_a_sample_that_does_not_vary() -> None:
    test = welch_t([1, 2, 3], [5, 5])
    assert (test.difference.mean, test.difference.n, test.freedom) == (-3, 2, 2)
    assert test.difference.high == pytest.approx(-3 + stats.t.ppf(0.975, 2) / math.sqrt(3))


@given(both=pairs, factor=st.sampled_from([0.5, 4, 1000]))
def test_difference_in_percent_excludes_0_where_welchs_does(both: tuple[list[int], list[int]], factor: float) -> None:
    values, baseline = np.array(both) + 1500.0
    test, plain = welch_percent(values, baseline), welch_t(values, baseline)
    assert (test.p, test.effect, test.freedom) == (plain.p, plain.effect, plain.freedom)
    assert test.difference.mean == pytest.approx(100 * (values.mean() / baseline.mean() - 1), abs=1e-9)
    assume(test.difference.bounded and abs(plain.p - 0.05) > 1e-6)
    assert test.difference.low <= test.difference.mean <= test.difference.high
    assert test.difference.excludes(0) == plain.difference.excludes(0)
    scaled = welch_percent(-factor * values, -factor * baseline).difference
    assert (scaled.low, scaled.high) == pytest.approx((test.difference.low, test.difference.high), abs=1e-6)


def test_difference_in_percent_covers_the_true_one() -> None:
    """Three times a baseline that is known to ± 10 %: an interval that took it for exact would be too narrow by far."""
    generator = np.random.default_rng(7)
    values, baselines = generator.normal(300, 5, (3000, 8)), generator.normal(100, 14, (3000, 8))
    found = [welch_percent(x, b).difference for x, b in zip(values, baselines, strict=True)]
    assert np.mean([not interval.excludes(200) for interval in found]) == pytest.approx(0.95, abs=0.012)


def test_difference_in_percent_of_a_baseline_near_0() -> None:
    near = welch_percent([5, 6, 7], [-1, 2, 0.5])
    assert (near.difference.mean, near.difference.bounded) == (1100, False)
    assert near.p is not None
    for baseline in ([0, 0, 0], [-1, 1, 0], []):
        assert math.isnan(welch_percent([5, 6, 7], baseline).difference.mean)
        assert welch_percent([5, 6, 7], baseline).difference.n == 0
    assert welch_percent([6], [4]).difference == mean_interval([50.0])


def test_holm_by_hand() -> None:
    """Four tests: times 4, 3, 2 and 1 from the smallest, never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert np.isnan(holm([math.nan])).all()
    assert holm([]).shape == (0,)
    assert holm([None, 0.01, None, 0.02])[[1, 3]] == pytest.approx([0.02, 0.02])


p_values = st.lists(st.sampled_from([0, 0.001, 0.01, 0.02, 0.5, 1]) | st.floats(0, 1), min_size=1, max_size=7)


@given(p_values, st.randoms(use_true_random=False))
def test_holm_is_bonferronis_test_closed(values: list[float], random: random.Random) -> None:
    adjusted = holm(values)
    assert adjusted == pytest.approx(oracle.holm(values))
    assert (adjusted >= values).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(values)]) >= 0).all()
    order = random.sample(range(len(values)), len(values))
    assert holm([values[i] for i in order]) == pytest.approx(adjusted[order])
    with_gap = holm([math.nan, *values])
    assert math.isnan(with_gap[0])
    assert with_gap[1:] == pytest.approx(adjusted)
