"""The leg from a broker to a user, simulated for one user after the other, event by event."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

CRASH = 0.5  # after what may be sent at that instant, before what comes


@dataclass
class Way:
    """The limits of a user's leg: latency there and back (s), rate (bytes/s) and messages in flight (None: unlimited)."""

    latency: float = 0.0
    rate: float | None = None
    window: int | None = None


def _same(number: int, user: int) -> float:
    return 1.0


@dataclass
class Clients:
    """`way(user)`; `factor(number, user)` multiplies the latency; how many messages and bytes may wait for a user, and what happens
    where they are more; `until` is what the delays of users count to."""

    way: Callable[[int], Way] = lambda user: Way()
    factor: Callable[[int, int], float] = _same
    buffer: int | None = None
    buffer_bytes: int | None = None
    overflow: str = "drop-newest"
    reconnect_after: float = 0.0
    until: str = "served"


@dataclass
class Coming:
    """A publication that comes for a user: when its broker had it and had served it, its bytes, and what became of it."""

    number: int
    arrived: float
    served: float
    size: int
    fate: str | None = None  # None: on its way, or waiting
    sent: float | None = None
    reached: float | None = None

    def moment(self, until: str) -> float:
        """The time of its delivery, as `until` defines it."""
        found = {"broker": self.arrived, "served": self.served, "client": self.reached}[until]
        assert found is not None
        return found


class User:
    """Runs at once: what becomes of each is written into `comings`; `cut_off` is when the user was. What waits when its broker crashes
    is lost; what may be sent then has been sent before."""

    def __init__(
        self, clients: Clients, user: int, comings: list[Coming], horizon: float, crashes: Iterable[float] = ()
    ) -> None:
        self.clients, self.user, self.way, self.horizon = clients, user, clients.way(user), horizon
        self.waiting: deque[Coming] = deque()
        self.acknowledged: list[float] = []  # when those that were sent are
        self.free = self.last = self.away_until = 0.0
        self.cut_off: list[float] = []
        self.waited = False
        order = count()
        self.heap: list[tuple[float, float, int, Coming | None]] = []
        self.push = lambda time, rank, coming: heapq.heappush(self.heap, (time, rank, next(order), coming))
        for coming in sorted(comings, key=lambda coming: (coming.served, coming.number)):
            self.push(coming.served, 1, coming)
        for time in crashes:
            self.push(time, CRASH, None)
        while self.heap and self.heap[0][0] <= horizon:
            now, rank, _, come = heapq.heappop(self.heap)
            if rank == CRASH:
                self.lose()
            elif come is not None:
                self.come(come, now)
            while self.waiting and self.may_send(now):
                self.send(self.waiting.popleft(), now)

    def may_send(self, now: float) -> bool:
        """Whether the leg is free and its window has room."""
        out = sum(time > now for time in self.acknowledged)
        return self.free <= now and (self.way.window is None or out < self.way.window)

    def come(self, coming: Coming, now: float) -> None:
        clients = self.clients
        if now < self.away_until:
            coming.fate = "disconnected"
        elif not self.waiting and self.may_send(now):
            self.send(coming, now)
        elif self.fits(coming):
            self.waiting.append(coming)
            self.waited = True
        elif clients.overflow == "disconnect":
            coming.fate = "disconnected"
            self.lose()
            self.cut_off.append(now)
            self.away_until = now + clients.reconnect_after
        else:
            while clients.overflow == "drop-oldest" and self.waiting and self.could_fit(coming):
                self.waiting.popleft().fate = "slow_client"
                if self.fits(coming):
                    self.waiting.append(coming)
                    return
            coming.fate = "slow_client"

    def lose(self) -> None:
        """End the connection: the next one starts with an empty queue and nothing in flight."""
        for lost in self.waiting:
            lost.fate = "disconnected"
        self.waiting.clear()
        self.acknowledged = []

    def fits(self, coming: Coming) -> bool:
        bound, most = self.clients.buffer, self.clients.buffer_bytes
        held = sum(other.size for other in self.waiting)
        return (bound is None or len(self.waiting) < bound) and (most is None or held + coming.size <= most)

    def could_fit(self, coming: Coming) -> bool:
        """Whether it would be accepted by an empty queue."""
        return self.clients.buffer != 0 and (
            self.clients.buffer_bytes is None or coming.size <= self.clients.buffer_bytes
        )

    def send(self, coming: Coming, now: float) -> None:
        coming.sent = now
        self.free = now + (coming.size / self.way.rate if self.way.rate else 0.0)
        latency = self.way.latency * self.clients.factor(coming.number, self.user)
        self.last = coming.reached = max(self.free + latency, self.last)
        self.acknowledged.append(self.last + self.way.latency)
        for time in (self.free, self.acknowledged[-1]):  # something may be sent then
            self.push(time, 0, None)
        if coming.reached < self.horizon:
            coming.fate = "delivered"
