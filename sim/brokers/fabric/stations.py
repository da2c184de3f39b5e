"""Stations: brokers that take time, with servers, and a queue for publications and one for control messages in front of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import summed
from sim.brokers.fabric.clock import ARRIVALS, Clock
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.overflow import ARRIVING, OVERFLOWS, dropped
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.fabric.station_windows import StationWindows


@dataclass(frozen=True)
class StationSetting:
    """How brokers take time: a service time is the cost of its message, times a factor with mean 1.

    The costs (s) are `time`, `matching` per counter increment, `send` for each copy to a broker, `send_client` for each to a user and
    `per_byte`; of another broker's acknowledgement only `acknowledgement`, and if that is 0 it is not served. `service` is how the
    factor is drawn, `variation` its coefficient of variation (gamma, lognormal), `histogram` the values that it is proportional to and
    how often each was measured.

    A message that finds a server idle for t takes longer. With a share of t / (t + `wake_up_half`), or 1 if that is 0, it takes
    `wake_up_least` and that share of the rest of `wake_up` (all s) more, and that share of `wake_up_slowdown` times its service time.

    `servers` is how many messages a broker serves at once, `queue` how many publications may wait and `queue_bytes` how many bytes of
    them, None for no limit; `overflow` which of them are dropped if there is no room.
    """

    service: Literal["none", "deterministic", "exponential", "gamma", "lognormal", "histogram"] = "none"
    time: float = 0.0
    matching: float = 0.0
    queue: int | None = None
    wake_up: float = 0.0
    wake_up_half: float = 0.0
    wake_up_least: float = 0.0
    wake_up_slowdown: float = 0.0
    send: float = 0.0
    send_client: float = 0.0
    per_byte: float = 0.0
    acknowledgement: float = 0.0
    variation: float = 1.0
    histogram: tuple[Sequence[float], Sequence[float]] = ((), ())
    servers: int = 1
    queue_bytes: int | None = None
    order: Literal["control-first", "fifo"] = "control-first"
    overflow: str = OVERFLOWS[0]

    @property
    def weighs(self) -> bool:
        """Whether a service time depends on copies, users or bytes."""
        return bool(self.send or self.send_client or self.per_byte)

    @property
    def always_woken(self) -> float:
        """The share of `wake_up` that does not depend on the idle time."""
        return self.wake_up_least / self.wake_up if self.wake_up else 0.0


NO_TIME = StationSetting()
"""The setting in which brokers take no time."""


def stations(clock: Clock, setting: StationSetting, warm_up: float, capacity: NDArray[np.float64]) -> list[Server]:
    """Create a station for each broker; none where brokers take no time."""
    if setting.service == "none":
        return []
    return [Server(clock, setting, warm_up, wake_up) for wake_up in (setting.wake_up / capacity).tolist()]


class Server:
    """A station: each server serves one message at a time, in the order of arrival, control messages first if so set.

    Waits and occupation are measured from `warm_up` on; `wake_up` (s) is the additional service time if a server was idle. Services
    are not interrupted.

    Refused work is assumed to be done whenever a server is idle: so what is left of it, plus what waits, is the backlog of an
    unbounded queue.
    """

    def __init__(self, clock: Clock, setting: StationSetting, warm_up: float, wake_up: float = 0.0) -> None:
        self._clock, self._warm_up = clock, warm_up
        self._wake_up, self._wake_up_half = wake_up, setting.wake_up_half
        self._always_woken, self._slowdown = setting.always_woken, setting.wake_up_slowdown
        self._servers = setting.servers
        self._bounded = setting.queue is not None or setting.queue_bytes is not None
        self._bound = math.inf if setting.queue is None else setting.queue
        self._bytes_bound = math.inf if setting.queue_bytes is None else setting.queue_bytes
        self._control_first, self._overflow = setting.order == "control-first", OVERFLOWS.index(setting.overflow)
        self._control: deque[Message] = deque()  # messages that go first
        self._queue: deque[Message] = deque()
        self._waiting = 0  # publications, where the queue is bounded
        self._bytes = 0  # of these
        self._serving: list[Message] = []
        self._completed = (self._done,)
        self._last = warm_up
        self.served = 0  # messages that arrived after the warm-up and were taken into service
        self.wait = 0.0  # their waits, s
        self.control_served = 0  # control messages among them
        self.control_wait = 0.0  # s
        self.offered = 0.0  # the services of all that arrived after the warm-up, s, mean over servers once it is closed
        self._most_waiting = 0  # messages, in the present window
        self.busy = 0.0  # s, mean over servers once it is closed
        self.waiting_area = 0.0  # ∫ messages waiting dt, s
        self.dropped = 0
        self._since = 0.0  # when a service last began or ended, s
        self._refused = 0.0  # refused work that is not yet assumed to be done, s
        self.behind_since = 0.0  # when a server last had nothing to do, as if nothing had been refused, s
        self.squares = 0.0  # the sum of the squared service times that have arrived since, or were in service then, s²
        self.held = 0  # messages waiting or in service at the end
        # work left at the end, including refused work, mean over servers; work not refused only if no server is idle, s
        self.backlog = 0.0

    @property
    def present(self) -> tuple[int, int]:
        """The messages that wait, and those in service."""
        return len(self._control) + len(self._queue), len(self._serving)

    def accept(self, message: Message, service: float, control: bool = False) -> bool:
        """Accept a message that arrives now and needs `service` seconds; returns whether it was accepted.

        Messages that do not fit the queue, this one or others, are dropped: their `dropped` is called.
        """
        message.arrived = self._clock.now
        self._integrate()
        if len(self._serving) < self._servers:
            idle = message.arrived - self._since
            self._catch_up(message.arrived)
            message.service = service = service + self._waking_up(idle, service)
            message.control = control
            self._arrive(message.arrived, service)
            self._serve(message)
            return True
        message.service, message.control = service, control
        self._arrive(message.arrived, service)
        if not control and self._bounded and not self._makes_room(message.size):
            self._drop(message)
            return False
        (self._control if control and self._control_first else self._queue).append(message)
        self._most_waiting = max(self._most_waiting, len(self._control) + len(self._queue))
        return True

    def _waking_up(self, idle: float, service: float) -> float:
        """What a service (s) takes in addition where one last began or ended this long ago (s)."""
        half, always = self._wake_up_half, self._always_woken
        share = idle / (idle + half) if half else 1.0
        return self._wake_up * (always + (1.0 - always) * share) + service * self._slowdown * share

    def _arrive(self, now: float, service: float) -> None:
        """Account for arriving work (s)."""
        self.squares += service * service
        if now >= self._warm_up:
            self.offered += service

    def _makes_room(self, size: int) -> bool:
        """Let a publication of `size` bytes wait, dropping others if necessary; returns whether it may."""
        if self._waiting >= self._bound or self._bytes + size > self._bytes_bound:
            if dropped(self._overflow, 1) == ARRIVING or self._bound == 0 or size > self._bytes_bound:
                return False
            while self._waiting >= self._bound or self._bytes + size > self._bytes_bound:
                self._drop(self._waiting_at(dropped(self._overflow, self._waiting)))
        self._waiting += 1
        self._bytes += size
        return True

    def _waiting_at(self, before: int) -> Message:
        """Remove the publication from the queue that `before` others have preceded."""
        places = (place for place, message in enumerate(self._queue) if not message.control)
        place = next(islice(places, before, None))
        message = self._queue[place]
        del self._queue[place]
        self._waiting -= 1
        self._bytes -= message.size
        return message

    def _drop(self, message: Message) -> None:
        self._refused += message.service
        if self._clock.now >= self._warm_up:
            self.dropped += 1
        message.dropped(message)

    def _catch_up(self, now: float) -> None:
        """A server has been idle up to `now`."""
        self._work_off(now)
        if not self._refused:
            self.behind_since = now
            self.squares = (
                summed(message.service * message.service for message in self._serving) if self._serving else 0.0
            )

    def _work_off(self, now: float) -> None:
        """Let idle servers do refused work, since a service last began or ended."""
        self._refused = max(self._refused - (self._servers - len(self._serving)) * (now - self._since), 0.0)
        self._since = now

    def _serve(self, message: Message) -> None:
        self._serving.append(message)
        now = self._clock.now
        if message.arrived >= self._warm_up:
            wait = now - message.arrived
            self.served += 1
            self.wait += wait
            if message.control:
                self.control_served += 1
                self.control_wait += wait
        message.callbacks = self._completed
        message.done_at = now + message.service
        self._clock.at(message.done_at, ARRIVALS, message)

    def _done(self, message: Message) -> None:
        self._integrate()
        if self._servers == 1:
            self._since = message.done_at
            self._serving.clear()
        else:
            self._work_off(message.done_at)
            self._serving.remove(message)
        if self._control:
            self._serve(self._control.popleft())
        elif self._queue:
            following = self._queue.popleft()
            if self._bounded and not following.control:
                self._waiting -= 1
                self._bytes -= following.size
            self._serve(following)
        message.handled(message)

    def crash(self) -> tuple[list[Message], list[Message]]:
        """The broker crashes: publications and control messages that it held, those in service first, then by their arrival.

        What is left on the clock of those in service carries nothing any more, so they are other objects here.
        """
        self._integrate()
        held = [message.set_aside() for message in self._serving] + [*self._control, *self._queue]
        for messages in (self._serving, self._control, self._queue):
            messages.clear()
        self._waiting = self._bytes = 0
        self._refused = self.squares = 0.0
        self._since = self.behind_since = self._clock.now
        return [m for m in held if not m.control], [m for m in held if m.control]

    def _integrate(self) -> None:
        now = self._clock.now
        if now > self._last:
            self.waiting_area += (len(self._control) + len(self._queue)) * (now - self._last)
            self.busy += len(self._serving) * (now - self._last)
            self._last = now

    def look(self, now: float) -> tuple[float, ...]:
        """The sums so far, as LOOKED_AT; a window ends now."""
        since, waiting = max(now - self._last, 0.0), len(self._control) + len(self._queue)
        busy, area = self.busy + len(self._serving) * since, self.waiting_area + waiting * since
        most, self._most_waiting = self._most_waiting, waiting
        served = self.served, self.control_served, self.wait, self.control_wait
        return (*served, busy, area, self.offered, self.dropped, most)

    def close(self, horizon: float) -> list[Message]:
        """Account for the time up to the end; returns the waiting messages (those in service are on the clock)."""
        if horizon > self._last:
            self.waiting_area += (len(self._control) + len(self._queue)) * (horizon - self._last)
            self.busy += len(self._serving) * (horizon - self._last)
            self._last = horizon
        waiting = [*self._control, *self._queue]
        self.held = len(waiting) + len(self._serving)
        if len(self._serving) < self._servers:
            self._catch_up(horizon)
            self.backlog = self._refused
        else:
            self.backlog = self._refused + summed(message.service for message in waiting)
            for message in self._serving:
                self.backlog = self.backlog + message.done_at - horizon
        self.busy /= self._servers
        self.offered /= self._servers
        self.backlog /= self._servers
        self.squares /= self._servers * self._servers
        return waiting


def station_record(servers: Sequence[Server], windows: StationWindows) -> StationRecord:
    """The record of closed stations, with windows."""
    columns = ([getattr(server, name) for server in servers] for name in StationRecord.measured())
    return StationRecord(windows, *map(np.array, columns))
