"""The Poisson workload: counts against theory, and independent streams."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import poisson as oracle
from pydantic import ValidationError

from sim.base.randomness import Streams
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models.sampling import draw_distinct
from sim.workloads.synthetic.poisson import PoissonWorkload
from sim.workloads.synthetic.poisson_kernels import differences, draw_weighted, replacements


def generate(seed: int = 1, replication: int = 0, **parameters: Any) -> Workload:
    return PoissonWorkload(PoissonWorkload.Parameters(**parameters)).generate(Streams(seed, replication))


def test_users_in_groups_share_all_their_subscriptions() -> None:
    made = generate(users=7, topics=2, topics_per_user=1, group_size=3, change_rate=0, horizon=3600.0)
    rows = list(zip(*(column.tolist() for column in vars(made.shares).values()), strict=True))
    assert rows == [(topic, user, 3 * topic + user // 3) for topic in range(2) for user in range(7)]
    assert not len(generate(users=7, topics=2, topics_per_user=1, horizon=3600.0).shares)


def within_five_sigma(counts: Any, mean: float) -> bool:
    """Whether Poisson counts of this mean lie where all but one in 2 million do."""
    return bool(np.all(np.abs(np.asarray(counts) - mean) <= 5 * sqrt(mean)))


@settings(max_examples=tried(200), deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.booleans(), st.data())
def test_replacements_equal_the_oracle(users: int, k: int, more: int, equal: bool, data: st.DataObject) -> None:
    weights = [Fraction(1 if equal else 2**place) for place in range(k + more)]  # sums of which are exact
    below = np.cumsum([0.0, *map(float, weights)])
    held = draw_distinct(users, k, k + more, np.random.default_rng(data.draw(st.integers(0, 99))))
    share = st.integers(0, 63).map(lambda n: Fraction(2 * n + 1, 128))
    change = st.tuples(st.integers(0, users - 1), st.integers(0, k - 1), share)
    changes = data.draw(st.lists(change, max_size=20))
    expected = oracle.replacements([set(row) for row in held.tolist()], weights, changes)
    user, slot = np.array([each[:2] for each in changes], np.int32).reshape(-1, 2).T.copy()
    shares = np.array([float(each[2]) for each in changes])
    indptr = np.arange(users + 1) * k
    assert replacements(below, indptr, held.ravel(), user, slot, shares).tolist() == [list(pair) for pair in expected]
    assert (np.diff(held, axis=1) > 0).all()


@settings(max_examples=tried(100), deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 12), st.integers(0, 99))
def test_redrawn_topics_are_told_apart_from_kept_ones(users: int, k: int, changes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    held, drawn = draw_distinct(users, k, 6, generator), draw_distinct(changes, k, 6, generator)
    user = generator.integers(0, users, changes, dtype=np.int32)
    wanted = [(int(u), set(row)) for u, row in zip(user, drawn.tolist(), strict=True)]
    expected = oracle.differences([set(row) for row in held.tolist()], wanted)
    row, topic, action = differences(held, user, drawn)
    assert list(zip(row.tolist(), topic.tolist(), action.tolist(), strict=True)) == expected


def test_different_topics_are_drawn_by_their_weights() -> None:
    weights = [Fraction(n) for n in (4, 1, 3, 2)]
    rows = draw_weighted(np.cumsum([0.0, *map(float, weights)]), np.random.default_rng(1).random((20_000, 2)))
    assert (np.diff(rows, axis=1) > 0).all()
    first = {topic: float(weight / 10) for topic, weight in enumerate(weights)}
    for a, b in combinations(range(4), 2):
        p = first[a] * first[b] * (1 / (1 - first[a]) + 1 / (1 - first[b]))
        seen = (rows == (a, b)).all(axis=1).mean()
        assert abs(seen - p) < 5 * sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize(("pattern", "topics"), [("uniform", 918), ("multimodal", 918), ("zipf", 606)])
def test_topics_of_a_broker_at_the_size_of_the_paper(pattern: str, topics: int) -> None:
    """50,000 users with five of 1,000 topics each, at random on 100 brokers: 1 - (1 - 5/1000)^500 of the topics, uniform."""
    made = generate(users=50_000, topics=1000, pattern=pattern, change_rate=0, horizon="1h")
    broker = np.random.default_rng(1).integers(0, 100, 50_000)
    wanted = np.zeros((100, 1000), np.bool_)
    wanted[np.repeat(broker, 5), made.interests.indices] = True
    assert wanted.sum(axis=1).mean() == pytest.approx(topics, abs=5)


@pytest.mark.parametrize("pattern", ["uniform", "zipf", "multimodal"])
@pytest.mark.parametrize("change", ["replace", "redraw"])
def test_users_keep_to_their_pattern(pattern: str, change: str) -> None:
    made = generate(users=50, topics=40, topics_per_user=3, pattern=pattern, change=change, mode_size=5, horizon="40h")
    validate_workload(made, Path("w"))  # nobody subscribes to what it has, or gives up what it has not
    held = [set(row) for row in made.interests.indices.reshape(-1, 3).tolist()]
    events = made.subscription_events
    modes = {user: {topic // 5 for topic in topics} for user, topics in enumerate(held)}
    redrawn = 0
    for rows in np.split(np.arange(len(events)), np.flatnonzero(np.diff(events.time)) + 1):
        user = int(events.user[rows[0]])
        gained, lost = ({int(t) for t in events.topic[rows][events.action[rows] == sign]} for sign in (1, -1))
        assert events.action[rows].tolist() == [1] * len(gained) + [-1] * len(lost)
        held[user] = held[user] - lost | gained
        assert len(held[user]) == 3
        now = {topic // 5 for topic in held[user]}
        if pattern == "multimodal":
            assert len(now) == 1
            redrawn += now != modes[user]
        modes[user] = now
    assert (redrawn > 0) == (pattern == "multimodal" and change == "redraw")


def test_counts_follow_the_rates() -> None:
    made = generate(users=2000, topics=50, change_rate=0.2, publication_rate=3.0, horizon="50h")
    validate_workload(made, Path("w"))
    assert within_five_sigma(len(made.subscription_events) / 2, 2000 * 0.2 * 50)
    assert within_five_sigma(np.bincount(made.publications.topic, minlength=50), 3.0 * 50)
    assert within_five_sigma(np.histogram(made.publications.time, 10, (0, 50 * 3600.0))[0], 50 * 3.0 * 5)
    assert within_five_sigma(np.bincount(made.publications.publisher // 100, minlength=20), 50 * 3.0 * 50 / 20)
    changes_per_user = np.bincount(made.subscription_events.user, minlength=2000) / 2
    assert changes_per_user.var() == pytest.approx(10, rel=5 * sqrt(2.1 / 2000))  # a Poisson variance is its mean


def test_interests_are_uniform_at_the_start_and_stay_so() -> None:
    made = generate(users=5000, topics=20, topics_per_user=4, change_rate=0.05, horizon="100h")
    wanted = np.bincount(made.interests.indices, minlength=20)
    p = 4 / 20
    assert np.abs(wanted - 5000 * p).max() < 5 * sqrt(5000 * p * (1 - p))
    events = made.subscription_events
    after = wanted + np.bincount(events.topic, weights=events.action, minlength=20)
    assert after.sum() == 5000 * 4
    assert np.abs(after - 5000 * p).max() < 5 * sqrt(5000 * p * (1 - p))


def test_replications_differ_and_rates_do_not_disturb_one_another() -> None:
    base, again, other = generate(), generate(), generate(replication=1)
    np.testing.assert_equal(vars(base.subscription_events), vars(again.subscription_events))
    assert not np.array_equal(base.interests.indices, other.interests.indices)
    assert not np.array_equal(base.publications.time, other.publications.time)
    busier = generate(change_rate=0.5)
    np.testing.assert_equal(vars(busier.publications), vars(base.publications))
    np.testing.assert_equal(vars(busier.interests), vars(base.interests))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"topics": 5}, "topics is 5, but users want 5 and change to others"),
        ({"topics": 25, "pattern": "multimodal"}, "topics is 25, which are not modes of 10 topics each"),
        ({"mode_size": 5, "pattern": "multimodal"}, "mode_size is 5, but users want 5 and change to others"),
        ({"mode_size": 4, "pattern": "multimodal", "change": "redraw"}, "mode_size is 4, but users want 5"),
        ({"publication_rate": -1}, "greater than or equal to 0"),
        ({"change_rate": float("nan")}, "finite"),
        ({"horizon": "0h"}, "greater than 0"),
        ({"publication_rate": 1e300}, r"rates and horizon give 1e\+304 events, allowed: fewer than 1e\+09"),
        ({"user": 5}, "Extra inputs"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PoissonWorkload.Parameters(**parameters)


def test_nothing_happens_at_rate_zero() -> None:
    made = generate(users=3, topics=2, topics_per_user=2, change_rate=0, publication_rate=0)
    assert made.counts == {
        "users": 3, "topics": 2, "interests": 6, "subscription_events": 0, "publications": 0, "movements": 0,
    }  # fmt: skip
