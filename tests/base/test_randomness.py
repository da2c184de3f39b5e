"""Randomness by name and by identity: the same for the same names, and unrelated for others."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import draws as oracle
from scipy import stats

from sim.base.randomness import Streams
from sim.base.randomness_kernels import (
    keyed_exponential,
    keyed_gamma,
    keyed_mix,
    keyed_normal,
    keyed_subkey,
    keyed_uniform,
)

N = 20_000
KEY = Streams(1).key("test")


def test_a_stream_begins_anew_whenever_it_is_asked_for() -> None:
    streams = Streams(7, 3)
    first = streams.generator("friends").random(5)
    streams.generator("users").random(100)
    assert np.array_equal(streams.generator("friends").random(5), first)
    assert np.array_equal(Streams(7, 3).generator("friends").random(5), first)


def test_streams_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from sim.base.randomness import Streams; print(Streams(1, 2).key('x'), Streams(1, 2).generator('x').random())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{Streams(1, 2).key('x')} {Streams(1, 2).generator('x').random()}\n"}


def test_streams_of_other_names_seeds_and_replications_are_unrelated() -> None:
    columns = [
        Streams(seed, replication).generator(name).random(N)
        for seed in (1, 2)
        for replication in (0, 1)
        for name in ("friends", "users", "friends ")
    ]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / math.sqrt(N)


def test_keys_are_distinct_and_not_negative() -> None:
    keys = {Streams(s, r).key(n) for s in range(20) for r in range(20) for n in ("a", "b")}
    assert len(keys) == 800
    assert all(0 <= key < 2**63 for key in keys)


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [(keyed_uniform, 0.5, math.sqrt(1 / 12)), (keyed_exponential, 1.0, 1.0), (keyed_normal, 0.0, 1.0)],
)
def test_keyed_draws_have_their_distribution(draw: Callable[..., float], mean: float, deviation: float) -> None:
    for name, draws in {
        "over a": np.array([draw(KEY, i, 0) for i in range(N)]),
        "over b": np.array([draw(KEY, 5, i) for i in range(N)]),
        "over keys": np.array([draw(i, 5, 0) for i in range(N)]),
    }.items():
        assert abs(draws.mean() - mean) < 5 * deviation / math.sqrt(N), name
        assert draws.std() == pytest.approx(deviation, rel=0.05), name
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / math.sqrt(N), name


def test_keyed_uniforms_are_uniform_throughout() -> None:
    drawn = [keyed_uniform(KEY, i, j) for i in range(200) for j in range(100)]
    counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
    assert ((counts - N / 20) ** 2 / (N / 20)).sum() < 43.8  # chi-square with 19 degrees of freedom, 0.1 %


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_keyed_gamma_draws_have_their_distribution(shape: float) -> None:
    drawn = [keyed_gamma(KEY, number, 3, shape) for number in range(N)]
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 0.01


def test_both_parts_of_an_identity_count() -> None:
    assert len({keyed_mix(KEY, a, b) for a in range(100) for b in range(100)}) == 10_000
    assert keyed_mix(KEY, 1, 2) != keyed_mix(KEY, 2, 1)


def test_keys_of_keys_fit_where_keys_do() -> None:
    keys = {keyed_subkey(KEY, a, b) for a in range(100) for b in range(100)}
    assert len(keys) == 10_000
    assert max(keys) == int(np.array(max(keys), np.int64)), "compiled code takes keys of 63 bits"


@given(
    key=st.integers(0, 2**63 - 1),
    a=st.integers(-(2**63), 2**63 - 1),
    b=st.integers(-(2**40), 2**40),
    shape=st.sampled_from([0.3, 1.0, 4.0]),
)
def test_draws_depend_on_their_identity_alone_and_have_the_bits_of_whole_numbers(
    key: int, a: int, b: int, shape: float
) -> None:
    assert keyed_mix(key, a, b) == oracle.mix(key, a, b)
    assert keyed_subkey(key, a, b) == oracle.subkey(key, a, b)
    assert 0 < keyed_uniform(key, a, b) == oracle.uniform(key, a, b) < 1
    assert 0 < keyed_exponential(key, a, b) == oracle.exponential(key, a, b) < 40
    assert abs(keyed_normal(key, a, b)) < 10
    assert keyed_normal(key, a, b) == oracle.normal(key, a, b)
    assert keyed_gamma(key, a, b, shape) == oracle.gamma(key, a, b, shape)


MANY = 40_000
SIGMA = 0.3


@numba.njit
def compiled_factors(key: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What a jitter makes of draws, in a loop as compiled code has them."""
    factors = np.empty(len(a))
    for row in range(len(a)):
        factors[row] = math.exp(SIGMA * keyed_normal(key, a[row], b[row]) - SIGMA * SIGMA / 2)
    return factors


def test_draws_in_loops_of_compiled_code_have_the_bits_of_those_outside() -> None:
    """Compiled and plain engines come to the same bytes because of this."""
    rng = np.random.default_rng(5)
    publications = np.concatenate([np.arange(MANY // 2), -np.arange(1, MANY // 2 + 1)])  # control messages count down
    places = rng.integers(0, 10_000, MANY) << 16 | rng.integers(0, 3, MANY)
    identities = zip(publications.tolist(), places.tolist(), strict=True)
    drawn = [math.exp(SIGMA * keyed_normal(KEY, *identity) - SIGMA * SIGMA / 2) for identity in identities]
    assert compiled_factors(KEY, publications, places).tolist() == drawn


@numba.njit
def compiled_functions(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return np.log(values), np.sqrt(values), np.cos(2.0 * math.pi * values), np.exp(-values)


@given(st.lists(st.floats(2**-53, 1 - 2**-53), min_size=1, max_size=300))
def test_compiled_functions_have_the_bits_of_python_from_the_smallest_draw_to_the_largest(values: list[float]) -> None:
    logarithms, roots, cosines, exponentials = compiled_functions(np.array(values))
    assert logarithms.tolist() == [math.log(value) for value in values]
    assert roots.tolist() == [math.sqrt(value) for value in values]
    assert cosines.tolist() == [math.cos(2.0 * math.pi * value) for value in values]
    assert exponentials.tolist() == [math.exp(-value) for value in values]


def test_the_largest_bits_are_a_draw_below_one() -> None:
    """They must not round to 1, which would name a broker beyond the last."""
    key = 2295574122455614247
    assert keyed_mix(key, 0, 0) == 2**64 - 1
    assert keyed_uniform(key, 0, 0) == 1 - 2**-53
    assert int(keyed_uniform(key, 0, 0) * 10) == 9
