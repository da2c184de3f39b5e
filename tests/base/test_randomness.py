"""Randomness by name and by identity: the same for the same names, and unrelated for others."""

from __future__ import annotations

import math
import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.base.randomness import Streams, exponential, gamma, mix, normal, subkey, uniform
from sim.base.randomness_kernels import keyed_gamma, keyed_uniform

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
    [(uniform, 0.5, math.sqrt(1 / 12)), (exponential, 1.0, 1.0), (normal, 0.0, 1.0)],
)
def test_keyed_draws_have_their_distribution(draw: object, mean: float, deviation: float) -> None:
    for name, draws in {
        "over a": np.array([draw(KEY, i) for i in range(N)]),  # type: ignore[operator]
        "over b": np.array([draw(KEY, 5, i) for i in range(N)]),  # type: ignore[operator]
        "over keys": np.array([draw(i, 5) for i in range(N)]),  # type: ignore[operator]
    }.items():
        assert abs(draws.mean() - mean) < 5 * deviation / math.sqrt(N), name
        assert draws.std() == pytest.approx(deviation, rel=0.05), name
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / math.sqrt(N), name


def test_keyed_uniforms_are_uniform_throughout() -> None:
    counts = np.histogram([uniform(KEY, i, j) for i in range(200) for j in range(100)], bins=20, range=(0, 1))[0]
    assert ((counts - N / 20) ** 2 / (N / 20)).sum() < 43.8  # chi-square with 19 degrees of freedom, 0.1 %


def test_draws_do_not_depend_on_the_order_in_which_they_are_asked_for() -> None:
    forwards = [exponential(KEY, a, 3) for a in range(50)]
    backwards = [exponential(KEY, a, 3) for a in reversed(range(50))]
    assert forwards == backwards[::-1]


def test_both_parts_of_an_identity_count() -> None:
    assert len({mix(KEY, a, b) for a in range(100) for b in range(100)}) == 10_000
    assert mix(KEY, 1, 2) != mix(KEY, 2, 1)


def test_keys_of_keys_fit_where_keys_do() -> None:
    keys = {subkey(KEY, a, b) for a in range(100) for b in range(100)}
    assert len(keys) == 10_000
    assert max(keys) == int(np.array(max(keys), np.int64)), "compiled code takes keys of 63 bits"


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**40), st.integers(0, 2**40))
def test_draws_stay_in_range(key: int, a: int, b: int) -> None:
    assert 0 < uniform(key, a, b) < 1
    assert 0 < exponential(key, a, b) < 40
    assert abs(normal(key, a, b)) < 10


@given(st.integers(0, 2**63 - 1), st.integers(-(2**40), 2**40), st.integers(0, 3))
def test_keyed_draws_in_kernels_are_those_of_everybody(key: int, a: int, b: int) -> None:
    assert keyed_uniform(key, a, b) == uniform(key, a, b)


MANY = 40_000
SIGMA = 0.3


@numba.njit
def compiled_draws(key: int, other: int, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a service, a jitter and a link take from keyed uniforms, in a loop as compiled code has them."""
    exponentials, normals, factors = np.empty(len(a)), np.empty(len(a)), np.empty(len(a))
    for row in range(len(a)):
        exponentials[row] = -math.log(keyed_uniform(key, a[row], b[row]))
        radius = math.sqrt(-2.0 * math.log(keyed_uniform(key, a[row], b[row])))
        normals[row] = radius * math.cos(2.0 * math.pi * keyed_uniform(other, a[row], b[row]))
        factors[row] = math.exp(SIGMA * normals[row] - SIGMA * SIGMA / 2)
    return exponentials, normals, factors


@pytest.mark.parametrize("stream", ["service", "jitter"])
def test_compiled_logarithms_roots_cosines_and_exponentials_have_the_bits_of_python(stream: str) -> None:
    """Compiled and plain engines come to the same bytes because of this."""
    key, rng = Streams(3).key(stream), np.random.default_rng(5)
    publications = np.concatenate([np.arange(MANY // 2), -np.arange(1, MANY // 2 + 1)])  # control messages count down
    places = rng.integers(0, 10_000, MANY) << 16 | rng.integers(0, 3, MANY)
    exponentials, normals, factors = compiled_draws(key, key ^ 0x5851F42D4C957F2D, publications, places)
    identities = list(zip(publications.tolist(), places.tolist(), strict=True))
    drawn = [normal(key, *identity) for identity in identities]
    assert exponentials.tolist() == [exponential(key, *identity) for identity in identities]
    assert normals.tolist() == drawn
    assert factors.tolist() == [math.exp(SIGMA * draw - SIGMA * SIGMA / 2) for draw in drawn]


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
    assert mix(key, 0) == 2**64 - 1
    assert uniform(key, 0) == 1 - 2**-53
    assert int(uniform(key, 0) * 10) == 9


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_gamma_draws_have_their_distribution_and_are_the_same_bits_compiled(shape: float) -> None:
    draws = [gamma(KEY, number, 3, shape) for number in range(N)]
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 0.01
    assert [keyed_gamma(KEY, number, 3, shape) for number in range(2000)] == draws[:2000]
