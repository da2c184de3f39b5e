"""Brokers that join as planned, and the users who move to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sim.brokers.control.drains import Row
from sim.brokers.fabric.clock import DRAINS, Clock
from sim.brokers.fabric.outages import Outages
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.users import HostedUsers
from sim.workloads.faults.fault import Join


class JoiningBrokers:
    """Moves users to brokers that have joined, to each at the rate of its own, and notes what happened in `rows`.

    These are the users for whom the policy chooses the broker, each asked when it is its turn, the lowest number first; or, one by
    one, the lowest of the broker with the most users (the lowest on ties), until none has more than one user more than the broker.
    Steps wait while brokers are `busy()`, or the broker accepts no users.
    """

    def __init__(
        self, clock: Clock, users: HostedUsers, outages: Outages, recorder: Recorder, busy: Callable[[], bool]
    ) -> None:
        self._clock, self._users, self._outages, self._recorder, self._busy = clock, users, outages, recorder, busy
        self._waiting: list[Callable[[], None]] = []  # steps that could not be taken
        self.rows: list[Row] = []

    def add(self, join: Join, topics: int) -> None:
        """A broker has joined, and become the root of this number of topics: users begin to move there."""
        self.rows.append((self._clock.now, "join", join.broker, topics))
        users, moved = self._chosen(join) if join.users == "policy" else self._levelled(join), 0
        wait = 0.0 if join.rate is None else 1.0 / join.rate

        def step() -> None:
            nonlocal moved
            if self._busy() or not self._outages.accepts(join.broker):
                self._waiting.append(step)
                return
            for user in users:
                self._users.connect(user, join.broker)
                self._recorder.count("moved_users", self._clock.now)
                moved += 1
                if join.rate is not None:
                    self._clock.call(self._clock.now + wait, DRAINS, step)
                    return
            self.rows.append((self._clock.now, "joined", join.broker, moved))

        self._clock.call(self._clock.now + wait, DRAINS, step)

    def go_on(self) -> None:
        """Take steps that had to wait."""
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            self._clock.call(self._clock.now, DRAINS, step)

    def _chosen(self, join: Join) -> Iterator[int]:
        """The connected users for whom the policy chooses the broker."""
        for user in range(len(self._users.host)):
            if 0 <= self._users.host.item(user) != join.broker and self._users.choice(user) == join.broker:
                yield user

    def _levelled(self, join: Join) -> Iterator[int]:
        """Users of brokers that have more of them."""
        others = np.array(sorted(join.among - {join.broker}), np.int64)
        numbers = self._users.numbers
        while join.users == "share" and len(others):
            most = int(others[np.argmax(numbers[others])])
            if numbers[most] - numbers[join.broker] < 2:
                return
            yield int(np.argmax(self._users.host == most))
