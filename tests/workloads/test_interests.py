"""The interest models of overlay design: their shapes, lists from a file, and changes against the oracle."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import poisson as oracle
from pydantic import ValidationError

from sim.base.randomness import Streams
from sim.base.validation import validate as validate_model
from sim.scenario.reader import load_scenario
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.synthetic.interests import InterestsWorkload


def generate(seed: int = 1, replication: int = 0, **parameters: Any) -> Workload:
    made = InterestsWorkload(validate_model(InterestsWorkload.Parameters, parameters)).generate(
        Streams(seed, replication)
    )
    validate_workload(made, Path("w"))
    return made


def test_coin_flips_vary_by_user_and_exact_does_not() -> None:
    flips, exact = generate(users=4000, per_user=12.5), generate(users=4000, per_user=12, model="exact")
    wants = np.diff(flips.interests.indptr)
    assert wants.mean() == pytest.approx(12.5, abs=5 * sqrt(12.5 * 0.875 / 4000))
    assert wants.var() == pytest.approx(12.5 * 0.875, rel=0.15)
    assert (np.diff(exact.interests.indptr) == 12).all()
    wanted = np.bincount(exact.interests.indices, minlength=100)
    assert np.abs(wanted - 480).max() < 5 * sqrt(4000 * 0.12 * 0.88)


def test_by_default_nothing_happens() -> None:
    made = generate(users=7)
    assert (made.kind, made.counts["users"], made.counts["topics"]) == ("interests", 7, 100)
    assert made.counts["subscription_events"] == made.counts["publications"] == 0


def test_a_file_lists_the_topics_of_each_user(tmp_path: Path) -> None:
    (tmp_path / "i.json").write_text(json.dumps({"interests": [[7, 40], [], [40, 40, -1]]}))
    made = generate(file=str(tmp_path / "i.json"), publication_rate=50)
    assert made.interests.indptr.tolist() == [0, 2, 2, 4]
    assert made.interests.indices.tolist() == [1, 2, 0, 2]
    assert (len(made.users), len(made.topics)) == (3, 3)
    assert set(made.publications.topic.tolist()) == set(made.publications.publisher.tolist()) == {0, 1, 2}


def test_changes_keep_to_the_oracle_and_replications_differ() -> None:
    made, other = (generate(users=60, topics=8, per_user=2, change_rate=5, replication=r) for r in (0, 1))
    indptr, indices = made.interests.indptr.tolist(), made.interests.indices.tolist()
    held = [set(indices[a:b]) for a, b in itertools.pairwise(indptr)]
    assert min(map(len, held)) == 0  # those have nothing to replace
    events = made.subscription_events
    able = [user for user, topics in enumerate(held) if 0 < len(topics) < 8]
    assert set(events.user.tolist()) == set(able)
    assert len(events) / 2 == pytest.approx(5 * len(able), abs=5 * sqrt(5 * len(able)))
    pairs = zip(events.user[::2].tolist(), events.topic[::2].tolist(), events.topic[1::2].tolist(), strict=True)
    for user, gained, given_up in pairs:
        free = sorted(set(range(8)) - held[user])
        share = Fraction(2 * free.index(gained) + 1, 2 * len(free))
        change = (user, sorted(held[user]).index(given_up), share)
        assert oracle.replacements(held, [Fraction(1)] * 8, [change]) == [(gained, given_up)]
    assert not np.array_equal(made.interests.indices, other.interests.indices)


def test_streams_do_not_disturb_one_another() -> None:
    base, busier = generate(publication_rate=3), generate(publication_rate=3, change_rate=2)
    np.testing.assert_equal(vars(base.publications), vars(busier.publications))
    np.testing.assert_equal(vars(base.interests), vars(busier.interests))


def test_users_connect_one_after_the_other_and_subscribe_to_what_they_would_have_wanted() -> None:
    sizes = {"users": 8, "topics": 20, "per_user": 3, "model": "exact", "horizon": 3.0}
    there, coming = generate(**sizes).interests, generate(**sizes, connect_rate=2.0)
    assert coming.interests.indptr.tolist() == [0] * 9
    events = coming.subscription_events
    assert events.user.tolist() == [
        user for user in range(6) for _ in range(3)
    ]  # the seventh would come at the horizon
    assert events.time.tolist() == [user / 2 for user in range(6) for _ in range(3)]
    assert events.topic.tolist() == there.indices[:18].tolist()
    assert set(events.action.tolist()) == {1}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"topics": 5}, "topics is 5, but users want 10"),
        ({"model": "exact", "per_user": 2.5}, 'per_user is 2.5, but model "exact" needs a whole number'),
        ({"model": "dice"}, "'coin-flips' or 'exact'"),
        ({"users": 10**6, "topics": 1000}, r"need 1e\+09 coin flips, allowed: 2e\+08"),
        ({"change_rate": 1e12}, "rates and horizon give"),
        ({"connect_rate": 0}, "greater than 0"),
        (
            {"connect_rate": 5, "change_rate": 1},
            r"change_rate is 1, but with connect_rate, interests do not change",
        ),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        validate_model(InterestsWorkload.Parameters, parameters)


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ('{"interests": [[1]]}', {"users": 3}, "file gives the interests, so users must not be set too"),
        ('{"interest": []}', {}, 'the file is not an object with a key "interests" (keys interest)'),
        ('{"interests": [[1], ["x"]]}', {}, 'interests[1][0] is "x", expected an integer, a topic'),
        ('{"interests": [[], []]}', {}, "no user wants any topic"),
        ("{", {}, "not valid JSON"),
    ],
)
def test_a_file_that_is_something_else_is_refused(
    tmp_path: Path, text: str, parameters: dict[str, Any], message: str
) -> None:
    (tmp_path / "i.json").write_text(text)
    with pytest.raises(ValidationError) as error:
        validate_model(InterestsWorkload.Parameters, {"file": str(tmp_path / "i.json"), **parameters})
    assert message in str(error.value)


def test_a_scenario_names_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "i.json").write_text('{"interests": [[1], [1]]}')
    (tmp_path / "s.toml").write_text('workload = { kind = "interests", file = "i.json" }\nnetwork.brokers = 2\n')
    workload = load_scenario(tmp_path / "s.toml").base.model_dump(mode="json")["workload"]
    assert workload["file"]["name"] == "i.json"
