"""Users who go offline, and what is retained, as other workloads."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from depth import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.sessions import Offline

from sim.base.errors import ScenarioError
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models.sessions import OfflineRules, OfflineSpan, Will, retain, take_offline

HORIZON, USERS, TOPICS = 14, 3, 3


@st.composite
def offline(draw: st.DrawFn) -> Offline:
    second, user, topic = st.integers(0, HORIZON - 1), st.integers(0, USERS - 1), st.integers(0, TOPICS - 1)
    wants = draw(st.lists(st.sets(topic), min_size=USERS, max_size=USERS))
    held, events = [set(topics) for topics in wants], []
    for time, who, what in sorted(draw(st.sets(st.tuples(second, user, topic), max_size=12))):
        events.append((time, who, what, -1 if what in held[who] else 1))
        held[who] ^= {what}
    publications = sorted(draw(st.lists(st.tuples(second, topic, st.integers(-1, USERS - 1)), max_size=8)))
    spans = draw(st.lists(st.tuples(user, second, st.integers(1, 8)), max_size=5))
    return Offline(
        wants,
        events,
        publications,
        [(who, start, start + lasts) for who, start, lasts in spans],
        HORIZON,
        draw(st.sampled_from([0, 1, 3, math.inf])),
        draw(st.none() | st.tuples(topic, st.integers(0, 4))),
    )


@settings(max_examples=tried(500))
@given(offline())
def test_users_go_offline_as_second_by_second(truth: Offline) -> None:
    rows = [(float(time), topic, publisher, 1) for time, topic, publisher in truth.publications]
    world = tiny.workload(truth.wants, rows, truth.events, topics=TOPICS, horizon=float(HORIZON))
    will = None if truth.will is None else Will(truth.will[0], 9, truth.will[1])
    spans = [OfflineSpan(user, float(start), float(end)) for user, start, end in truth.spans]
    found = take_offline(world, spans, OfflineRules(truth.expiry, will), float(HORIZON))
    validate_workload(found, Path("w"))
    events, away, published = found.subscription_events, found.absences, found.publications
    net = Counter[tuple[float, int, int]]()  # of what changes twice in an instant
    for *what, action in zip(*(column.tolist() for column in vars(events).values()), strict=True):
        net[tuple(what)] += action
    assert {(*what, action) for what, action in net.items() if action} == truth.changes
    sessions = ("none", "resumed", "over")
    rows_away = zip(away.user.tolist(), away.start.tolist(), away.end.tolist(), away.session.tolist(), strict=True)
    assert {(user, start, end, sessions[kept]) for user, start, end, kept in rows_away} == {
        (user, start, min(end, HORIZON), kept) for user, start, end, kept in truth.absences
    }
    assert sorted(zip(published.time, published.topic, published.publisher, strict=True)) == sorted(truth.published)


def test_what_is_retained_is_asked_for_by_those_who_subscribe() -> None:
    world = tiny.workload([[0]], [(1.0, 0, -1, 5), (3.0, 1, -1, 5)], [(2.0, 0, 1, 1), (4.0, 0, 0, -1)], topics=2)
    found = retain(world, [0, 1])
    assert found.publications.retain.tolist() == [1, 1]
    assert found.retained_requests.topic.tolist() == [1]
    again = take_offline(found, [OfflineSpan(0, 5.0, 6.0)], OfflineRules(0.0, None), 10.0)
    assert list(zip(again.retained_requests.time, again.retained_requests.topic, strict=True)) == [(2.0, 1), (6.0, 1)]


def test_a_workload_with_absences_is_the_same_after_writing(tmp_path: Path) -> None:
    """And one without them has neither their files nor their columns."""
    world = tiny.workload([[0]], [(1.0, 0, -1, 5)])
    write_workload(retain(take_offline(world, [OfflineSpan(0, 2.0, 3.0)], OfflineRules(), 10.0), None), tmp_path / "w")
    found = load_workload(tmp_path / "w")
    assert (found.absences.start.tolist(), found.publications.retain.tolist()) == ([2.0], [1])
    assert found.publications.qos.tolist() == [-1]
    write_workload(world, tmp_path / "plain")
    assert not (tmp_path / "plain" / "absences.parquet").exists()


# -- scenarios

WORLD = tiny.workload([[0], [0], []], [(float(second), 0, 2, 100) for second in range(20)], topics=2, horizon=20.0)


def run(world: Workload = WORLD, plane: str = "auto", **sessions: Any) -> Any:
    rows = {"offline": [{"at": 4, "for": 10}], **sessions}
    latency = {"kind": "unit", "rtt": "10ms"}
    network = {"brokers": 2, "data_plane": plane, "latency": latency, "sessions": rows}
    return simulate(load_scenario({"network": network, "subscribers": True, "horizon": 20}).base, world, 0)


def test_a_publisher_who_is_offline_publishes_nothing_and_all_planes_agree() -> None:
    own = tiny.workload([[0], [0]], [(float(second), 0, -1, 100) for second in range(20)], topics=2, horizon=20.0)
    found = {plane: run(own, plane, rate=4.0).metrics for plane in ("events", "compiled", "folded")}
    assert found["events"] == found["compiled"] == found["folded"]
    # ten wait for each; one is sent at the return and another each quarter of a second, while three more come
    counts = tuple(found["events"][name] for name in ("session_deliveries", "resumed_sessions", "session_queue_max"))
    assert counts == (20, 2, 10)
    assert found["events"]["session_delay"] == pytest.approx(
        np.mean([14 + n / 4 - (4 + n) for n in range(10)]), abs=0.1
    )
    assert found["events"]["delivery_ratio"] == 1.0
    assert run(rate=4.0).metrics["publications"] == 10


def test_limits_of_sessions() -> None:
    own = tiny.workload([[0]], [(float(second), 0, -1, 100) for second in range(20)], topics=2, horizon=20.0)
    for sessions, losses in (
        ({"queue": 3}, {"offline_queue_full": 7}),
        ({"queue_bytes": 250, "overflow": "drop-oldest"}, {"offline_queue_full": 8}),
        ({"max_age": 4.5}, {"message_expired": 6}),
        ({"expiry": 6}, {"session_expired": 6}),
        ({"persistent": False}, {}),
    ):
        metrics = run(own, **sessions).metrics
        lost = {name: metrics[f"lost_{name}"] for name in ("offline_queue_full", "message_expired", "session_expired")}
        assert {name: number for name, number in lost.items() if number} == losses, sessions


def test_a_will_and_what_is_retained() -> None:
    """The first user's will is retained; who subscribes later gets it, and what was published last before."""
    world = tiny.workload([[], []], [(1.0, 1, -1, 7)], [(6.0, 1, 0, 1), (7.0, 1, 1, 1)], topics=2, horizon=20.0)
    offline = [{"at": 4, "for": 30, "share": 1.0}]
    network = {"brokers": 2, "sessions": {"offline": offline, "will": {"topic": "t0", "retain": True}, "retained": [1]}}
    made = build(load_scenario({"network": network, "horizon": 20}).base, world, 0).workload
    assert made.publications.topic.tolist() == [1, 0, 0]
    assert made.publications.retain.tolist() == [1, 1, 1]
    plain = {"brokers": 2, "sessions": {"retained": "all"}}
    metrics = simulate(load_scenario({"network": plain, "horizon": 20}).base, world, 0).metrics
    assert (metrics["retained_deliveries"], metrics["retained_delay"], metrics["delivery_ratio"]) == (1, 0.0, 1.0)


