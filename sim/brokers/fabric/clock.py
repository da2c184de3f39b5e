"""The simulation clock: SimPy's environment, able to schedule at an absolute time, and in a fixed order at equal times.

The one module that knows SimPy's private fields. Its heap holds (time, priority, number, event), and of an event it needs `callbacks`
and `_ok` alone. An entry made here may be used again and again, and comes at exactly the time that was asked for: timeouts add a
delay to now, which may miss by a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy

# What happens first at equal times; SimPy keeps the order of scheduling among equals.
FAILURES, OFFLOADING, CONTROL, CHANGES, CONNECTIONS, PUBLICATIONS, CONTROL_ARRIVALS, ARRIVALS, BARRIERS = range(1, 10)
CATCHING_UP = 0  # ahead of all of them, SimPy's own events among these: what is known ahead is enacted before anything else happens
LOOKS = -1  # ahead of all: a look at the run, which changes nothing; one at a time


class Scheduled:
    """What the clock calls at a time: each of `callbacks`, with this object."""

    __slots__ = ()
    _ok = True
    callbacks: tuple[Callable[[Any], None], ...] | None


class Clock(simpy.Environment):
    """An environment in which `at` schedules something at exactly the given time."""

    at: Callable[[float, int, Scheduled | simpy.Event], None]
    """`at(time, priority, event)` has the event's callbacks called at a time (s)."""

    def __init__(self) -> None:
        super().__init__()
        queue: Any = self._queue
        number = self._eid.__next__

        # called for every hop: a closure finds the heap sooner than a method does
        def at(time: float, priority: int, event: Scheduled | simpy.Event) -> None:
            heappush(queue, (time, priority, number(), event))

        self.at = at
        self._until = math.inf  # nothing happens from then on

    def advance(self, until: float) -> None:
        """Have all that is due before `until` (s) happen; as `run`, without an event to stop at and a method for each step."""
        queue: Any = self._queue
        self._until = until
        while queue and queue[0][0] < until:
            self._now, _, _, event = heappop(queue)
            callbacks, event.callbacks = event.callbacks, None
            for callback in callbacks:
                callback(event)
            if not event._ok and not hasattr(event, "_defused"):
                raise event._value
        self._now = until

    def until(self, time: float, priority: int) -> simpy.Event:
        """An event for processes to wait for, at exactly the given time."""
        event = self.event()
        event._ok, event._value = True, None
        self.at(time, priority, event)
        return event

    def call(self, time: float, priority: int, action: Callable[[], None]) -> None:
        """Call `action()` once, at `time` (s)."""
        Feed(self, priority, action).start(time)

    def peek(self) -> float:
        """When the next event is due that may change anything, or the end if that comes first."""
        queue = self._queue
        if not queue:
            return self._until
        if queue[0][1] == LOOKS:
            return min([self._until, *(time for time, *_ in queue[1:3])])
        return min(queue[0][0], self._until)

    def peek_beside_publications(self) -> float:
        """When the next event is due that is no publication and may change anything, or the end if that comes first."""
        # A feed of publications and a look are the two that may be first; what comes after them is among the first seven of a heap.
        first = (time for time, priority, *_ in self._queue[:7] if priority not in (LOOKS, PUBLICATIONS))
        return min([self._until, *first])

    def pending(self) -> list[Any]:
        """All events that are still to come, as (time, priority, number, event), soonest first."""
        return sorted(self._queue, key=lambda entry: entry[:3])


class Feed(Scheduled):
    """Calls `step()` at the times it returns, None ending it: one event object however many rows a feed has."""

    def __init__(self, clock: Clock, priority: int, step: Callable[[], float | None]) -> None:
        self._clock, self._priority, self._step = clock, priority, step

    def start(self, time: float | None) -> None:
        """Take the first step at `time`; None where there is nothing to feed."""
        if time is not None:
            self.callbacks = (self._fire,)
            self._clock.at(time, self._priority, self)

    def _fire(self, _: Feed) -> None:
        self.start(self._step())
