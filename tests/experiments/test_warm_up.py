"""MSER-5 on series with a known end of the warm-up, and on runs averaged window by window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import replications as oracle

from sim.experiments.statistics import ROUNDING
from sim.experiments.warm_up import FEWEST_VALUES, mser5, warm_up_of


def autoregressive(n: int, seed: int, lag: float = 0.5) -> NDArray[np.float64]:
    """A stationary AR(1) with variance 1."""
    noise = np.random.default_rng(seed).normal(0, 1, n)
    x = noise.copy()
    for i in range(1, n):
        x[i] = lag * x[i - 1] + math.sqrt(1 - lag**2) * noise[i]
    return x


def transient(n: int, height: float, time: float) -> NDArray[np.float64]:
    return height * np.exp(-np.arange(n) / time)


@pytest.mark.parametrize("seed", range(25))
def test_agrees_with_its_definition(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(90, 400))
    height, time = generator.choice([0.0, 2.0, 10.0]), generator.uniform(5, 2 * n)
    series = autoregressive(n, seed) + transient(n, height, time)
    assert mser5(series) == oracle.mser5(series.tolist())
    assert mser5(-1e3 * series + 7) == mser5(series)


def test_a_transient_is_cut_off() -> None:
    """The transient, 10 · exp(−t / 40), has fallen to one standard deviation at t = 92."""
    cuts = [mser5(autoregressive(2000, seed) + transient(2000, 10, 40)) for seed in range(20)]
    assert all(cut is not None and 70 <= cut <= 200 for cut in cuts)
    assert 90 <= np.median(cuts) <= 120


def test_what_is_stationary_is_kept() -> None:
    cuts = [mser5(autoregressive(2000, seed)) for seed in range(20)]
    assert np.median([math.inf if cut is None else cut for cut in cuts]) <= 100


def test_a_step_is_cut_where_it_ends() -> None:
    assert mser5([9.0] * 40 + [1.0] * 160) == 40
    assert mser5([9.0] * 42 + [1.0] * 158) == 45  # batches are left out whole
    assert mser5([0.1 + 0.2] * 100) == 0
    assert mser5([0.0] * 100) == 0


@pytest.mark.parametrize(
    "series", [np.arange(200.0), np.arange(200.0) + autoregressive(200, 1), [1.0] * 120 + [9.0] * 80]
)
def test_what_still_drifts_has_no_end_of_warm_up(series: NDArray[np.float64]) -> None:
    assert mser5(series) is None


def test_too_short_to_tell() -> None:
    assert mser5([5.0] * (FEWEST_VALUES - 1)) is None
    assert mser5([5.0] * FEWEST_VALUES) == 0
    assert mser5([]) is None


@pytest.mark.parametrize("level", [1e-9, 1.0, 1e9])
def test_what_rounding_leaves_is_no_transient(level: float) -> None:
    series = np.full(FEWEST_VALUES, level)
    series[0] *= 1 + ROUNDING
    assert mser5(series) == 0


def test_a_few_last_values_that_are_alike_cut_nothing() -> None:
    assert mser5(np.append(autoregressive(200, 4), np.zeros(15))) == mser5(autoregressive(200, 4)) == 0


def test_runs_are_averaged_window_by_window() -> None:
    """One run is too noisy to show the transient; twenty show it."""
    starts = 60.0 * np.arange(400)
    runs = np.stack([8 * autoregressive(400, seed) + transient(400, 10, 20) for seed in range(20)])
    end = warm_up_of(runs, starts)
    assert end == 60 * mser5(runs.mean(axis=0))
    assert 20 * 60 <= end <= 100 * 60


def test_windows_without_a_value_are_passed_over() -> None:
    step = np.array([9.0] * 40 + [1.0] * 160)
    runs = np.full((2, 300), math.nan)
    runs[0, 100:] = runs[1, 100:] = step
    runs[0, 120:200:3] = math.nan  # the other run has one
    assert warm_up_of(runs, np.arange(300.0)) == 140
    assert warm_up_of(np.full((2, 300), math.nan), np.arange(300.0)) is None
    with pytest.raises(ValueError, match=r"a start per window, found \(5,\) for \(2, 300\)"):
        warm_up_of(runs, np.arange(5.0))
