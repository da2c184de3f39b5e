"""Event logs become workloads: sessions, subscriptions and topic filters as in the slow, obvious reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import events as oracle
from oracles.events import Row

from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import NO_SESSION, SESSION_OVER, SESSION_RESUMED, Workload
from sim.workloads.models.event_log import event_workload, filters_unexpanded
from sim.workloads.models.live_filters import with_topics_of_filters
from sim.workloads.models.log_tables import Control, Delivered, EventLog, EventPublications
from sim.workloads.models.shared_subscriptions import shared_filter

CONTROL = ("connect", "subscribe", "unsubscribe", "disconnect")
TOPICS = ["a", "a/b", "a/b/c", "a//c", "/a", "$a", "$a/b", "b", "10", "9"]
FILTERS = ["#", "+", "a/#", "a/+", "+/b", "+/+", "$a/#", "a/+/c", "/+", "a/b/#"]
SHARED = ["$share/g/a/+", "$share/g/#", "$share/h/a/b", "$queue/a/#", "$share/g/10", "$share/g"]
SUBJECTS = ["*", ">", "a.>", "$share/q/>", "$share/q/*", "$share/r/a/b", "a/b"]


def log(rows: list[Row]) -> tuple[EventLog, list[int]]:
    """The log of rows that stand in the order of files, and the place of each row of its control table."""
    clients = sorted({n for row in rows for n in (row.client, row.publisher) if n is not None}, key=oracle.name_key)
    topics = sorted({row.topic for row in rows if row.topic is not None}, key=oracle.name_key)
    user = {name: number for number, name in enumerate(clients)} | {None: -1}
    topic = {name: number for number, name in enumerate(topics)} | {None: -1}
    order = sorted(range(len(rows)), key=lambda place: rows[place].micros)

    def column(which: list[Row], value: object, dtype: type) -> np.ndarray:
        return np.array([value(row) for row in which], dtype)

    places = [place for place in order if rows[place].action in CONTROL]
    control = [rows[place] for place in places]
    published = [rows[place] for place in order if rows[place].action == "publish"]
    delivered = [rows[place] for place in order if rows[place].action == "deliver"]
    made = EventLog(
        clients,
        topics,
        Control(
            column(control, lambda row: row.micros, np.int64),
            column(control, lambda row: CONTROL.index(row.action), np.int8),
            column(control, lambda row: user[row.client], np.int32),
            column(control, lambda row: topic[row.topic], np.int32),
            column(control, lambda row: -1 if row.clean is None else row.clean, np.int8),
            column(control, lambda row: -1 if row.expiry is None else row.expiry, np.int64),
            column(control, lambda row: -1 if row.qos is None else row.qos, np.int8),
        ),
        EventPublications(
            column(published, lambda row: row.micros, np.int64),
            column(published, lambda row: topic[row.topic], np.int32),
            column(published, lambda row: user[row.client], np.int32),
            column(published, lambda row: row.size, np.int32),
            column(published, lambda row: -1 if row.retain is None else row.retain, np.int8),
            column(published, lambda row: -1 if row.qos is None else row.qos, np.int8),
        ),
        Delivered(
            column(delivered, lambda row: row.micros, np.int64),
            column(delivered, lambda row: topic[row.topic], np.int32),
            column(delivered, lambda row: user[row.publisher], np.int32),
            column(delivered, lambda row: user[row.client], np.int32),
            column(delivered, lambda row: -1 if row.retain is None else row.retain, np.int8),
        ),
    )
    return made, places


def assert_tells(workload: Workload, story: oracle.Story) -> None:
    """The workload holds what the oracle says."""
    users, topics = workload.users.names.to_pylist(), workload.topics.names.to_pylist()
    assert (users, topics) == (story.users, story.topics)
    assert workload.origin == f"{np.datetime64(story.origin, 's')}Z"
    assert workload.horizon == story.horizon

    def rows(table: object) -> list[tuple]:
        return list(zip(*(column.tolist() for column in vars(table).values()), strict=True))

    def name(user: int) -> str | None:
        return users[user] if user >= 0 else None

    assert [(users[u], start, end) for u, start, end in rows(workload.sessions)] == story.sessions
    assert [(t, topics[p], name(u), *rest) for t, p, u, *rest in rows(workload.publications)] == story.publications
    assert [(t, topics[p], name(u), users[s]) for t, p, u, s in rows(workload.deliveries)] == story.deliveries
    changes = [(time, users[u], topics[p], action) for time, u, p, action in rows(workload.subscription_events)]
    # one row may bring several changes, of different topics: their order says nothing
    assert sorted(changes, key=lambda row: row[1:3]) == sorted(story.changes, key=lambda row: row[1:3])
    sessions = ("none", "resumed", "over")
    absences = [(users[u], start, end, sessions[kept]) for u, start, end, kept in rows(workload.absences)]
    assert sorted(absences) == sorted(story.absences)
    assert sorted((t, users[u], topics[p]) for t, u, p in rows(workload.retained_requests)) == sorted(story.requests)
    shares = rows(workload.shares)
    assert len(shares) == len(story.shares)
    groups = {
        group: name
        for topic, user, group in shares
        for t, u, name in story.shares
        if (topics[topic], users[user]) == (t, u)
    }
    assert {(topics[topic], users[user], groups[group]) for topic, user, group in shares} == story.shares
    qualities = [(t, users[u], topics[p], qos) for t, u, p, qos in rows(workload.qualities)]
    assert sorted(qualities) == sorted(story.qualities)
    validate_workload(workload, Path("w"))
    published = np.bincount(workload.publications.topic, minlength=len(topics))
    np.testing.assert_allclose(workload.topics.event_rate * workload.horizon / workload.period, published)


@st.composite
def rows(draw: st.DrawFn, names: list[str]) -> list[Row]:
    time = st.integers(1_600_000_000_700_000, 1_600_000_000_700_012) | st.integers(0, 3).map(lambda s: s * 1_000_000)
    client = st.sampled_from(["c", "d", "2", "11"])
    made = []
    for _ in range(draw(st.integers(0, 25))):
        action = draw(st.sampled_from([*CONTROL, "subscribe", "publish", "deliver"]))
        who = draw(client | st.none() if action == "publish" else client)
        if action in ("publish", "deliver"):
            what = draw(st.sampled_from(TOPICS))
        else:
            what = draw(st.sampled_from(names)) if action.endswith("subscribe") else None
        publisher = draw(client | st.none()) if action == "deliver" else None
        connects = action == "connect" and draw(st.booleans())
        clean = draw(st.sampled_from([0, 0, 1, None])) if connects else None
        expiry = draw(st.sampled_from([0, 1, 2, 2**32 - 1, None])) if connects else None
        qos = draw(st.sampled_from([0, 1, None])) if action in ("subscribe", "publish") else None
        retain = draw(st.sampled_from([0, 0, 1, None])) if action in ("publish", "deliver") else None
        size = draw(st.sampled_from([0, 1, 9]))
        made.append(Row(draw(time), action, who, what, size, publisher, clean, expiry, retain, qos))
    return made


@pytest.mark.parametrize(
    ("filters", "asked"),
    [
        ("exact", TOPICS[:3]),
        ("exact", TOPICS[:3] + SHARED),
        ("mqtt", TOPICS + FILTERS),
        ("mqtt", FILTERS[:3] + SHARED),
        ("nats", SUBJECTS),
    ],
)
@given(data=st.data(), persistent=st.booleans(), queues=st.booleans())
def test_a_log_is_followed_as_a_plain_reader_does(
    data: st.DataObject, persistent: bool, queues: bool, filters: str, asked: list[str]
) -> None:
    read = data.draw(rows(asked))
    made, places = log(read)
    workload, unused = event_workload(made, persistent=persistent, filters=filters, queues_qos_0=queues)
    story = oracle.tell(read, persistent, filters, queues)
    assert sorted(places[row] for row in np.flatnonzero(unused.no_effect)) == story.no_effect
    assert np.count_nonzero(unused.retained) == len(story.retained)
    if workload is None:
        assert story == oracle.Story(no_effect=story.no_effect, retained=story.retained)
    else:
        assert_tells(workload, story)
        live, _ = event_workload(made, persistent=persistent, filters=filters, live=True, queues_qos_0=queues)
        assert live is not None
        validate_workload(live, Path("w"))
        found = with_topics_of_filters(live)
        assert audiences(found) == audiences(workload)
        assert live.unmatched == workload.unmatched


def audiences(workload: Workload) -> list[tuple[str, list[tuple[bool, list[str]]]]]:
    """To whom each publication is due: users by themselves, and (True) those of a group together."""
    names, shares = workload.users.names.to_pylist(), workload.shares
    groups = {(t, u): g for t, u, g in zip(*(c.tolist() for c in vars(shares).values()), strict=True)}
    events, row, found = workload.subscription_events, 0, []
    held = set[tuple[int, int]]()
    for time, topic in zip(workload.publications.time, workload.publications.topic.tolist(), strict=True):
        while row < len(events) and events.time[row] <= time:
            pair = int(events.user[row]), int(events.topic[row])
            (held.add if events.action[row] > 0 else held.discard)(pair)
            row += 1
        due: dict[int, list[str]] = {}
        for user, wanted in sorted(held):
            if wanted == topic:
                due.setdefault(groups.get((topic, user), -1 - user), []).append(names[user])
        found.append((workload.topics.names[topic].as_py(), sorted((key >= 0, who) for key, who in due.items())))
    return found


def changes(*read: tuple[int, str, str, str | None], **how: Any) -> list[tuple[float, str, int]]:
    workload, _ = event_workload(log([Row(time * 1_000_000, *row) for time, *row in read])[0], **how)
    assert workload is not None
    names = workload.topics.names.to_pylist()
    events = workload.subscription_events
    return [
        (time, names[topic], action)
        for time, topic, action in zip(events.time.tolist(), events.topic, events.action, strict=True)
    ]


NIGHT = (
    (0, "connect", "c", None),
    (1, "subscribe", "c", "news"),
    (5, "disconnect", "c", None),
    (6, "publish", "d", "news"),
    (8, "connect", "c", None),
)


def test_subscriptions_end_with_the_session_unless_it_is_persistent() -> None:
    assert changes(*NIGHT) == [(1, "news", 1), (5, "news", -1)]
    assert changes(*NIGHT, persistent=True) == [(1, "news", 1)]


def test_who_unsubscribes_after_the_session_has_expired_has_nothing_to_give_up() -> None:
    read = [Row(time * 1_000_000, *row) for time, *row in (*NIGHT[:4], (9, "unsubscribe", "c", "news"))]
    for expiry, ended, ignored in ((2, 7, True), (4, 9, False), (5, 9, False)):
        workload, unused = event_workload(log([read[0]._replace(clean=0, expiry=expiry), *read[1:]])[0])
        assert workload is not None
        assert unused.no_effect.tolist() == [False] * 3 + [ignored]
        assert workload.subscription_events.time.tolist() == [1, ended][: 1 + (ended < workload.horizon)]


def test_a_client_that_connects_again_begins_a_new_session() -> None:
    read = [Row(time * 1_000_000, *row) for time, *row in (*NIGHT[:2], (4, "connect", "c", None))]
    for persistent, left in ((False, [1, -1]), (True, [1])):
        workload, unused = event_workload(log(read)[0], persistent=persistent)
        assert workload is not None
        assert not unused.no_effect.any()
        assert list(zip(*(c.tolist() for c in vars(workload.sessions).values()), strict=True)) == [(0, 0, 4), (0, 4, 5)]
        assert workload.subscription_events.action.tolist() == left


def test_what_a_connect_says_of_its_session_decides() -> None:
    """Subscriptions of a clean one end with it, others are in force until it expires or is forgotten by a clean start."""
    for begun, again, left, missed in (
        ((1, None), (None, None), [(1, 1), (5, -1)], []),
        ((0, None), (None, None), [(1, 1)], [(5, 8, SESSION_RESUMED)]),
        ((None, 3), (None, None), [(1, 1)], [(5, 8, SESSION_RESUMED)]),
        ((None, 2), (None, None), [(1, 1), (7, -1)], [(5, 7, SESSION_OVER), (7, 8, NO_SESSION)]),
        ((1, 3), (0, None), [(1, 1)], [(5, 8, SESSION_RESUMED)]),
        ((0, None), (1, None), [(1, 1), (8, -1)], [(5, 8, SESSION_OVER)]),
    ):
        read = [Row(time * 1_000_000, *row) for time, *row in NIGHT]
        read[0] = read[0]._replace(clean=begun[0], expiry=begun[1])
        read[4] = read[4]._replace(clean=again[0], expiry=again[1])
        workload, _ = event_workload(log(read)[0])
        assert workload is not None
        events, away = workload.subscription_events, workload.absences
        assert list(zip(events.time, events.action, strict=True)) == left, (begun, again)
        assert list(zip(away.start, away.end, away.session, strict=True)) == missed, (begun, again)


def test_overlapping_filters_hold_a_topic_until_the_last_of_them_goes() -> None:
    read = (
        (0, "publish", "d", "a/b"),
        (1, "subscribe", "c", "a/#"),
        (2, "subscribe", "c", "a/+"),
        (3, "subscribe", "c", "a/b"),
        (4, "unsubscribe", "c", "a/#"),
        (5, "unsubscribe", "c", "a/b"),
        (6, "unsubscribe", "c", "a/+"),
    )
    assert changes(*read, filters="mqtt") == [(1, "a/b", 1), (6, "a/b", -1)]
    assert len(changes(*read)) == 6


def test_without_the_switch_a_filter_is_a_topic_and_is_counted() -> None:
    read = [Row(0, "subscribe", "c", "a/+"), Row(1, "subscribe", "c", "a+"), Row(2, "subscribe", "d", "#")]
    workload, _ = event_workload(log(read)[0])
    assert workload is not None
    assert workload.topics.names.to_pylist() == ["#", "a+", "a/+"]
    assert filters_unexpanded(workload, "mqtt") == 2
    assert filters_unexpanded(workload, "nats") == 0


def test_subscriptions_that_match_nothing_that_is_published_are_counted_by_name() -> None:
    asked = ("a/b", "a/+", "x/#", "$share/g/a/b", "$share/g/b", "quiet", "quiet", "told")
    read = [Row(n, "subscribe", f"c{n}", topic) for n, topic in enumerate(asked)]
    read += [Row(20, "publish", "d", "a/b"), Row(21, "deliver", "d", "told")]
    for filters, unmatched in (
        ("mqtt", {"x/#": 1, "$share/g/b": 1, "quiet": 2}),
        ("exact", {"a/+": 1, "x/#": 1, "$share/g/b": 1, "quiet": 2}),
    ):
        workload, _ = event_workload(log(read)[0], filters=filters)
        assert workload is not None
        assert workload.unmatched == unmatched


def test_members_of_a_shared_subscription_are_users_and_one_with_two_ways_to_a_topic_is_two() -> None:
    """Two workers share the jobs, of which one also listens to all by itself."""
    read = [
        Row(0, "subscribe", "w1", "$share/crew/jobs/+"),
        Row(1, "subscribe", "w2", "$share/crew/jobs/+"),
        Row(2, "subscribe", "w2", "jobs/#"),
        Row(3, "publish", "p", "jobs/1"),
        Row(4, "deliver", "w1", "jobs/1"),
        Row(5, "deliver", "w2", "jobs/1"),
        Row(6, "publish", "p", "jobs/1"),
        Row(7, "deliver", "w2", "jobs/1"),
        Row(8, "deliver", "w2", "jobs/1"),
        Row(9, "unsubscribe", "w1", "$share/crew/jobs/+"),
    ]
    workload, _ = event_workload(log(read)[0], filters="mqtt")
    assert workload is not None
    users = workload.users.names.to_pylist()
    assert users == ["p", "w1", "w2", "w2 in $share/crew/jobs/+"]
    assert [users[user] for user in workload.deliveries.subscriber.tolist()] == ["w1", "w2", "w2", users[3]]
    assert [users[user] for user in workload.shares.user.tolist()] == ["w1", users[3]]
    events = workload.subscription_events
    assert [(users[user], action) for user, action in zip(events.user, events.action, strict=True)] == [
        ("w1", 1),
        (users[3], 1),
        ("w2", 1),
        ("w1", -1),
    ]


@pytest.mark.parametrize(
    ("name", "filter_"),
    [
        ("$share/group/a/b", "a/b"),
        ("$queue/a/+", "a/+"),
        ("$share/crew/orders.*", "orders.*"),
        ("$share/group", None),
        ("$share//a", None),
        ("$queue/", None),
        ("$SYS/broker", None),
        ("a/b", None),
    ],
)
def test_which_names_are_shared_subscriptions(name: str, filter_: str | None) -> None:
    assert shared_filter(name) == filter_
    assert filter_ is None or oracle.shared(name) == filter_
