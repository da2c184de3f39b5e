"""The simulation clock: SimPy's environment, extended by scheduling at absolute times, in a fixed order at equal times.

The only module that uses SimPy's private fields. Its heap has entries (time, priority, number, event), and an event needs only
`callbacks` and `_ok`. Events made here are reusable, and occur at exactly the given time, whereas timeouts add a delay to now,
which may be off by a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush

# Any: SimPy does not say what is in its queue, nor what callbacks take.
from typing import Any

import simpy

# the order at equal times; SimPy keeps the order of scheduling among equal priorities
FAILURES, OFFLOADING, CONTROL, CHANGES, CONNECTIONS, DRAINS = range(1, 7)
RETAINED_MESSAGES, WAITING_PUBLICATIONS, PUBLICATIONS, CONTROL_ARRIVALS, ARRIVALS, BARRIERS = range(7, 13)
CATCHING_UP = 0  # before all of these and SimPy's own events: changes known ahead are enacted before anything else
LOOKS = -1  # before everything: an observation of the run, which changes nothing; one at a time


class Scheduled:
    """An event: at its time, the clock calls each of `callbacks` with this object."""

    __slots__ = ()
    _ok = True
    callbacks: tuple[Callable[[Any], None], ...] | None


class Clock(simpy.Environment):
    """An environment in which `at` schedules something at exactly the given time."""

    at: Callable[[float, int, Scheduled | simpy.Event], None]
    """`at(time, priority, event)` schedules the event's callbacks at a time (s)."""

    def __init__(self) -> None:
        super().__init__()
        queue: Any = self._queue
        number = self._eid.__next__

        # called for every hop: a closure accesses the heap faster than a method
        def at(time: float, priority: int, event: Scheduled | simpy.Event) -> None:
            heappush(queue, (time, priority, number(), event))

        self.at = at
        self._until = math.inf  # nothing happens after the end

    def advance(self, until: float) -> None:
        """Process all events before `until` (s); like `run`, without a stop event and a method call per step."""
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
        """When the next event that may change anything is due, or the end if that comes first."""
        queue = self._queue
        if not queue:
            return self._until
        if queue[0][1] == LOOKS:
            return min([self._until, *(time for time, *_ in queue[1:3])])
        return min(queue[0][0], self._until)

    def peek_beside_publications(self) -> float:
        """When the next event other than publications that may change anything is due, or the end if that comes first."""
        # only a feed of publications and an observation may come before it, so it is among the first seven entries of a heap
        first = (time for time, priority, *_ in self._queue[:7] if priority not in (LOOKS, PUBLICATIONS))
        return min([self._until, *first])

    def pending(self) -> list[Any]:
        """All scheduled events, as (time, priority, number, event), soonest first."""
        return sorted(self._queue, key=lambda entry: entry[:3])


class Feed(Scheduled):
    """Calls `step()` at the times it returns, until that is None; with a single event object for any number of rows."""

    def __init__(self, clock: Clock, priority: int, step: Callable[[], float | None]) -> None:
        self._clock, self._priority, self._step = clock, priority, step

    def start(self, time: float | None) -> None:
        """Take the first step at `time`; None where there is nothing to feed."""
        if time is not None:
            self.callbacks = (self._fire,)
            self._clock.at(time, self._priority, self)

    def _fire(self, _: Feed) -> None:
        self.start(self._step())
