"""Users who listen in sessions: follows apply while they are online, and releases are heard in the hours that follow."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import spotify as oracle
from pydantic import ValidationError

from sim.base.randomness import Streams
from sim.scenario.model import Scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Sessions, Workload
from sim.workloads.synthetic.online import times_during, times_online
from sim.workloads.synthetic.spotify_kernels import one_at_a_time
from sim.workloads.synthetic.spotify_sessions import SpotifySessions

HOUR, DAY = 3600.0, 86_400.0
FEW: dict[str, Any] = {"users": 60, "playlists": 20, "artists": 15}


def generate(seed: int = 1, replication: int = 0, **parameters: Any) -> Workload:
    return SpotifySessions(SpotifySessions.Parameters(**parameters)).generate(Streams(seed, replication))


def within_five_sigma(counts: Any, mean: Any) -> bool:
    """Whether Poisson counts of these means lie where all but one in 2 million do."""
    return bool((np.abs(np.asarray(counts) - mean) <= 5 * np.sqrt(mean)).all())


def of_user(sessions: Sessions, user: int) -> list[tuple[float, float]]:
    rows = sessions.user == user
    return list(zip(sessions.start[rows].tolist(), sessions.end[rows].tolist(), strict=True))


def online(sessions: Sessions, user: int, time: float) -> bool:
    return any(start <= time <= end for start, end in of_user(sessions, user))


drawn_sessions = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 8)), max_size=25).map(sorted)


def columns(sessions: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    """Users, starts and ends of sessions that are given by their user, start and length."""
    user, start, length = np.array(sessions, float).reshape(-1, 3).T
    return user.astype(np.int32), start, start + length


@settings(max_examples=tried(100), deadline=None)
@given(drawn_sessions)
def test_sessions_of_a_user_do_not_overlap(drawn: list[tuple[int, int, int]]) -> None:
    user, start, end = columns(drawn)
    expected = oracle.one_at_a_time(list(zip(user.tolist(), start.tolist(), end.tolist(), strict=True)))
    assert one_at_a_time(user, start, end).tolist() == expected


@settings(max_examples=tried(200), deadline=None)
@given(drawn_sessions, st.integers(0, 3), st.integers(0, 35), st.integers(0, 15))
def test_time_passes_while_online(drawn: list[tuple[int, int, int]], user: int, since: int, for_so_long: int) -> None:
    rows = columns(drawn)
    kept = one_at_a_time(*rows)
    sessions = Sessions(*(column[kept] for column in rows))
    found = times_online(sessions, np.array([user], np.int32), np.array([float(since)]), np.array([for_so_long + 0.5]))
    expected = oracle.time_online(of_user(sessions, user), since, for_so_long + 0.5)
    assert found.tolist() == pytest.approx([np.nan if expected is None else expected], nan_ok=True)


def test_subscriptions_hold_while_online_and_publications_come_from_those_who_are() -> None:
    made = generate(**FEW, release_rate=2, session_rate=6, reaction=1)
    validate_workload(made, Path("w"))
    sessions = made.sessions
    spans = [of_user(sessions, user) for user in range(60)]
    assert all(before[1] < after[0] for span in spans for before, after in pairwise(span))
    bounds = made.interests.indptr
    wants = {u: set(made.interests.indices[bounds[u] : bounds[u + 1]].tolist()) for u in range(60)}
    assert {u for u in wants if wants[u]} <= {u for u, span in enumerate(spans) if span and span[0][0] == 0}
    follows = {user: topics for user, topics in wants.items() if topics}
    events = made.subscription_events
    for user in range(60):
        rows = events.user == user
        for time in sorted(set(events.time[rows].tolist())):
            at = rows & (events.time == time)
            assert len(set(events.action[at].tolist())) == 1
            topics = set(events.topic[at].tolist())
            assert follows.setdefault(user, topics) == topics  # all that it follows, whenever it comes or goes
            assert time in {edge for span in spans[user] for edge in span}
            assert (events.action[at][0] > 0) == any(time == start for start, _ in spans[user])
    assert all(user not in topics for user, topics in follows.items())
    published = made.publications
    for time, topic, user in zip(published.time, published.topic, published.publisher, strict=True):
        assert (user < 0) == (topic >= 80)  # artists come from outside
        assert user < 0 or (online(sessions, user, time) and (topic == user or 60 <= topic < 80))
    owners = [set(published.publisher[published.topic == topic].tolist()) for topic in range(60, 80)]
    assert max(len(owner) for owner in owners) == 1


def test_topics_are_of_three_kinds_and_follows_as_many_as_is_said() -> None:
    made = generate(users=4000, playlists=3000, artists=2000, popularity_exponent=0, session="10d", session_rate=20)
    kinds = made.topics.kinds.to_pylist()
    assert [kinds.count(kind) for kind in ("friend", "playlist", "artist")] == [4000, 3000, 2000]
    assert [made.topics.names[topic].as_py() for topic in (7, 4007, 7007)] == ["friend 7", "playlist 7", "artist 7"]
    here = np.diff(made.interests.indptr) > 0
    of_kind = np.searchsorted([4000, 7000], made.interests.indices, "right")
    assert np.bincount(of_kind) / here.sum() == pytest.approx([5, 2, 5], rel=0.07)
    published = made.publications.per_topic(9000)
    np.testing.assert_allclose(made.topics.event_rate, published * DAY / made.horizon)


def test_sessions_have_the_rhythm_and_length_that_is_said() -> None:
    made = generate(users=20_000, artists=1, playlists=1, session="5min", session_rate=1, horizon="2d", listen_rate=0.1)
    begun = made.sessions.start[made.sessions.start > 0]
    hours = np.arange(49)
    turn = 2 * np.pi / 24
    until = hours + 0.8 / turn * (np.sin(turn * (hours - 16)) + np.sin(turn * 16))
    busy = np.histogram(begun / HOUR, hours)[0] / np.diff(until)
    assert busy == pytest.approx(np.full(48, busy.mean()), rel=5 * sqrt(24 / len(begun) * 2 / 0.2))
    assert busy.mean() == pytest.approx(20_000 / 24, rel=0.05)  # a few would have begun during others
    lengths = (made.sessions.end - made.sessions.start)[made.sessions.start > 0]
    assert lengths.mean() == pytest.approx(300, rel=0.03)
    assert np.log(lengths).std() == pytest.approx(1, rel=0.03)
    assert within_five_sigma(len(made.publications), lengths.sum() * 0.1 / HOUR)


def test_a_day_begins_where_the_origin_says() -> None:
    """The rhythm and the day of releases are those of the clock, not of time 0."""
    given_day = {"users": 3000, "rhythm": 1, "session_rate": 5, "session": "1min", "peak": "6h", "release_rate": 1}
    made = generate(**given_day, origin="2013-01-11T12:00:00+02:00", release_time="11h", horizon="8d", listen_rate=0)
    assert made.origin == "2013-01-11T10:00:00Z"  # a Friday
    hour = ((made.sessions.start / HOUR + 10) % 24).astype(int)
    assert 5 <= np.bincount(hour).argmax() <= 6
    released = made.publications.time[made.publications.topic >= 3500]
    assert set(released.tolist()) == {HOUR, HOUR + 7 * DAY}
    assert within_five_sigma(len(released), 2 * 200)


def test_what_was_released_before_the_beginning_is_not_heard_of() -> None:
    """The origin is a Friday at noon, releases come on Fridays at nine: first after a week but three hours."""
    made = generate(**FEW, release_rate=3, reaction=1, origin="2013-01-11T12:00:00Z", horizon="15d")
    validate_workload(made, Path("w"))
    released = made.publications.time[made.publications.publisher < 0]
    assert set(released.tolist()) == {7 * DAY - 3 * HOUR, 14 * DAY - 3 * HOUR}


def test_followers_listen_to_releases_in_the_hours_that_follow() -> None:
    quiet = {"listen_rate": 0, "playlist_rate": 0, "release_rate": 1, "session_rate": 10, "activity_sigma": 0}
    made = generate(**quiet, reaction=0.5)
    published = made.publications
    released = published.publisher < 0
    assert set(published.time[released].tolist()) == {DAY + 9 * HOUR}
    assert published.time[~released].min() > DAY + 9 * HOUR
    late = published.time[~released] - DAY - 9 * HOUR
    counts = np.histogram(late, [0, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR])[0] / [3, 3, 6, 12]
    assert (np.diff(counts) < 0).all()
    assert counts[0] > 10 * counts[-1]
    nobody = generate(**quiet, reaction=0)
    assert len(nobody.publications) == released.sum()


def test_replications_differ_and_rates_do_not_disturb_one_another() -> None:
    base, again, other = (generate(**FEW, replication=r) for r in (0, 0, 1))
    np.testing.assert_equal(vars(base.publications), vars(again.publications))
    assert not np.array_equal(base.sessions.start, other.sessions.start)
    busier = generate(**FEW, listen_rate=9, release_rate=5)
    np.testing.assert_equal(vars(base.subscription_events), vars(busier.subscription_events))


def test_a_scenario_runs_on_it() -> None:
    workload = {"kind": "spotify-sessions", **FEW, "horizon": "2d", "session_rate": 10}
    scenario = Scenario.model_validate({"workload": workload, "network": {"brokers": 5}})
    record = simulate(scenario, prepare_workload(scenario, 0, None), 0)
    assert record.metrics["publications"] > 100
    assert record.metrics["delivered"] > 0


def test_nothing_happens_at_rate_zero() -> None:
    made = generate(**FEW, session_rate=0, release_rate=0)
    validate_workload(made, Path("w"))
    assert made.counts == {
        "users": 60, "topics": 95, "interests": 0, "subscription_events": 0, "publications": 0, "movements": 0,
    }  # fmt: skip
    alone = generate(users=1, playlists=1, artists=1, friends_per_user=0, playlists_per_user=0, artists_per_user=0)
    assert len(alone.subscription_events) == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rhythm": 1.5}, "less than or equal to 1"),
        ({"peak": "25h"}, r"peak is 90000 s, which is not a time of day \(allowed: below 86400 s\)"),
        ({"release_day": "freitag"}, "'friday', 'saturday' or 'sunday'"),
        ({"origin": "yesterday"}, "Invalid isoformat string"),
        ({"users": 2**31 - 1}, "users, playlists and artists give 2,147,484,347 topics, allowed: fewer than"),
        ({"listen_rate": 1e7}, r"rates and horizon give 8e\+10 events, allowed: fewer than 1e\+09"),
        ({"followers": 5}, "Extra inputs"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SpotifySessions.Parameters(**parameters)


def test_times_during_sessions_lie_in_them() -> None:
    sessions = Sessions(np.array([0, 1], np.int32), np.array([3.0, 1.0]), np.array([5.0, 1.0]))
    times = times_during(sessions, np.array([200, 2]), np.random.default_rng(1))
    assert ((times[:200] >= 3) & (times[:200] <= 5)).all()
    assert times[:200].mean() == pytest.approx(4, abs=0.3)
    assert times[200:].tolist() == [1, 1]
