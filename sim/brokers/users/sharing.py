"""Shared subscriptions: groups of users of whom one gets each publication, chosen by a policy when the publication leaves its root."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import frozen
from sim.brokers.statistics.receipts import Audience, Audiences
from sim.policies.sharing.view import SharingPolicy, SharingView
from sim.workloads.format.workload import Publications, Shares

NO_MEMBER = -1
"""Stands for the member chosen of a group without connected members."""

Observe = Callable[[NDArray[np.int64], float], tuple[NDArray[np.int64], NDArray[np.bool_]]]
"""The load of users now (s), and which of them are away."""


class Group(NamedTuple):
    """The members of a group who subscribe to a topic now and are connected, ascending, and their brokers."""

    number: int
    members: NDArray[np.int64]
    hosts: NDArray[np.int32]


class Roster(NamedTuple):
    """Who subscribes to a topic at one version of its subscriptions.

    `own` are those with a subscription of their own, of whom `absent` are connected to no broker; `counts` (brokers) how many each
    broker hosts. `groups` have connected members, `deserted` groups only others.
    """

    own: Audience
    counts: NDArray[np.int32]
    absent: int
    groups: tuple[Group, ...]
    deserted: int


class Chosen(NamedTuple):
    """The member of each group of a roster who gets a publication, NO_MEMBER where all are away, and its broker."""

    users: tuple[int, ...]
    hosts: tuple[int, ...]


NOBODY_CHOSEN = Chosen((), ())
"""The choice before any publication: no members."""


class SharedSubscriptions:
    """The groups of a workload, and whose turn it is. `version` (topics) counts the changes of each topic's subscriptions.

    `observe` is None where loads make no difference and nobody is ever away.
    """

    def __init__(
        self,
        shares: Shares,
        policy: SharingPolicy,
        audiences: Audiences,
        publications: Publications,
        version: NDArray[np.int64],
        brokers: int,
    ) -> None:
        self._policy, self._audiences, self._publications, self._version = policy, audiences, publications, version
        self.observe: Observe | None = None
        self._brokers = brokers
        topics, starts = np.unique(shares.topic, return_index=True)
        parts = zip(np.split(shares.user, starts[1:]), np.split(shares.group, starts[1:]), strict=True)
        self._members = dict(zip(topics.tolist(), parts, strict=True))  # topic → users, ascending, and their groups
        self._rosters: dict[int, Roster] = {}
        self._turns: dict[int, tuple[int, int]] = {}  # group → how many publications it has got, and who got the latest

    def __contains__(self, topic: int) -> bool:
        return topic in self._members

    def roster(self, topic: int) -> Roster:
        """Who subscribes to a shared topic now."""
        known, version = self._rosters.get(topic), self._version.item(topic)
        if known is None or known.own.version != version:
            known = self._rosters[topic] = self._find(topic, version)
        return known

    def _find(self, topic: int, version: int) -> Roster:
        audience = self._audiences.audience(topic, version)
        members, groups = self._members[topic]
        place = np.minimum(np.searchsorted(members, audience.users), len(members) - 1)
        group = np.where(members[place] == audience.users, groups[place], -1)
        own = group < 0
        found, deserted = list[Group](), 0
        for number in np.unique(group[~own]).tolist():
            users, hosts = audience.users[group == number], audience.brokers[group == number]
            order = np.argsort(users)
            order = order[hosts[order] >= 0]
            if len(order):
                found.append(Group(number, frozen(users[order]), frozen(hosts[order])))
            else:
                deserted += 1
        brokers = audience.brokers[own]
        counts = np.bincount(brokers[brokers >= 0], minlength=self._brokers).astype(np.int32)
        mine = Audience(topic, version, audience.users[own], brokers)
        return Roster(mine, counts, int(np.count_nonzero(brokers < 0)), tuple(found), deserted)

    def choose(self, topic: int, number: int, origin: int, now: float) -> Chosen:
        """Who of each group gets a publication that came to the broker `origin` and leaves its root now (s)."""
        chosen = [self._choose(group, topic, number, origin, now) for group in self.roster(topic).groups]
        return Chosen(tuple(user for user, _ in chosen), tuple(host for _, host in chosen))

    def _choose(self, group: Group, topic: int, number: int, origin: int, now: float) -> tuple[int, int]:
        _, members, hosts = group
        turn, last = self._turns.get(group.number, (0, NO_MEMBER))
        load = np.zeros(len(members), np.int64)
        if self.observe is not None:
            load, away = self.observe(members, now)
            members, hosts, load = members[~away], hosts[~away], load[~away]
            if not len(members):
                return NO_MEMBER, NO_MEMBER
        publisher = self._publications.publisher.item(number)
        view = SharingView(
            now, number, topic, publisher, origin, group.number, members, hosts, frozen(load), turn, last
        )
        place = self._policy.choose(view)
        user, host = members.item(place), hosts.item(place)
        self._turns[group.number] = turn + 1, user
        return user, host
