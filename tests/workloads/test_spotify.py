"""Workloads of Spotify's size and shape: the published facts hold at any scale, with the same bytes everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from math import erf, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import spotify as oracle
from oracles.draws import uniform
from pydantic import ValidationError
from scipy.stats import spearmanr

from sim.base import memory
from sim.base.errors import InputError
from sim.base.randomness import Streams
from sim.scenario.model import Scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.folder import load_workload
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.spotify import PERIOD, SpotifyDense, SpotifySparse, whole_rates
from sim.workloads.synthetic.spotify_kernels import draw_interests, guide_to, weighted

FIFTIETH = {SpotifyDense: 98_000 * 20.6, SpotifySparse: 98_000 * 2.8}
"""Interests at 1/50, about."""


def generate(kind: Any, seed: int = 1, replication: int = 0, **parameters: Any) -> Workload:
    made: Workload = kind(kind.Parameters(**parameters)).generate(Streams(seed, replication))
    return made


@settings(max_examples=tried(100), deadline=None)
@given(
    st.lists(st.integers(1, 2**20), min_size=1, max_size=30),
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
    st.integers(0, 2**63 - 1),
)
def test_interests_equal_the_oracle(weights: list[int], sizes: list[int], key: int) -> None:
    below = np.cumsum([0.0, *weights])
    indptr, indices = np.zeros(len(sizes) + 1, np.int64), np.empty(sum(sizes), np.int32)
    draw_interests(key, np.array(sizes, np.int32), below, guide_to(below), indptr, indices)
    rows = [indices[a:b].tolist() for a, b in pairwise(indptr)]
    assert rows == oracle.interests(sizes, weights, lambda user, k: uniform(key, user, k))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.data())
def test_a_share_at_a_border_is_the_next_topic(weights: list[int], data: st.DataObject) -> None:
    below = np.cumsum([0.0, *weights])
    share = data.draw(st.integers(1, 255)) / 256
    assert weighted(below, guide_to(below), share) == oracle.weighted(weights, Fraction(share))


@settings(max_examples=tried(200), deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40), st.integers(1, 60), st.integers(0, 60), st.booleans())
def test_whole_rates_have_their_mean_exactly(rates: list[float], mean: int, above: int, even: bool) -> None:
    given_rates = np.full(len(rates), 3.7) if even else np.array(rates)
    whole = whole_rates(given_rates, mean, mean + above)
    assert whole.sum() == mean * len(rates)
    assert 1 <= whole.min() <= whole.max() <= mean + above
    assert (
        np.diff(whole[np.argsort(given_rates, kind="stable")]) >= -1
    ).all()  # the order is theirs, but for a remainder


@pytest.mark.parametrize("kind", [SpotifyDense, SpotifySparse])
def test_what_was_told_of_the_trace_holds_at_a_fiftieth(kind: Any) -> None:
    made = generate(kind, scale=0.02)
    validate_workload(made, Path("w"))
    assert (len(made.topics), len(made.users)) == (22_000, 98_000)
    rates = made.topics.event_rate
    assert rates.sum() == 22_000 * 2763
    assert (rates == np.rint(rates)).all()
    assert 1 <= rates.min() < rates.max() <= 1_000_000
    assert np.log(rates).std() == pytest.approx(2, rel=0.03)
    assert (made.period, made.horizon) == (10 * 86_400, 10 * 86_400)
    assert np.diff(made.interests.indptr).min() >= 1
    assert len(made.interests.indices) == pytest.approx(FIFTIETH[kind], rel=0.07)
    assert len(made.publications) == len(made.subscription_events) == 0


def test_interests_are_lognormal_in_number() -> None:
    """Where all topics are alike and many, hardly any is drawn twice."""
    made = generate(SpotifyDense, topics=500_000, users=40_000, popularity_exponent=0)
    sizes = np.diff(made.interests.indptr)
    assert sizes.mean() == pytest.approx(21.5, abs=5 * 21.5 * sqrt(np.exp(1.44) - 1) / 200)
    location = log(21.5) - 0.72
    for size in (1, 5, 20, 100):
        below = (1 + erf((log(size + 0.5) - location) / 1.2 / sqrt(2))) / 2
        assert (sizes <= size).mean() == pytest.approx(below, abs=5 * sqrt(below * (1 - below) / 40_000))


@pytest.mark.parametrize("kind", [SpotifyDense, SpotifySparse])
def test_popularity_is_a_power_law(kind: Any) -> None:
    made = generate(kind, topics=3000, users=200_000, topics_per_user=1, topics_sigma=0)
    wanted = np.bincount(made.interests.indices, minlength=3000)
    weight = np.arange(1.0, 3001) ** -0.9
    expected = 200_000 * weight / weight.sum()
    assert ((wanted - expected) ** 2 / expected).sum() < 2999 + 5 * sqrt(2 * 2999)  # chi-square
    slope = np.polyfit(np.log(np.arange(1, 101)), np.log(wanted[:100]), 1)[0]
    assert slope == pytest.approx(-0.9, abs=0.02)


@pytest.mark.parametrize("correlation", [0.0, 0.4, -0.8, 1.0])
def test_rates_go_with_popularity_as_far_as_is_said(correlation: float) -> None:
    made = generate(SpotifyDense, topics=40_000, users=1, rate_correlation=correlation)
    found = spearmanr(made.topics.event_rate, -np.arange(40_000)).statistic
    assert found == pytest.approx(correlation, abs=5 / sqrt(40_000))
    alike = generate(SpotifyDense, topics=40_000, users=1)
    np.testing.assert_array_equal(made.interests.indices, alike.interests.indices)


def test_replications_differ_and_parameters_do_not_disturb_one_another() -> None:
    base, again, other = (generate(SpotifySparse, scale=0.001, replication=r) for r in (0, 0, 1))
    np.testing.assert_equal(vars(base.interests), vars(again.interests))
    assert not np.array_equal(base.interests.indices, other.interests.indices)
    assert not np.array_equal(base.topics.event_rate, other.topics.event_rate)
    published = generate(SpotifySparse, scale=0.001, publications="poisson", horizon="1h")
    np.testing.assert_equal(vars(base.interests), vars(published.interests))
    np.testing.assert_array_equal(base.topics.event_rate, published.topics.event_rate)


def test_publications_follow_the_rates() -> None:
    made = generate(SpotifyDense, topics=50, users=20, publications="poisson", horizon="5d", rate_sigma=1, size=7)
    validate_workload(made, Path("w"))
    expected = made.topics.event_rate * (made.horizon / PERIOD)
    assert (np.abs(made.publications.per_topic(50) - expected) <= 5 * np.sqrt(expected)).all()
    counts = np.histogram(made.publications.time, 10, (0, made.horizon))[0]
    assert (np.abs(counts - expected.sum() / 10) <= 5 * sqrt(expected.sum() / 10)).all()
    assert set(made.publications.publisher.tolist()) == {-1}
    assert set(made.publications.size.tolist()) == {7}


def test_a_scenario_runs_on_it() -> None:
    workload = {"kind": "spotify-sparse", "scale": 1e-5, "publications": "poisson", "horizon": "6h"}
    scenario = Scenario.model_validate({"workload": workload, "network": {"brokers": 5}})
    record = simulate(scenario, prepare_workload(scenario, 0, None), 0)
    assert record.metrics["publications"] > 100
    assert record.metrics["delivered"] > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": 0}, "greater than 0"),
        ({"scale": 2}, "less than or equal to 1"),
        ({"topics_per_user": 0.5}, "greater than or equal to 1"),
        ({"users": 50_000_000}, r"give 1.08e\+09 interests, allowed: fewer than 1e\+09"),
        ({"rate_limit": 2000}, r"rate_limit is 2000, below the mean \(event_rate, 2763\)"),
        ({"rate_correlation": 1.1}, "less than or equal to 1"),
        (
            {"publications": "poisson"},
            r"give 3.04e\+09 publications, allowed: fewer than 1e\+09; take a smaller scale than 1",
        ),
        ({"subscribers": 5}, "Extra inputs"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SpotifyDense.Parameters(**parameters)


def test_what_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 5e8)
    expected = "a spotify-dense workload of 1,100,000 topics and 4,900,000 users: this needs about 841 MB of memory"
    with pytest.raises(InputError, match=expected):
        generate(SpotifyDense)


def test_one_user_and_one_topic() -> None:
    made = generate(SpotifySparse, scale=1e-9)
    assert made.interests.indices.tolist() == [0]
    assert made.topics.event_rate.tolist() == [2763]


def test_folders_are_the_same_under_any_hash_seed_and_number_of_threads(tmp_path: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from sim import plugins
        from sim.base.randomness import Streams
        from sim.workloads.format.folder import write_workload
        for kind, chosen in (
            ("spotify-dense", {"scale": 0.0005, "publications": "poisson", "horizon": "1h"}),
            ("spotify-sessions", {"users": 50, "playlists": 9, "artists": 20, "release_rate": 1}),
        ):
            found = plugins.load("workload", kind)
            write_workload(found(found.Parameters(**chosen)).generate(Streams(5)), Path(sys.argv[1]) / kind)
        assert "pandas" not in sys.modules
    """
    folders = []
    for number, threads in (("1", "1"), ("2", "2")):
        folders.append(tmp_path / number)
        settled = {"PYTHONHASHSEED": number, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", script, folders[-1]], check=True, env={**os.environ, **settled})
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    ]
    assert len(contents[0]) == 6 + 7
    assert contents[0] == contents[1]
    assert load_workload(folders[0] / "spotify-dense").kind == "spotify-dense"
    assert len(load_workload(folders[0] / "spotify-sessions").sessions)
