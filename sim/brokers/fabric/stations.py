"""Stations: brokers that take time, one server each, with a queue for publications and one for control messages in front of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness import exponential
from sim.brokers.fabric.clock import ARRIVALS, Clock, Scheduled
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord


@dataclass(frozen=True)
class StationSetting:
    """How brokers take time: the kind of service, its mean `time` (s), and what `matching` adds for every counter moved (s).

    `queue` is how many publications may wait, None for any number.
    """

    service: Literal["none", "deterministic", "exponential"] = "none"
    time: float = 0.0
    matching: float = 0.0
    queue: int | None = None


NO_TIME = StationSetting()
"""Brokers take no time."""

ServiceTimes = Callable[[int, int, int, int], float]
"""The seconds that a message's service takes, by (number of the message, broker, stage of its way, counters moved)."""


def stations(clock: Clock, setting: StationSetting, warm_up: float, brokers: int) -> list[Server]:
    """A server for each broker; none where brokers take no time."""
    return [] if setting.service == "none" else [Server(clock, setting, warm_up) for _ in range(brokers)]


def service_times(setting: StationSetting, capacity: NDArray[np.float64], key: int) -> ServiceTimes:
    """Service times that belong to what is served, where, and at which stage; those of a broker are divided by its capacity."""
    mean: list[float] = (setting.time / capacity).tolist()
    each: list[float] = (setting.matching / capacity).tolist()

    def always(number: int, broker: int, stage: int, increments: int) -> float:
        return mean[broker] + increments * each[broker]

    def drawn(number: int, broker: int, stage: int, increments: int) -> float:
        return always(number, broker, stage, increments) * exponential(key, number, broker << 16 | stage)

    return drawn if setting.service == "exponential" else always


class Server(Scheduled):
    """Serves one message at a time, first come first served.

    Waits and occupation are measured from `warm_up` on. A message in service is finished before a control message is taken.

    Work that is refused is taken to be done whenever the server is idle: so what is left of it, and what waits, is together what would
    wait if the queue had no bound.
    """

    def __init__(self, clock: Clock, setting: StationSetting, warm_up: float) -> None:
        self._clock, self._bound, self._warm_up = clock, setting.queue, warm_up
        self._control: deque[Message] = deque()
        self._queue: deque[Message] = deque()
        self._serving: Message | None = None
        self.callbacks = None
        self._last = warm_up
        self.served = 0  # messages that arrived after the warm-up and were taken into service
        self.wait = 0.0  # their waits, s
        self.busy = 0.0  # s
        self.waiting_area = 0.0  # ∫ messages waiting dt, s
        self.dropped = 0
        self._done_at = 0.0  # when the service ends, or the last one ended, s
        self._refused = 0.0  # work that was refused and is not taken to be done, s
        self.behind_since = 0.0  # when there was last nothing to do, as if nothing had been refused, s
        self.squares = 0.0  # the sum of the squared service times that have arrived since, s²
        self.held = 0  # messages waiting or in service at the end
        self.backlog = 0.0  # work left at the end, refused one included, s

    def accept(self, message: Message, service: float, control: bool = False) -> bool:
        """Take a message that arrives now and needs `service` seconds; whether it was taken.

        What does not fit the queue any more, the message itself or another, is dropped: it is handed to its `dropped`.
        """
        message.arrived, message.service = self._clock.now, service
        self._integrate()
        if self._serving is None:
            self._catch_up(message.arrived)
            self.squares += service * service
            self._serve(message)
            return True
        self.squares += service * service
        if control:
            self._control.append(message)
        elif self._bound is None or len(self._queue) < self._bound:
            self._queue.append(message)
        else:
            self._drop(message)
            return False
        return True

    def _drop(self, message: Message) -> None:
        self._refused += message.service
        if self._clock.now >= self._warm_up:
            self.dropped += 1
        message.dropped(message)

    def _catch_up(self, now: float) -> None:
        """The server has been idle up to `now`."""
        self._refused -= now - self._done_at
        if self._refused <= 0.0:
            self._refused, self.behind_since, self.squares = 0.0, now, 0.0

    def _serve(self, message: Message) -> None:
        self._serving = message
        now = self._clock.now
        if message.arrived >= self._warm_up:
            self.served += 1
            self.wait += now - message.arrived
        self.callbacks = (self._done,)
        self._done_at = now + message.service
        self._clock.at(self._done_at, ARRIVALS, self)

    def _done(self, _: Server) -> None:
        self._integrate()
        message = self._serving
        assert message is not None
        self._serving = None
        waiting = self._control or self._queue
        if waiting:
            self._serve(waiting.popleft())
        message.handled(message)

    def _integrate(self) -> None:
        now = self._clock.now
        if now > self._last:
            self.waiting_area += (len(self._control) + len(self._queue)) * (now - self._last)
            if self._serving is not None:
                self.busy += now - self._last
            self._last = now

    def close(self, horizon: float) -> list[Message]:
        """Account for the time up to the end; the messages that wait or are in service then."""
        if horizon > self._last:
            self.waiting_area += (len(self._control) + len(self._queue)) * (horizon - self._last)
            self.busy += (horizon - self._last) if self._serving is not None else 0.0
            self._last = horizon
        held = [*self._control, *self._queue]
        waiting = sum(message.service for message in held)
        if self._serving is None:
            self._catch_up(horizon)
            self.backlog = self._refused
        else:
            self.backlog = self._refused + waiting + self._done_at - horizon
            held.insert(0, self._serving)
        self.held = len(held)
        return held


def station_record(servers: Sequence[Server]) -> StationRecord:
    """What the servers did, once they are closed."""
    columns = ([getattr(server, name) for server in servers] for name in StationRecord._fields)
    return StationRecord(*map(np.array, columns))
