"""Reconnection of users whose broker has crashed: when they notice, how often they retry, and to which broker they connect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.fabric.clock import CONNECTIONS, Clock
from sim.brokers.fabric.outages import Outages
from sim.overlay.pair_times import PairTimes


@dataclass(frozen=True)
class ReconnectSetting:
    """How users reconnect: `detection` seconds after the crash and, if that fails, after waits that may get longer.

    `to` is the broker that the user was at, or the one that the selection policy chooses. Wait k is `wait` seconds, doubled k times
    if `backoff` is exponential, at most `longest`, and randomly shortened by up to a share `jitter`. A broker accepts
    `connection_rate` users per second, None for no limit.
    """

    detection: float = 0.0
    to: Literal["same", "policy"] = "same"
    backoff: Literal["fixed", "exponential"] = "exponential"
    wait: float = 1.0
    longest: float = 60.0
    jitter: float = 0.0
    connection_rate: float | None = None


RECONNECT = ReconnectSetting()
"""The setting in which users notice at once, and retry the same broker after 1, 2, 4 … seconds."""


class Absentees(Protocol):
    """The users: see HostedUsers."""

    host: NDArray[np.int32]

    def choice(self, user: int) -> int:
        """The broker that the policy chooses for an unconnected user."""

    def connect(self, user: int, broker: int) -> int:
        """Connect an unconnected user to the broker; returns the number of topics to which it subscribes."""


class Counts(Protocol):
    """Counts events by name, and hears who is connected again."""

    when_reconnected: Callable[[int, float], None]

    def count(self, name: str, time: float, amount: int = 1) -> None:
        """Add to the count of this name at a time (s)."""


def nearest_broker(hops: PairTimes, broker: int, among: NDArray[np.int64]) -> int:
    """The broker `among` these to which a hop from a broker takes least; on ties the first."""
    return int(among[np.argmin(hops[broker, among])])


class Hosts(Protocol):
    """The part of the users that says how many there are at each broker: see HostedUsers."""

    numbers: NDArray[np.int64]


def accepting_broker(users: Hosts, outages: Outages, hops: PairTimes, broker: int) -> int:
    """The broker where it accepts users, else the nearest to it that does: with the fewest users, then the lowest, on ties."""
    if outages.accepts(broker):
        return broker
    among = np.flatnonzero(outages.accepting())
    return nearest_broker(hops, broker, among[np.argsort(users.numbers[among], kind="stable")])


class Reconnection:
    """Reconnects users whose broker has crashed.

    Future steps are attempts, and completions of accepted ones; each user has one. If the policy chooses a broker that is down or
    being drained, the user goes to the nearest that accepts it, by the times of `hops` between them (the lowest number on ties).
    While brokers are `busy()`, they accept no users; steps due by then are taken at `go_on()`. `connected(user)` is called for each.
    """

    connected: Callable[[int], None] | None = None

    def __init__(
        self,
        clock: Clock,
        setting: ReconnectSetting,
        users: Absentees,
        outages: Outages,
        hops: PairTimes,
        counts: Counts,
        key: int,
        busy: Callable[[], bool],
    ) -> None:
        self._clock, self._setting, self._users, self._outages = clock, setting, users, outages
        self._hops, self._counts, self._key, self._busy = hops, counts, key, busy
        self._ahead: list[tuple[float, int, int]] = []  # time (s), user, and which of the user's steps it is
        self._step = np.zeros(len(users.host), np.int64)  # the latest step of each user; others are outdated
        self._attempts = np.zeros(len(users.host), np.int64)
        self._failed = np.zeros(len(users.host), np.int64)  # of those since the crash
        self._accepted: dict[int, int] = {}  # user → broker
        self._free = np.zeros(len(outages.down))  # when brokers accept the next (s)
        self._wakes_at = math.inf

    def lose(self, users: Sequence[int], broker: int) -> None:
        """A broker crashes: these users are disconnected, and those whom it had accepted have to retry."""
        self._free[broker] = 0.0
        for user in users:
            self._failed[user] = 0
            self._plan(user, self._clock.now + self._setting.detection)
        self.refuse(broker)

    def refuse(self, broker: int) -> None:
        """The broker accepts no users any more: those whom it had accepted have to retry."""
        for user in sorted(user for user, there in self._accepted.items() if there == broker):
            del self._accepted[user]
            self._fail(user)
        self._watch()

    def _plan(self, user: int, time: float) -> None:
        self._step[user] += 1
        heappush(self._ahead, (time, user, int(self._step[user])))

    def _watch(self) -> None:
        if self._ahead and self._ahead[0][0] < self._wakes_at:
            self._wakes_at = self._ahead[0][0]
            self._clock.call(self._wakes_at, CONNECTIONS, self.go_on)

    def go_on(self) -> None:
        """Take all steps that are due, unless brokers are busy."""
        now = self._clock.now
        if now >= self._wakes_at:
            self._wakes_at = math.inf
        if self._busy():
            return
        while self._ahead and self._ahead[0][0] <= now:
            _, user, step = heappop(self._ahead)
            if step != self._step[user]:
                continue
            broker = self._accepted.pop(user, None)
            if broker is None:
                self._attempt(user)
            else:
                self._connect(user, broker)
        self._watch()

    def _attempt(self, user: int) -> None:
        now, rate = self._clock.now, self._setting.connection_rate
        self._counts.count("connection_attempts", now)
        self._attempts[user] += 1
        broker = self._target(user)
        if not self._outages.accepts(broker):
            self._fail(user)
        elif rate is None:
            self._connect(user, broker)
        else:
            self._free[broker] = accepted = max(now, self._free.item(broker)) + 1.0 / rate
            self._accepted[user] = broker
            self._plan(user, accepted)

    def _target(self, user: int) -> int:
        """The broker of an attempt, by the policy if the former one is leaving; one that accepts nobody if none does."""
        former = ~self._users.host.item(user)
        if self._setting.to == "same" and not self._outages.closed.item(former):
            return former
        broker = self._users.choice(user)
        if not self._outages.accepts(broker) and len(among := np.flatnonzero(self._outages.accepting())):
            broker = nearest_broker(self._hops, broker, among)
        return broker

    def _fail(self, user: int) -> None:
        """The user waits, and tries again."""
        setting, failed = self._setting, int(self._failed[user])
        wait = (
            setting.wait
            if setting.backoff == "fixed"
            else min(math.ldexp(setting.wait, min(failed, 64)), setting.longest)
        )
        if setting.jitter:
            wait *= 1.0 - setting.jitter * keyed_uniform(self._key, user, int(self._attempts[user]))
        self._failed[user] += 1
        self._plan(user, self._clock.now + wait)

    def _connect(self, user: int, broker: int) -> None:
        now = self._clock.now
        self._counts.count("reconnections", now)
        self._counts.count("resubscriptions", now, self._users.connect(user, broker))
        self._counts.when_reconnected(user, now)
        if self.connected is not None:
            self.connected(user)
