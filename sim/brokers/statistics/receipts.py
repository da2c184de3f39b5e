"""Receipts by user and topic, recorded only on request."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.workloads.format.workload import Workload

_PENDING = 1 << 20  # pairs of topic and user that are kept before they are summed


class Audience(NamedTuple):
    """The users who wanted a topic, and their brokers, at one version of the topic's subscriptions."""

    topic: int
    version: int
    users: NDArray[np.int64]
    brokers: NDArray[np.int32]


class Audiences:
    """The users who want each topic, and their brokers, now."""

    def __init__(self, workload: Workload, brokers: int) -> None:
        interests, users, topics = workload.interests, len(workload.users), len(workload.topics)
        self._by_topic = np.argsort(interests.indices, kind="stable")
        self._starts = np.searchsorted(interests.indices[self._by_topic], np.arange(topics + 1))
        self._owner = np.repeat(np.arange(users), np.diff(interests.indptr))
        self._members: dict[int, NDArray[np.int64]] = {}  # topic → users, if changed since time 0
        self._changes: dict[int, dict[int, int]] = {}  # topic → user → ±1, since its audience was last requested
        self._leaving = np.zeros(users, np.bool_)  # scratch
        self._host = np.full(users, -1, np.int32)
        self._audiences: dict[int, Audience] = {}
        self._arrived = np.zeros(brokers + 1, np.int64)  # scratch; the last one, -1, is for users that are at no broker

    def attach(self, user: int, broker: int) -> None:
        """The user is at this broker from now on."""
        self._host[user] = broker

    def change(self, user: int, topic: int, action: int) -> None:
        """The user begins (+1) or ceases (-1) to want the topic."""
        changes = self._changes.setdefault(topic, {})
        if changes.pop(user, 0) != -action:  # otherwise the two changes cancel out
            changes[user] = action

    def _wanting(self, topic: int) -> NDArray[np.int64]:
        members = self._members.get(topic)
        if members is None:
            members = self._owner[self._by_topic[self._starts[topic] : self._starts[topic + 1]]]
        changes = self._changes.pop(topic, None)
        if changes:
            leaving = [user for user, action in changes.items() if action < 0]
            self._leaving[leaving] = True
            staying = members[~self._leaving[members]]
            self._leaving[leaving] = False
            joining = [user for user, action in changes.items() if action > 0]
            members = self._members[topic] = np.concatenate([staying, np.array(joining, np.int64)])
        return members

    def audience(self, topic: int, version: int) -> Audience:
        """The users who want the topic now; `version` changes whenever a user joins or leaves the topic, or moves to another broker."""
        known = self._audiences.get(topic)
        if known is None or known.version != version:
            users = self._wanting(topic)
            known = self._audiences[topic] = Audience(topic, version, users, self._host[users])
        return known

    def reached(
        self, audience: Audience, brokers: NDArray[np.int32], times: Integers | NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """How often each user of an audience is reached by `times` arrivals at these distinct brokers."""
        self._arrived[brokers] = times
        reached: NDArray[np.int64] = self._arrived[audience.brokers]
        self._arrived[brokers] = 0
        return reached


class Receipts:
    """Counts what each user receives on each topic, regardless of when it was published.

    A publication that has become due to a user is received when it arrives at the broker that hosted the user then.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)  # topic << 32 | user
        self._counts = np.empty(0, np.int64)
        self._pending: list[tuple[NDArray[np.int64], Integers | NDArray[np.bool_]]] = []
        self._held = 0

    def receive(self, topic: int, users: Integers, times: Integers | NDArray[np.bool_]) -> None:
        """Count arrivals on the topic for these users."""
        those = np.flatnonzero(times)
        self.add(topic << 32 | users[those], times[those])

    def add(self, keys: NDArray[np.int64], times: Integers | NDArray[np.bool_]) -> None:
        """Count arrivals by key, topic << 32 | user."""
        self._pending.append((keys, times))
        self._held += len(keys)
        if self._held > _PENDING:
            self._sum_up()

    def _sum_up(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._pending)])
        self._keys, which = np.unique(keys, return_inverse=True)
        self._counts = np.zeros(len(self._keys), np.int64)
        np.add.at(self._counts, which, counts)
        self._pending, self._held = [], 0

    def table(self) -> dict[str, NDArray[np.int64]]:
        """A row for each topic and user that received anything: topic, user, delivered; sorted by both."""
        self._sum_up()
        return {"topic": self._keys >> 32, "user": self._keys & 0xFFFFFFFF, "delivered": self._counts}
