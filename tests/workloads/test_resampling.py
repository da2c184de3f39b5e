"""Users drawn with replacement: each copy repeats all actions of its user, and records about others are left out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import tiny

from sim.files.parquet import strings
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import (
    Deliveries,
    Interests,
    Publications,
    Sessions,
    Shares,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
)
from sim.workloads.models.resampling import resample

NAN = np.full(3, np.nan)


def connected() -> Workload:
    """Three users on one topic, with one session each but the first, which has two."""
    ids = np.arange(3, dtype=np.int32)
    return Workload(
        kind="events",
        horizon=10.0,
        topics=Topics(strings(["t"]), strings(["topic"]), np.ones(1), NAN[:1], NAN[:1]),
        users=Users(strings("abc"), NAN, NAN),
        interests=Interests(np.zeros(4, np.int64), np.empty(0, np.int32)),
        subscription_events=SubscriptionEvents(np.arange(3.0), ids, ids * 0, np.ones(3, np.int8)),
        publications=Publications(np.array([4.0]), ids[:1], ids[:1], ids[:1]),
        sessions=Sessions(np.array([0, 1, 2, 0], np.int32), np.array([0.0, 1, 2, 6]), np.array([5.0, 10, 10, 8])),
        deliveries=Deliveries(np.full(3, 4.5), ids * 0, ids * 0, ids),
        shares=Shares(ids[:2] * 0, ids[1:], ids[:2]),
    )


def test_copies_have_the_sessions_of_their_users_and_no_ground_truth() -> None:
    made = connected()
    for seed in range(20):
        other = resample(made, np.random.default_rng(seed))
        validate_workload(other, Path("w"))
        names = other.users.names.to_pylist()
        found = Counter((names[user].split("#")[0], end) for user, end in zip(*_ends(other), strict=True))
        copies = Counter(name.split("#")[0] for name in names)
        assert found == Counter(
            {("abc"[user], end): copies["abc"[user]] for user, end in zip(*_ends(made), strict=True)}
        )
        assert not len(other.deliveries)
        assert Counter(names[user].split("#")[0] for user in other.shares.user) == copies - Counter(a=copies["a"])
        assert {
            (names[user].split("#")[0], group) for _, user, group in zip(*vars(other.shares).values(), strict=True)
        } <= {
            ("b", 0),
            ("c", 1),
        }


def test_copies_have_the_subscriptions_to_content_of_their_users() -> None:
    made = tiny.content(
        [(2, {0: 1, 1: 2}), (0, {0: 1}), (2, {1: 3}), (1, {0: 0, 1: 2})],
        [(1.0, 2, 1, (1, 2)), (2.0, -1, 1, (1, 3)), (3.0, 0, 1, (0, 2))],
        users=3,
        fields=2,
    )
    for seed in range(20):
        other = resample(made, np.random.default_rng(seed))
        validate_workload(other, Path("w"))
        picked = [int(name.split("#")[0][1:]) for name in other.users.names.to_pylist()]
        had = _subscriptions(made)
        assert _subscriptions(other) == {new: had[user] for new, user in enumerate(picked)}
        assert other.content is not None
        assert sorted(other.content.values.tolist()) == sorted(
            [[1, 3], *[[1, 2]] * picked.count(2), *[[0, 2]] * picked.count(0)]
        )


def _subscriptions(workload: Workload) -> dict[int, list[list[tuple[int, int]]]]:
    """Of each user, in order."""
    assert workload.content is not None
    wanted = workload.content.conjunctions
    found: dict[int, list[list[tuple[int, int]]]] = {user: [] for user in range(len(workload.users))}
    for owner, (a, b) in zip(wanted.owner.tolist(), pairwise(wanted.indptr.tolist()), strict=True):
        found[owner].append(list(zip(wanted.field[a:b].tolist(), wanted.value[a:b].tolist(), strict=True)))
    return found


def _ends(workload: Workload) -> tuple[list[int], list[float]]:
    return workload.sessions.user.tolist(), workload.sessions.end.tolist()
