"""The Poisson workload: counts as theory has them, streams that do not disturb one another."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import poisson as oracle
from pydantic import ValidationError

from sim.randomness import Streams
from sim.workloads.sampling import draw_distinct
from sim.workloads.synthetic.poisson import PoissonWorkload
from sim.workloads.synthetic.poisson_kernels import replacements
from sim.workloads.workload import Workload, validate


def generate(seed: int = 1, replication: int = 0, **parameters: Any) -> Workload:
    return PoissonWorkload(PoissonWorkload.Parameters(**parameters)).generate(Streams(seed, replication))


def within_five_sigma(counts: Any, mean: float) -> bool:
    """Whether Poisson counts of this mean lie where all but one in 2 million do."""
    return bool(np.all(np.abs(np.asarray(counts) - mean) <= 5 * sqrt(mean)))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.data())
def test_replacements_equal_the_oracle(users: int, k: int, more: int, data: st.DataObject) -> None:
    held = draw_distinct(users, k, k + more, np.random.default_rng(data.draw(st.integers(0, 99))))
    change = st.tuples(st.integers(0, users - 1), st.integers(0, k - 1), st.integers(0, more - 1))
    changes = data.draw(st.lists(change, max_size=20))
    expected = oracle.replacements([set(row) for row in held.tolist()], k + more, changes)
    user, slot, other = np.array(changes, np.int32).reshape(-1, 3).T.copy()
    flat = held.ravel()
    indptr = np.arange(users + 1) * k
    assert replacements(indptr, flat, user, slot, other).tolist() == [list(pair) for pair in expected]
    assert (np.diff(held, axis=1) > 0).all()


def test_counts_follow_the_rates() -> None:
    made = generate(users=2000, topics=50, change_rate=0.2, publication_rate=3.0, horizon="50h")
    validate(made, Path("w"))
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
        ({"publication_rate": -1}, "greater than or equal to 0"),
        ({"change_rate": float("nan")}, "finite"),
        ({"horizon": "0h"}, "greater than 0"),
        ({"publication_rate": 1e300}, r"rates and horizon come to 1e\+304 events, allowed: fewer than 1e\+09"),
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
