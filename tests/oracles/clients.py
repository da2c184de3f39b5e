"""The leg from a broker to a user, simulated for one user after the other, event by event."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

# Any: what comes, what becomes of a session, or nothing.
from typing import Any

ABSENCE = -1  # before all of that instant
CRASH = 0.5  # after what may be sent at that instant, before what comes
BACK = 0.75  # the user is connected again after a crash


@dataclass
class Sessions:
    """What may wait for users who are away, and when that is: `absences` (user, start, end, none | resumed | over)."""

    absences: list[tuple[int, float, float, str]] = field(default_factory=list)
    queue: int | None = None
    queue_bytes: int | None = None
    max_age: float = math.inf
    overflow: str = "drop-newest"
    rate: float = math.inf
    survive: bool = False  # whether sessions outlive a crash of their broker


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
    sessions: Sessions = field(default_factory=Sessions)


@dataclass
class Coming:
    """A publication that comes for a user: when its broker had it and had served it, its bytes, and what became of it."""

    number: int
    arrived: float
    served: float
    size: int
    since: float = 0.0  # from when its delay counts
    kept: bool = True  # whether it may wait for a user who is away
    kind: str = "live"  # or "waited", for a user who was away; or "retained"
    fate: str | None = None  # None: on its way, or waiting
    sent: float | None = None
    reached: float | None = None

    def moment(self, until: str) -> float:
        """The time of its delivery, as `until` defines it."""
        found = {"broker": self.arrived, "served": self.served, "client": self.reached}[until]
        assert found is not None
        return found


class User:
    """Runs on creation: `comings` get their outcomes; `cut_off` has the disconnections, and `caught_up` the returns after which nothing
    waited any more, and how long that took. What waits when its broker crashes is lost; what may be sent then has been sent before."""

    def __init__(
        self,
        clients: Clients,
        user: int,
        comings: list[Coming],
        horizon: float,
        crashes: Iterable[float] = (),
        reconnects: Iterable[float] = (),
    ) -> None:
        self.clients, self.user, self.way, self.horizon = clients, user, clients.way(user), horizon
        self.sessions = clients.sessions
        self.waiting: deque[Coming] = deque()
        self.out: list[Coming] = []  # all that was sent over this connection
        self.acknowledged: list[float] = []  # when those that were sent are
        self.free = self.last = self.away_until = self.ready = self.returned = 0.0
        self.session: str | None = None  # while away
        self.backlog = self.down = False
        self.cut_off: list[float] = []
        self.caught_up: list[tuple[float, float]] = []
        self.waited, self.longest = False, 0
        order = count()
        self.heap: list[tuple[float, float, int, Any]] = []
        self.push = lambda time, rank, coming: heapq.heappush(self.heap, (time, rank, next(order), coming))
        self.leaving: deque[float] = deque()
        for who, start, end, session in self.sessions.absences:
            if who == user and start < horizon:
                self.leaving.append(start)
                self.push(start, ABSENCE, session)
                if end < horizon:
                    self.push(end, ABSENCE, None)
        for coming in sorted(comings, key=lambda coming: (coming.served, coming.number)):
            self.push(coming.served, 1, coming)
        for time in crashes:
            self.push(time, CRASH, None)
        for time in reconnects:
            self.push(time, BACK, None)
        while self.heap and self.heap[0][0] <= horizon:
            now, rank, _, come = heapq.heappop(self.heap)
            if rank == ABSENCE:
                self.leave(now, come) if come else self.come_back(now)
            elif rank == CRASH:
                self.crash(now)
            elif rank == BACK:
                if self.down and not self.session:
                    self.begin(now)
                self.down = False
            elif come is not None:
                self.come(come, now)
            while self.waiting and self.may_send(now):
                self.send_next(now)
        if self.session or self.backlog or self.down:
            self.forget_old(horizon)

    @property
    def leaves(self) -> float:
        """When the user is next away."""
        return self.leaving[0] if self.leaving else math.inf

    def may_send(self, now: float) -> bool:
        """Whether the user is there, the line is free, and few enough are on their way."""
        if self.session or self.down or now >= self.leaves or (self.backlog and now < self.ready):
            return False
        out = sum(time > now for time in self.acknowledged)
        return self.free <= now and (self.way.window is None or out < self.way.window)

    def send_next(self, now: float) -> None:
        coming = self.waiting.popleft()
        if self.backlog and coming.served + self.sessions.max_age < now:
            coming.fate = "message_expired"
        else:
            self.send(coming, now)
        self.end_backlog(now)

    def end_backlog(self, now: float) -> None:
        if self.backlog and not self.waiting:
            self.backlog = False
            self.caught_up.append((self.returned, now - self.returned))

    # -- absences

    def crash(self, now: float) -> None:
        """The user's broker crashes."""
        if not self.sessions.survive:
            self.lose()
            return
        if not self.session and not self.down:
            self.connection_ends(now, "resumed", self.leaves)  # what was sent before still arrives
        self.down = True

    def leave(self, now: float, session: str) -> None:
        """The user is away: what is on its way to it has not arrived."""
        self.leaving.popleft()
        self.session = session
        self.connection_ends(now, session, now)

    def connection_ends(self, now: float, session: str, until: float) -> None:
        """What has not arrived by a time, and what waits, goes back to the session."""
        missed = [coming for coming in self.out if coming.reached >= until] + list(self.waiting)
        self.waiting.clear()
        self.out, self.acknowledged, self.backlog = [], [], False
        for coming in missed:
            coming.fate = None
            self.miss(coming, now, session)

    def miss(self, coming: Coming, now: float, session: str) -> None:
        if session == "none" or not coming.kept:
            coming.fate = "disconnected"
            return
        if coming.kind == "live":
            coming.kind = "waited"
        if coming.served + self.sessions.max_age < now:
            coming.fate = "message_expired"
        else:
            self.wait(coming, now)

    def wait(self, coming: Coming, now: float) -> None:
        """The message waits in the session, if there is room."""
        given = self.sessions
        self.forget_old(now)

        def fits() -> bool:
            held = sum(other.size for other in self.waiting) + coming.size
            fits_bytes = given.queue_bytes is None or held <= given.queue_bytes
            return fits_bytes and (given.queue is None or len(self.waiting) < given.queue)

        alone = given.queue != 0 and (given.queue_bytes is None or coming.size <= given.queue_bytes)
        while given.overflow == "drop-oldest" and alone and not fits():
            self.waiting.popleft().fate = "offline_queue_full"
        if fits():
            self.waiting.append(coming)
            self.longest = max(self.longest, len(self.waiting))
        else:
            coming.fate = "offline_queue_full"

    def forget_old(self, now: float) -> None:
        while self.waiting and self.waiting[0].served + self.sessions.max_age < now:
            self.waiting.popleft().fate = "message_expired"

    def come_back(self, now: float) -> None:
        self.forget_old(now)
        if self.session == "over":
            for lost in self.waiting:
                lost.fate = "session_expired"
            self.waiting.clear()
        self.session = None
        if not self.down:
            self.begin(now)

    def begin(self, now: float) -> None:
        """A connection begins."""
        self.free = self.last = self.ready = self.returned = now
        self.backlog = bool(self.waiting)

    # -- messages

    def come(self, coming: Coming, now: float) -> None:
        clients = self.clients
        if self.session or self.down:
            self.miss(coming, now, self.session or "resumed")
        elif now < self.away_until:
            coming.fate = "disconnected"
        elif self.backlog:
            self.wait(coming, now)
            self.end_backlog(now)
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
        """The connection is over: the next one begins with nothing that waits, and nothing on its way."""
        for lost in [*self.waiting, *(coming for coming in self.out if coming.reached >= self.leaves)]:
            lost.fate = "disconnected"
        self.waiting.clear()
        self.out, self.acknowledged, self.backlog = [], [], False

    def fits(self, coming: Coming) -> bool:
        bound, most = self.clients.buffer, self.clients.buffer_bytes
        held = sum(other.size for other in self.waiting)
        return (bound is None or len(self.waiting) < bound) and (most is None or held + coming.size <= most)

    def could_fit(self, coming: Coming) -> bool:
        """Whether it would fit if nothing else waited."""
        return self.clients.buffer != 0 and (
            self.clients.buffer_bytes is None or coming.size <= self.clients.buffer_bytes
        )

    def send(self, coming: Coming, now: float) -> None:
        coming.sent = now
        self.free = now + (coming.size / self.way.rate if self.way.rate else 0.0)
        latency = self.way.latency * self.clients.factor(coming.number, self.user)
        self.last = coming.reached = max(self.free + latency, self.last)
        self.acknowledged.append(self.last + self.way.latency)
        self.out.append(coming)
        self.ready = now + 1 / self.sessions.rate
        for time in (self.free, self.acknowledged[-1], self.ready):  # something may be sent then
            self.push(time, 0, None)
        if coming.reached < self.horizon:
            coming.fate = "delivered"
