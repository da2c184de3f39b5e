"""Users drawn with replacement: all that one does is done by each of its copies, and what is said of others goes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from sim.workloads.resampling import resample
from sim.workloads.tables import strings
from sim.workloads.workload import (
    Deliveries,
    Interests,
    Publications,
    Sessions,
    SubscriptionEvents,
    Topics,
    Users,
    Workload,
    validate,
)

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
    )


def test_copies_have_the_sessions_of_their_users_and_no_ground_truth() -> None:
    made = connected()
    for seed in range(20):
        other = resample(made, np.random.default_rng(seed))
        validate(other, Path("w"))
        names = other.users.names.to_pylist()
        found = Counter((names[user].split("#")[0], end) for user, end in zip(*_ends(other), strict=True))
        copies = Counter(name.split("#")[0] for name in names)
        assert found == Counter(
            {("abc"[user], end): copies["abc"[user]] for user, end in zip(*_ends(made), strict=True)}
        )
        assert not len(other.deliveries)


def _ends(workload: Workload) -> tuple[list[int], list[float]]:
    return workload.sessions.user.tolist(), workload.sessions.end.tolist()
