"""Changes from the workload: users subscribe, unsubscribe and move, unless their brokers hold that back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.clock import CHANGES, Clock, Feed
from sim.workloads.format.workload import Workload

Enact = Callable[[list[int], list[int]], None]
"""Enacts rows of subscription events and of movements that belong to one instant."""


class Changes:
    """Feeds what changes, instant by instant, to `enact`; `host` (users) is the live broker of each user."""

    def __init__(self, clock: Clock, workload: Workload, host: NDArray[np.int32], brokers: int, enact: Enact) -> None:
        self._clock, self._host, self._enact = clock, host, enact
        self._events, self._movements = workload.subscription_events, workload.movements
        self._event = self._movement = 0
        self._holding = False
        self._holds = np.zeros(brokers, np.bool_)  # brokers that hold back what changes of their users
        self._held: list[tuple[list[int], list[int]]] = []  # rows of events and of movements, of one instant each

    def start(self) -> None:
        """Start feeding changes."""
        Feed(self._clock, CHANGES, self._change).start(self._next_change())

    def _next_change(self) -> float | None:
        rows = (self._events.time, self._event), (self._movements.time, self._movement)
        return min((float(times[row]) for times, row in rows if row < len(times)), default=None)

    def _change(self) -> float | None:
        """Everything that changes at this instant, except what brokers hold back."""
        now = self._clock.now
        times, moves = self._events.time, self._movements.time
        changing: list[int] = []
        moving: list[int] = []
        while self._event < len(times) and times[self._event] == now:
            changing.append(self._event)
            self._event += 1
        while self._movement < len(moves) and moves[self._movement] == now:
            moving.append(self._movement)
            self._movement += 1
        if self._holding:
            changing, held = self._divided(changing, self._events.user)
            moving, held_moves = self._divided(moving, self._movements.user)
            self._held.append((held, held_moves))
        if changing or moving:
            self._enact(changing, moving)
        return self._next_change()

    def _divided(self, rows: list[int], users: NDArray[np.int32]) -> tuple[list[int], list[int]]:
        """The rows that may be enacted, and those that brokers hold back."""
        held = [bool(self._holds[self._host[users[row]]]) for row in rows]
        parts = [[row for row, back in zip(rows, held, strict=True) if back == which] for which in (False, True)]
        return parts[0], parts[1]

    def hold(self, broker: int) -> None:
        """The broker holds back what changes of its users from now on, until `release`."""
        self._holds[broker] = self._holding = True

    def release(self) -> None:
        """Enact what brokers have held back, instant by instant in order; none holds anything back any more."""
        self._holds[:] = self._holding = False
        held, self._held = self._held, []
        for changing, moving in held:
            if changing or moving:
                self._enact(changing, moving)