@pytest.mark.parametrize(
    ("sessions", "message"),
    [
        ({"expiry": 5}, "expiry without users who go offline (allowed with: offline)"),
        (
            {"persistent": False, "expiry": 5, "offline": [{"at": 1, "for": 1}]},
            "expiry of sessions that are not persistent",
        ),
        (
            {"offline": [{"at": 30, "for": 1}]},
            "network.sessions.offline[0]: at: expected a time before the horizon (20 s), found 30 s",
        ),
        ({"offline": {"at": 1, "for": 1}}, "network.sessions.offline: expected a valid list (found {"),
        ({"retained": ["t7"]}, "network.sessions.retained: unknown topic 't7'"),
        ({"retained": [True]}, "expected a topic, by number or name"),
        (
            {"offline": [{"at": 1, "for": 1}, {"at": 1, "for": 1, "shaer": 1}]},
            "offline[1].shaer: unknown key, did you mean 'share'? (allowed: at, for, share, spread) (found 1)",
        ),
        ({"will": {"topc": 1}}, "will.topc: unknown key, did you mean 'topic'? (allowed: topic, size, delay, retain)"),
    ],
)
def test_mistakes(sessions: dict[str, Any], message: str) -> None:
    scenario = {"network": {"brokers": 2, "sessions": sessions}, "horizon": 20}
    with pytest.raises(ScenarioError, match=re.escape(message)):
        build(load_scenario(scenario).base, WORLD, 0)
