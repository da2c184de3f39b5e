"""The leg from a broker to a user, simulated for one user after the other, event by event."""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

# Any: what comes, what becomes of a session, or nothing.
from typing import Any

ABSENCE = -1  # before all of that instant
ANSWER = -0.5  # what clients and brokers say
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
class Quality:
    """Quality of service: `of(user, coming)`, whether a part (publish, received, release, complete) of an attempt is `lost`, and the
    time after which it is sent again; messages of quality 0 may wait for those who are away if it `keeps` them."""

    of: Callable[[int, Coming], int]
    lost: Callable[[int, int, int, int], bool]
    timeout: float = math.inf
    keeps: bool = False


@dataclass
class Way:
    """The limits of a user's leg: latency there and back (s), rate (bytes/s) and messages in flight (None: unlimited)."""

    latency: float = 0.0
    rate: float | None = None
    window: int | None = None


def _same(number: int, user: int) -> float:
    return 1.0


def _once(number: int, user: int, attempt: int) -> float:
    return 1.0


def _near(user: int, broker: int, time: float) -> float:
    return 0.0


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
    quality: Quality | None = None
    again: Callable[[int, int, int], float] = _once  # like `factor`, of the k-th attempt
    away: Callable[[int, int, float], float] = _near  # the time over the distance of a user to a broker at a time


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
    topic: int = -1
    quality: int = 1  # its own, and then that to the user
    attempts: int = 0  # of it, and of its release
    got: bool = False
    released: bool = False
    answered: bool = True  # all of it, over this connection
    flying: list[float] = field(default_factory=list)  # when copies arrive that are on their way
    started: float = 0.0
    broker: int | None = None  # none by the best-effort channel
    up: float = 0.0  # the time from its publisher to its broker
    way: float = 0.0  # and over the distance to the user, as it is sent

    def moment(self, until: str) -> float:
        """The time of its delivery, as `until` defines it."""
        found = {"broker": self.arrived, "served": self.served, "client": self.reached}[until]
        assert found is not None
        return found

    def delay(self, published: float, until: str) -> float:
        """Its delay, counted from when the publisher sent it if it is to the client."""
        return self.moment(until) - published + (self.up if until == "client" else 0.0)


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
        self.said: Counter[tuple[str, float]] = (
            Counter()
        )  # what was sent again and acknowledged, by kind and publication
        self.connection = 0
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
        for coming in comings if clients.quality is not None else ():
            coming.quality = clients.quality.of(user, coming)
            coming.kept = coming.quality > 0 or clients.quality.keeps
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
            elif rank == ANSWER or (rank == 0 and come is not None):
                come(now)
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

    def may_send(self, now: float, coming: Coming | None = None) -> bool:
        """Whether the user is there, the line is free, and few enough are on their way."""
        if self.session or self.down or now >= self.leaves or (self.backlog and now < self.ready):
            return False
        out = sum(time > now for time in self.acknowledged)
        if self.clients.quality is not None:
            head = coming or self.waiting[0]
            out = sum(not other.answered for other in self.out) if head.quality else -1
        return self.free <= now and (self.way.window is None or out < self.way.window)

    def send_next(self, now: float) -> None:
        coming = self.waiting.popleft()
        if self.backlog and coming.served + self.sessions.max_age < now:
            doom(coming, "message_expired")
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
        missed = self.unfinished(until) + list(self.waiting)
        self.waiting.clear()
        self.out, self.acknowledged, self.backlog = [], [], False
        for coming in missed:
            coming.fate = coming.fate if coming.got else None
            self.miss(coming, now, session)

    def unfinished(self, until: float) -> list[Coming]:
        """What was sent over the connection that ends now, and is not known to have arrived; copies on their way do so until a time."""
        self.connection += 1
        if self.clients.quality is None:
            return [coming for coming in self.out if coming.reached >= until]
        for coming in self.out:
            for time in sorted(coming.flying):  # a later copy may be faster
                if time < min(until, self.horizon):
                    self.get(coming, time)
            coming.flying = []
        return [coming for coming in self.out if not coming.answered]

    def miss(self, coming: Coming, now: float, session: str) -> None:
        if session == "none" or not coming.kept:
            doom(coming, "disconnected")
            return
        if coming.kind == "live" and not coming.got:
            coming.kind = "waited"
        if coming.served + self.sessions.max_age < now:
            doom(coming, "message_expired")
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
            doom(self.waiting.popleft(), "offline_queue_full")
        if fits():
            self.waiting.append(coming)
            self.longest = max(self.longest, len(self.waiting))
        else:
            doom(coming, "offline_queue_full")

    def forget_old(self, now: float) -> None:
        while self.waiting and self.waiting[0].served + self.sessions.max_age < now:
            doom(self.waiting.popleft(), "message_expired")

    def come_back(self, now: float) -> None:
        self.forget_old(now)
        if self.session == "over":
            for lost in self.waiting:
                doom(lost, "session_expired")
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
        bypasses = clients.quality is not None and coming.quality == 0  # what waits for the window
        if self.session or self.down:
            self.miss(coming, now, self.session or "resumed")
        elif now < self.away_until:
            coming.fate = "disconnected"
        elif self.backlog:
            self.wait(coming, now)
            self.end_backlog(now)
        elif (bypasses or not self.waiting) and self.may_send(now, coming):
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
        for lost in [*self.waiting, *self.unfinished(self.leaves)]:
            doom(lost, "disconnected")
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
        if self.clients.quality is not None:
            self.send_by_quality(coming, now)
            return
        coming.sent = now
        self.set_out(coming, now)
        self.free = now + (coming.size / self.way.rate if self.way.rate else 0.0)
        latency = self.latency(coming) * self.clients.factor(coming.number, self.user)
        self.last = coming.reached = max(self.free + latency, self.last)
        self.acknowledged.append(max([self.last + self.latency(coming), *self.acknowledged[-1:]]))
        self.out.append(coming)
        self.ready = now + 1 / self.sessions.rate
        for time in (self.free, self.acknowledged[-1], self.ready):  # something may be sent then
            self.push(time, 0, None)
        if coming.reached < self.horizon:
            coming.fate = "delivered"

    def set_out(self, coming: Coming, now: float) -> None:
        """The distance to the user is the one at which it is sent."""
        coming.way = 0.0 if coming.broker is None else self.clients.away(self.user, coming.broker, now)

    def latency(self, coming: Coming) -> float:
        return self.way.latency + coming.way

    # -- by quality of service

    def send_by_quality(self, coming: Coming, now: float) -> None:
        """Send a message over this connection; one that the user had received over an earlier one is only released."""
        self.ready, coming.started, coming.answered = now + 1 / self.sessions.rate, now, coming.quality == 0
        self.set_out(coming, now)
        self.push(self.ready, 0, None)
        self.out.append(coming)
        if coming.attempts and now < self.horizon:
            self.said["retransmissions", coming.since] += 1
        if coming.released:
            self.release(coming, now)
            return
        self.free = now + self.seconds(coming)
        self.push(self.free, 0, None)
        latency = self.latency(coming) * self.clients.again(coming.number, self.user, coming.attempts)
        self.last = max(self.free + latency, self.last)
        if coming.quality == 0:
            coming.fate = "leg" if self.lost(coming, 0) else "delivered"
            coming.sent, coming.reached = now, self.last
            if coming.reached >= self.leaves:
                coming.fate = "disconnected"
            elif coming.reached >= self.horizon:
                coming.fate = None
            return
        self.transmit(coming, now, self.last)

    def seconds(self, coming: Coming) -> float:
        return coming.size / self.way.rate if self.way.rate else 0.0

    def lost(self, coming: Coming, part: int) -> bool:
        assert self.clients.quality is not None
        return self.clients.quality.lost(coming.number, self.user, coming.attempts, part)

    def soon(self, time: float, rank: float, what: Callable[[float], None]) -> None:
        """Do something at a time if the connection lasts until then."""
        connection = self.connection
        if time < self.horizon:
            self.push(time, rank, lambda now: what(now) if self.connection == connection else None)

    def transmit(self, coming: Coming, now: float, there: float) -> None:
        """Send a copy, which arrives at a time if it is not lost, and again after the timeout if there is no answer by then."""
        assert self.clients.quality is not None
        attempt, arrives = coming.attempts, not self.lost(coming, 0)
        heard = not self.lost(coming, 1)
        coming.attempts += 1

        def arrive(now: float) -> None:
            coming.flying.remove(now)
            self.get(coming, now)
            if heard:
                self.soon(now + self.latency(coming), ANSWER, lambda time: self.hear(coming, time))

        def again(now: float) -> None:
            if not (coming.answered or coming.released):
                self.said["retransmissions", coming.since] += 1
                latency = self.latency(coming) * self.clients.again(coming.number, self.user, coming.attempts)
                self.transmit(coming, now, now + self.seconds(coming) + latency)

        if arrives:
            coming.flying.append(there)
            self.soon(there, ANSWER, arrive)
        self.soon(now + self.clients.quality.timeout, 0, again)
        assert attempt < coming.attempts

    def get(self, coming: Coming, now: float) -> None:
        """The user gets a copy."""
        self.said["puback" if coming.quality == 1 else "pubrec", coming.since] += 1
        if not coming.got:
            coming.got, coming.fate = True, "delivered"
            coming.sent, coming.reached = coming.started, now
        elif coming.quality == 1:
            self.said["duplicates", coming.since] += 1

    def hear(self, coming: Coming, now: float) -> None:
        """The broker hears for the first time, or again, that the user has the message."""
        if coming.quality == 1:
            coming.answered = True
        elif not coming.released:
            coming.released = True
            self.release(coming, now)

    def release(self, coming: Coming, now: float) -> None:
        assert self.clients.quality is not None
        arrives, heard = not self.lost(coming, 2), not self.lost(coming, 3)
        coming.attempts += 1
        self.said["pubrel", coming.since] += now < self.horizon

        def arrive(now: float) -> None:
            self.said["pubcomp", coming.since] += 1
            if heard:
                self.soon(now + self.latency(coming), ANSWER, complete)

        def complete(_: float) -> None:
            coming.answered = True

        def again(now: float) -> None:
            if not coming.answered:
                self.said["retransmissions", coming.since] += 1
                self.release(coming, now)

        if arrives:
            self.soon_there(now + self.latency(coming), arrive)
        self.soon(now + self.clients.quality.timeout, 0, again)

    def soon_there(self, time: float, what: Callable[[float], None]) -> None:
        """A release gets there unless the user is away by then, even if its broker has crashed."""
        if time < min(self.leaves, self.horizon):
            self.push(time, ANSWER, what)


def doom(coming: Coming, fate: str) -> None:
    """A message is lost, unless the user has it."""
    if not coming.got:
        coming.fate = fate
