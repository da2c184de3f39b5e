"""Changes from the workload: users subscribe, unsubscribe and move, unless their brokers hold this back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.clock import CATCHING_UP, CHANGES, Clock, Feed
from sim.workloads.format.workload import Workload


class Enacting(Protocol):
    """The interface for enacting changes, see HostedUsers."""

    host: NDArray[np.int32]

    def enact(self, changing: list[int], moving: list[int]) -> None:
        """Enact rows of subscription events and of movements that belong to one instant, now."""

    def look_ahead(self, event: int, movement: int, until: float) -> tuple[int, int]:
        """Look ahead at changes from these rows on and before `until` (s); returns the first rows to be enacted one by one."""

    def catch_up(self) -> None:
        """Enact the quiet changes that are due."""


class Changes:
    """Feeds changes, instant by instant, to `users`, except quiet ones, which are known ahead.

    The look-ahead reaches up to the clock's next event other than publications. `follows()` tells whether the engine allows that:
    it catches up subscriptions itself, and has nothing else on the clock.
    """

    def __init__(
        self, clock: Clock, workload: Workload, users: Enacting, brokers: int, follows: Callable[[], bool]
    ) -> None:
        self._clock, self._users, self._follows = clock, users, follows
        self._events, self._movements = workload.subscription_events, workload.movements
        self._event = self._movement = 0
        self._holding = False
        self._holds = np.zeros(brokers, np.bool_)  # brokers that hold back their users' changes
        self._held: list[tuple[list[int], list[int]]] = []  # rows of events and of movements, one pair per instant

    def start(self) -> None:
        """Start feeding changes."""
        Feed(self._clock, CHANGES, self._change).start(self._next_change())

    def _next_change(self) -> float | None:
        rows = (self._events.time, self._event), (self._movements.time, self._movement)
        return min((times.item(row) for times, row in rows if row < len(times)), default=None)

    def _change(self) -> float | None:
        """Enact all changes of this instant, except those that brokers hold back."""
        now = self._clock.now
        times, moves = self._events.time, self._movements.time
        changing: list[int] = []
        moving: list[int] = []
        while self._event < len(times) and times.item(self._event) == now:
            changing.append(self._event)
            self._event += 1
        while self._movement < len(moves) and moves.item(self._movement) == now:
            moving.append(self._movement)
            self._movement += 1
        if self._holding:
            changing, held = self._divided(changing, self._events.user)
            moving, held_moves = self._divided(moving, self._movements.user)
            self._held.append((held, held_moves))
        if changing or moving:
            self._users.enact(changing, moving)
        if not self._holding and self._follows():
            self._look_ahead()
        return self._next_change()

    def _look_ahead(self) -> None:
        here, until = (self._event, self._movement), self._clock.peek_beside_publications()
        self._event, self._movement = self._users.look_ahead(*here, until)
        if (self._event, self._movement) != here:
            following = self._next_change()
            if following is None or following >= until:
                self._clock.call(until, CATCHING_UP, self._users.catch_up)

    def _divided(self, rows: list[int], users: NDArray[np.int32]) -> tuple[list[int], list[int]]:
        """Divide rows into those to enact, and those that brokers hold back."""
        hosts = [self._users.host.item(users.item(row)) for row in rows]
        held = [host >= 0 and bool(self._holds[host]) for host in hosts]
        parts = [[row for row, back in zip(rows, held, strict=True) if back == which] for which in (False, True)]
        return parts[0], parts[1]

    def hold(self, broker: int) -> None:
        """Let the broker hold back its users' changes until `release`."""
        self._holds[broker] = self._holding = True

    def let_go(self, users: Sequence[int]) -> None:
        """Enact what a broker that has crashed had held back of these users, who are connected to none now."""
        held, gone = self._held, np.zeros(len(self._users.host), np.bool_)
        gone[users] = True
        self._held = []
        for changing, moving in held:
            parts = (
                [row for row in changing if gone[self._events.user[row]]],
                [row for row in moving if gone[self._movements.user[row]]],
            )
            self._held.append(
                ([row for row in changing if row not in parts[0]], [row for row in moving if row not in parts[1]])
            )
            if parts[0] or parts[1]:
                self._users.enact(*parts)

    def release(self) -> None:
        """Enact what brokers have held back, instant by instant in order, and end the holding back."""
        self._holds[:] = self._holding = False
        held, self._held = self._held, []
        for changing, moving in held:
            if changing or moving:
                self._users.enact(changing, moving)
