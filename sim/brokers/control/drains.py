"""Drains: brokers that are emptied of users, one at a time, and then taken down, or leave."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim.brokers.fabric.clock import DRAINS, Clock
from sim.brokers.fabric.outages import Outages
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.reconnect import accepting_broker
from sim.brokers.users.users import HostedUsers
from sim.overlay.pair_times import PairTimes
from sim.workloads.faults.fault import Drain

Row = tuple[float, str, int, float]
"""What happened when, to which broker, and a value."""


class Maintenance(NamedTuple):
    """The functions of the network that drains call, each with a broker; `busy()` returns whether nothing may change now.

    `refuse` makes a broker accept no users; `take_down` and `bring_up` stop and start it. `hand_over` routes around a leaving broker
    and returns how many topics have moved to another root; `stays` returns for how long (s) it must stay up, or 0.
    """

    refuse: Callable[[int], None]
    hand_over: Callable[[int], int]
    stays: Callable[[int], float]
    take_down: Callable[[int], None]
    bring_up: Callable[[int], None]
    busy: Callable[[], bool]


class Drains:
    """Drains brokers in the order in which they are added, each when the one before is over.

    A broker that is drained accepts no users. Those that it has move elsewhere at the drain's rate, lowest number first: to the broker
    that the policy chooses or, if that accepts none, the nearest to it that does, by the times of `hops` between them (with the
    fewest users, then the lowest number, on ties). `grace` seconds after the last has left it goes down, and its drain is over
    when it is up again, or at once if it does not return. One that leaves takes nothing from outside meanwhile, is routed around
    by then, and goes down after another `grace` seconds, once all that a guarantee makes it keep is acknowledged.
    """

    def __init__(
        self,
        clock: Clock,
        users: HostedUsers,
        outages: Outages,
        hops: PairTimes,
        recorder: Recorder,
        maintenance: Maintenance,
    ) -> None:
        self._clock, self._users, self._outages, self._hops = clock, users, outages, hops
        self._recorder, self._maintenance = recorder, maintenance
        self._next: deque[tuple[int, Drain]] = deque()
        self._now: tuple[int, Drain] | None = None
        self._since = 0.0
        self._moved = 0  # topics of the broker that is leaving
        self._leaving: deque[int] = deque()  # users who were at the broker when its drain began
        self._waits: Callable[[], None] | None = None  # a step that could not be taken
        self.rows: list[Row] = []

    def add(self, drain: Drain) -> None:
        """Drain these brokers, after those that were added before."""
        self._next += [(broker, drain) for broker in drain.brokers]
        if self._now is None:
            self._begin()

    def go_on(self) -> None:
        """Take a step that had to wait."""
        if self._waits is not None:
            step, self._waits = self._waits, None
            self._plan(0.0, step)

    def _plan(self, wait: float, step: Callable[[], None]) -> None:
        self._clock.call(self._clock.now + wait, DRAINS, step)

    def _note(self, what: str, broker: int, value: float) -> None:
        self.rows.append((self._clock.now, what, broker, value))

    def _begin(self) -> None:
        """Begin to drain the next broker, if there is one."""
        self._now = None
        if not self._next:
            return
        broker, drain = self._now = self._next.popleft()
        self._outages.draining[broker] = True
        if drain.leaves:
            self._outages.close(broker, True)
        self._maintenance.refuse(broker)
        self._since = self._clock.now
        self._leaving = deque(np.flatnonzero(self._users.host == broker).tolist())
        self._note("leave" if drain.leaves else "drain", broker, len(self._leaving))
        self._plan(0.0 if drain.rate is None else 1.0 / drain.rate, self._step)

    def _step(self) -> None:
        """Move the next user, or all of them, and see whether the broker is drained."""
        assert self._now is not None
        broker, drain = self._now
        while self._stay(broker):
            if self._maintenance.busy() or not self._outages.accepting().any():
                self._waits = self._step
                return
            user = self._leaving.popleft()
            self._users.connect(
                user, accepting_broker(self._users, self._outages, self._hops, self._users.choice(user))
            )
            self._recorder.count("moved_users" if drain.leaves else "drained_users", self._clock.now)
            if drain.rate is not None:
                break
        if self._stay(broker):
            assert drain.rate is not None
            self._plan(1.0 / drain.rate, self._step)
            return
        took = self._clock.now - self._since
        self._note("drained", broker, took)
        self._recorder.count("drained_brokers", self._clock.now)
        self._recorder.count("drain_time_sum", self._clock.now, took)
        self._plan(drain.grace, self._hand_over if drain.leaves else self._leave)

    def _stay(self, broker: int) -> bool:
        """Whether users are still at the broker; those who have gone by themselves are forgotten."""
        while self._leaving and self._users.host.item(self._leaving[0]) != broker:
            self._leaving.popleft()
        return bool(self._leaving)

    def _hand_over(self) -> None:
        """Let the overlay route around the broker, which stays up meanwhile."""
        assert self._now is not None
        if self._maintenance.busy():
            self._waits = self._hand_over
            return
        broker, drain = self._now
        self._moved = self._maintenance.hand_over(broker)
        self._plan(drain.grace, self._leave)

    def _leave(self) -> None:
        """Take the drained broker down."""
        assert self._now is not None
        if self._maintenance.busy():
            self._waits = self._leave
            return
        broker, drain = self._now
        if drain.leaves and (stays := self._maintenance.stays(broker)):
            self._plan(stays, self._leave)
            return
        self._note("left" if drain.leaves else "down", broker, self._moved)
        self._moved = 0
        self._maintenance.take_down(broker)
        if math.isinf(drain.down):
            self._outages.draining[broker] = drain.leaves
            self._begin()
        else:
            self._plan(drain.down, self._return)

    def _return(self) -> None:
        """Bring the broker up again."""
        assert self._now is not None
        broker, _ = self._now
        self._outages.draining[broker] = False
        self._note("up", broker, 0.0)
        self._maintenance.bring_up(broker)
        self._begin()
