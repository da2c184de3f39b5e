"""Follows become interests and their changes, as in the slow, obvious reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import follows as oracle
from oracles.follows import DAY, Event, Follow, Story

from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models import follow_log
from sim.workloads.models.follow_log import FollowLog, FollowPublications, Follows, follow_workload

USERS, TOPICS = ["2", "10", "ann"], ["1", "a", "b", "c"]
START = 20_000 * DAY


def assert_tells(workload: Workload, story: Story) -> None:
    """The workload is what the story says, named by kind and name where topics of several kinds are."""
    users, topics = workload.users.names.to_pylist(), topic_names(workload)
    assert np.datetime64(workload.origin[:-1], "us").astype(int) == story.origin
    assert workload.horizon == story.days * 86400
    assert (set(users), set(topics)) == (story.users, story.topics)
    assert (len(users), len(topics)) == (len(story.users), len(story.topics))
    user_id, topic_id = ({name: number for number, name in enumerate(names)} for names in (users, topics))
    interests, changes, published = workload.interests, workload.subscription_events, workload.publications
    user = np.repeat(np.arange(len(users)), np.diff(interests.indptr))
    pairs = zip(user.tolist(), interests.indices.tolist(), strict=True)
    assert [(users[u], topics[t]) for u, t in pairs] == sorted(
        story.interests, key=lambda pair: (user_id[pair[0]], topic_id[pair[1]])
    )
    columns = (changes.time, changes.user, changes.topic, changes.action)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert [(time, users[u], topics[t], action) for time, u, t, action in rows] == sorted(
        story.changes, key=lambda row: (row[0], user_id[row[1]], topic_id[row[2]])
    )
    who = [*users, None]
    rows = zip(published.time.tolist(), published.topic.tolist(), published.publisher.tolist(), strict=True)
    assert [(time, topics[t], who[u]) for time, t, u in rows] == sorted(
        story.publications, key=lambda row: (row[0], topic_id[row[1]], user_id.get(row[2], -1))
    )


def topic_names(workload: Workload) -> list[str]:
    names, kinds = workload.topics.names.to_pylist(), workload.topics.kinds.to_pylist()
    several = len(set(kinds)) > 1
    return [f"{kind} {name}" if several else name for kind, name in zip(kinds, names, strict=True)]


def log(tables: list[list[Follow]], events: list[Event]) -> FollowLog:
    def times(rows: list[Follow], bound: str, otherwise: int) -> np.ndarray | None:
        found = [getattr(row, bound) for row in rows]
        if rows and all(time is None for time in found):
            return None
        return np.array([otherwise if time is None else time for time in found], np.int64)

    def table(rows: list[Follow]) -> Follows:
        return Follows(
            np.array([USERS.index(row.user) for row in rows], np.int32),
            np.array([TOPICS.index(row.topic) for row in rows], np.int32),
            np.array([-1 if row.row is None else row.row for row in rows], np.int64),
            times(rows, "since", follow_log.EVER),
            times(rows, "until", follow_log.UNENDING),
        )

    published = FollowPublications(
        np.array([event.micros for event in events], np.int64),
        np.array([TOPICS.index(event.topic) for event in events], np.int32),
        np.array([-1 if event.publisher is None else USERS.index(event.publisher) for event in events], np.int32),
    )
    return FollowLog(USERS, TOPICS, ["topic"] * len(TOPICS), [table(rows) for rows in tables], published)


moments = st.integers(-3, 15).map(lambda eighth: START + eighth * DAY // 8)
bounds = st.tuples(st.none() | moments, st.none() | moments).filter(lambda b: None in b or b[0] < b[1])
follows = st.builds(
    lambda user, topic, bound: Follow(user, topic, *bound), st.sampled_from(USERS), st.sampled_from(TOPICS), bounds
)
events = st.builds(
    Event,
    st.integers(0, 11).map(lambda e: START + e * DAY // 8),
    st.sampled_from(TOPICS),
    st.sampled_from([*USERS, None]),
)


@given(
    st.lists(follows, max_size=12),
    st.lists(follows, max_size=4),
    st.lists(events, min_size=1, max_size=5),
    st.none() | st.sets(st.sampled_from(USERS)),
    st.integers(1, 20),
)
def test_follows_that_overlap_touch_or_repeat(
    rows: list[Follow], others: list[Follow], said: list[Event], chosen: set[str] | None, at_once: int
) -> None:
    numbered = [row._replace(row=number) for number, row in enumerate(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow_log, "_AT_ONCE", at_once)  # so that some users come after others
        mask = None if chosen is None else np.array([user in chosen for user in USERS])
        workload, dropped = follow_workload(log([numbered, others], said), chosen=mask, period=3600.0)
    story = oracle.tell(numbered + others, said, chosen)
    assert {reason: set(numbers.tolist()) for reason, numbers in dropped.items()} == story.dropped
    if not story.interests and not story.changes:
        assert workload is None
        return
    assert workload is not None
    validate_workload(workload, Path("w"))
    assert_tells(workload, story)
    per_hour = np.bincount(workload.publications.topic, minlength=len(workload.topics)) / (24 * story.days)
    np.testing.assert_allclose(workload.topics.event_rate, per_hour, rtol=1e-12)
    followed = {topic for _, topic in story.interests} | {topic for _, _, topic, _ in story.changes}
    assert sum(workload.unmatched.values()) == sum(event.topic not in followed for event in said)


def test_nothing_published_is_no_workload() -> None:
    assert follow_workload(log([[Follow("2", "a")]], [])) == (None, {})
