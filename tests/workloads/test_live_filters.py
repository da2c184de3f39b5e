"""Filters that live in a workload: topics that appear are subscribed to by whoever has a filter for them then."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles import topic_filters as oracle

from sim.base.errors import WorkloadError
from sim.files.parquet import strings
from sim.workloads.format.demand import load_demand
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Interests, Publications, Shares, SubscriptionEvents, Topics, Users, Workload
from sim.workloads.models.live_filters import with_topics_of_filters

LEVELS = {"mqtt": ["a", "b", "", "$x", "+", "#"], "nats": ["a", "b", "", "$x", "*", ">"]}
SEPARATOR = {"mqtt": "/", "nats": "."}


def drawn_names(rng: np.random.Generator, kind: str, levels: int) -> list[str]:
    """Some names of these levels, each once."""
    made = [
        SEPARATOR[kind].join(rng.choice(LEVELS[kind][:levels], rng.integers(1, 4)).tolist())
        for _ in range(rng.integers(1, 9))
    ]
    return list(dict.fromkeys(made))


def made(topics: list[str], filters: list[str], kind: str, published: list[tuple[float, int]]) -> Workload:
    """A workload without subscriptions, of five users."""
    time, topic = (np.array(column) for column in zip(*published, strict=True)) if published else np.empty((2, 0))
    kinds = ["topic"] * len(topics) + [f"{kind}-filter"] * len(filters)
    return Workload(
        "events",
        20.0,
        Topics.without_places(strings([*topics, *filters]), strings(kinds), np.zeros(len(kinds))),
        Users.without_places(strings("01234")),
        Interests(np.zeros(6, np.int64), np.empty(0, np.int32)),
        SubscriptionEvents.none(),
        Publications(
            time.astype(float), topic.astype(np.int32), np.full(len(time), -1, np.int32), np.ones(len(time), np.int32)
        ),
    )


def case(rng: np.random.Generator, kind: str) -> tuple[Workload, list[tuple[float, int, int, int]]]:
    """A workload with filters, and all changes of its subscriptions, those before the beginning at time -1."""
    topics = drawn_names(rng, kind, 4)
    filters = [name for name in drawn_names(rng, kind, 6) if name not in topics]
    published = sorted(
        zip(
            rng.integers(0, 12, many := rng.integers(0, 9)).tolist(),
            rng.integers(0, len(topics), many).tolist(),
            strict=True,
        )
    )
    held, changes = set(), []
    for time in sorted(rng.integers(-1, 12, rng.integers(0, 14)).tolist()):
        pair = int(rng.integers(0, 5)), int(rng.integers(0, len(topics) + len(filters)))
        if time >= 0 or pair not in held:
            changes.append((float(time), *pair, -1 if pair in held else 1))
            held ^= {pair}
    base = made(topics, filters, kind, published)
    first = sorted((user, topic) for time, user, topic, _ in changes if time < 0)
    later = [change for change in changes if change[0] >= 0]
    columns = zip(*later, strict=True) if later else [()] * 4
    events = SubscriptionEvents(
        *(np.array(c, dtype) for c, dtype in zip(columns, (float, np.int32, np.int32, np.int8), strict=True))
    )
    indptr = np.searchsorted([user for user, _ in first], np.arange(6))
    interests = Interests(indptr.astype(np.int64), np.array([topic for _, topic in first], np.int32))
    return replace(base, interests=interests, subscription_events=events), changes


def test_live_filters_are_followed_as_going_through_all_times_does() -> None:
    rng, some = np.random.default_rng(1), 0
    for number in range(500):
        kind = ("mqtt", "nats")[number % 2]
        workload, changes = case(rng, kind)
        validate_workload(workload, Path("w"))
        found = with_topics_of_filters(workload)
        validate_workload(found, Path("w"))
        names = workload.topics.names.to_pylist()
        there = names[: len(found.topics)] if len(found.topics) < len(names) else names
        appears = dict.fromkeys(there, -1.0)
        for time, topic in reversed(
            list(zip(*map(list, (workload.publications.time, workload.publications.topic)), strict=True))
        ):
            appears[names[topic]] = time
        expected = oracle.follow(
            [(time, user, names[what], action) for time, user, what, action in changes], appears, kind
        )
        users = np.repeat(np.arange(5), np.diff(found.interests.indptr)).tolist()
        told = [
            (-1.0, user, names[topic], 1) for user, topic in zip(users, found.interests.indices.tolist(), strict=True)
        ]
        told += [
            (t, u, names[p], a)
            for t, u, p, a in zip(*(c.tolist() for c in vars(found.subscription_events).values()), strict=True)
        ]
        assert net(told) == net(expected), number
        some += len(told)
    assert some > 1500


def net(changes: list[tuple[float, int, str, int]]) -> list[tuple[float, int, str, int]]:
    """Changes without those that are undone in the same instant."""
    sums: dict[tuple[float, int, str], int] = {}
    for time, user, topic, action in changes:
        sums[time, user, topic] = sums.get((time, user, topic), 0) + action
    return sorted((*key, total) for key, total in sums.items() if total)


def test_what_a_group_shares_by_a_filter_is_shared_on_its_topics() -> None:
    """Of two users with one filter who share it, one has another filter for a topic, too: that is refused."""
    base = made(["a", "b/a"], ["+/a", "#"], "mqtt", [(3.0, 0), (4.0, 1)])
    shares = Shares(*(np.array(column, np.int32) for column in ([2, 2], [0, 1], [7, 7])))
    both = replace(base, interests=Interests(np.array([0, 1, 2, 2, 2, 2]), np.array([2, 2], np.int32)), shares=shares)
    validate_workload(both, Path("w"))
    found = with_topics_of_filters(both)
    assert [column.tolist() for column in vars(found.shares).values()] == [[1, 1], [0, 1], [7, 7]]
    assert found.subscription_events.time.tolist() == [4.0, 4.0]
    other = replace(both, interests=Interests(np.array([0, 2, 3, 3, 3, 3]), np.array([2, 3, 2], np.int32)))
    with pytest.raises(
        WorkloadError, match=re.escape("user 0 subscribes to topic 1 ('b/a') both in a group and in another way")
    ):
        with_topics_of_filters(other)


def test_filters_are_behind_topics_and_nobody_publishes_on_them(tmp_path: Path) -> None:
    base = made(["a"], ["#"], "mqtt", [(3.0, 1)])
    with pytest.raises(WorkloadError, match=re.escape("publications.parquet: row 0: topic is 1, allowed: 0..0")):
        validate_workload(base, Path("w"))
    mixed = replace(base, topics=replace(base.topics, kinds=strings(["mqtt-filter", "topic"])))
    with pytest.raises(
        WorkloadError, match="kinds mqtt-filter, topic, allowed: filters of one kind, behind all other topics"
    ):
        validate_workload(mixed, Path("w"))
    write_workload(made(["a"], ["#"], "mqtt", []), tmp_path / "w")
    assert load_workload(tmp_path / "w").counts["filters"] == 1
    with pytest.raises(WorkloadError, match="has filters, which match topics only in a simulation"):
        load_demand(tmp_path / "w", lambda *_: None)
