"""Transmission: interfaces and links of a limited rate, which carry one message at a time, buffers in front of links, and losses.

A message leaves by its broker's interface, then by the link, and comes in by the other broker's interface; in and out do not disturb
each other (full duplex). As a stream of packets it passes all three concurrently, each as soon as it is free.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns, Items
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.fabric.clock import ARRIVALS, Clock
from sim.brokers.fabric.link_windows import LINK_COLUMNS, LinkWindows
from sim.brokers.fabric.links import Links
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.saturation import Backlog, Saturation, saturation


@dataclass(frozen=True)
class LinkSetting:
    """The limits of links: rates (bytes per second), the probability of `loss`, and how many messages or bytes may wait for a link.

    None stands for no limit.
    """

    bandwidth: float | None = None
    interface: float | None = None
    loss: float = 0.0
    buffer: int | None = None
    buffer_bytes: int | None = None

    @property
    def limits(self) -> bool:
        """Whether a hop is more than its latency."""
        return self.bandwidth is not None or self.interface is not None or self.loss > 0


UNLIMITED = LinkSetting()
"""The setting in which links have unlimited rates and lose nothing."""


class Line:
    """A direction of a link: when it is free (s), and the messages that wait for it, by when they will be sent: from, until (s), bytes.

    The rest is what it does in the window under way, and `backlog` the work that would be left if its buffer had no bound. What `busy`
    and `waited` have of later windows is `ahead` of the last one that has ended (s of both).
    """

    __slots__ = (
        *("ahead", "backlog", "busy", "bytes", "dropped", "free", "lost", "messages", "most_waiting"),
        *("sent_until", "waited", "waiting", "waiting_bytes"),
    )

    def __init__(self) -> None:
        self.free = 0.0
        self.waiting: deque[tuple[float, float, int]] = deque()
        self.waiting_bytes = 0
        self.sent_until = 0.0  # s; what it sends while others wait
        self.backlog = Backlog()
        self.ahead = 0.0, 0.0
        self._begin()

    def _begin(self) -> None:
        """A window begins."""
        self.messages = self.bytes = self.dropped = self.lost = 0
        self.busy = self.waited = 0.0
        self.most_waiting = len(self.waiting)

    def proceed(self, now: float) -> None:
        """What was to be sent by now waits no longer."""
        waiting = self.waiting
        while waiting and waiting[0][0] <= now:
            _, self.sent_until, size = waiting.popleft()
            self.waiting_bytes -= size

    def look(self, now: float) -> tuple[float, ...]:
        """What it did in the window that ends now, as in LINK_COLUMNS."""
        self.proceed(now)
        busy, waited = max((self.sent_until if self.waiting else self.free) - now, 0.0), 0.0
        for start, end, _ in self.waiting:
            busy += end - start
            waited += start - now
        before, self.ahead = self.ahead, (busy, waited)
        done = (
            *(self.messages, self.bytes, self.dropped, self.lost, self.most_waiting, self.waited),
            *(before[0] + self.busy - busy, before[1] + self.waited - waited),
        )
        self._begin()
        return done


class Transmission:
    """Carries messages over links whose latency `links` has; draws of losses are keyed by (message, link).

    Messages wait up to the moment at which the link begins to send them, which is known on arrival: so it is always the arriving
    message that is dropped. `loss` is the probability of a loss now.
    """

    def __init__(
        self, clock: Clock, links: Links, setting: LinkSetting, brokers: int, key: int, windows: LinkWindows
    ) -> None:
        self.setting, self.key, self.windows, self.loss = setting, key, windows, setting.loss
        self._clock, self._links, self._brokers = clock, links, brokers
        self._bounded = setting.buffer is not None or setting.buffer_bytes is not None
        self._out_free, self._in_free = [0.0] * brokers, [0.0] * brokers
        self._out, self._in = ([Backlog() for _ in range(brokers)] for _ in range(2))
        self._arrive = [(partial(self._come_in, broker),) for broker in range(brokers)]
        self._lines: dict[int, Line] = {}

    def fits(self, here: int, there: int, size: int) -> bool:
        """Whether a message of `size` bytes that is sent now may wait for its link; otherwise it is dropped."""
        setting, now, line = self.setting, self._clock.now, self._line(here, there)
        if setting.bandwidth is not None:
            line.backlog.add(now, size / setting.bandwidth)
        if setting.interface is not None:
            self._out[here].add(now, size / setting.interface)
        line.proceed(now)
        if not self._bounded or max(now, self._out_free[here], line.free) <= now:  # it does not wait
            return True
        fits = (setting.buffer is None or len(line.waiting) < setting.buffer) and (
            setting.buffer_bytes is None or line.waiting_bytes + size <= setting.buffer_bytes
        )
        line.dropped += not fits
        return fits

    def send(self, message: Message, here: int, there: int, identity: int) -> bool:
        """Send a message that fits, with its callbacks for its arrival; false if it gets lost on the way."""
        setting, size, now = self.setting, message.size, self._clock.now
        line = self._line(here, there)
        start = last = now
        if setting.interface is not None:
            start = max(start, self._out_free[here])
            self._out_free[here] = last = start + size / setting.interface
        if setting.bandwidth is not None:
            start = max(start, line.free)
            last = max(start + size / setting.bandwidth, last)
        if start > now:
            if not line.waiting:
                line.sent_until = line.free
            line.waiting.append((start, last, size))
            line.waiting_bytes += size
            line.most_waiting = max(line.most_waiting, len(line.waiting))
            line.waited += start - now
        line.free = last
        line.messages += 1
        line.bytes += size
        line.busy += last - start
        first = self._links.arrival(start, here, there, identity)
        message.arrived = first + (last - start)
        if self._links.jitter:
            self._links.last[here * self._brokers + there] = message.arrived
        if self.loss and keyed_uniform(self.key, identity, here * self._brokers + there) < self.loss:
            line.lost += 1
            return False
        if setting.interface is None:
            self._clock.at(message.arrived, ARRIVALS, message)
        else:
            message.then, message.callbacks = message.callbacks, self._arrive[there]
            self._clock.at(first, ARRIVALS, message)
        return True

    def _come_in(self, there: int, message: Message) -> None:
        """The beginning of a message has arrived at its destination's interface; its end arrives at `message.arrived` or later."""
        assert self.setting.interface is not None
        now, takes = self._clock.now, message.size / self.setting.interface
        self._in[there].add(now, takes)
        start = max(now, self._in_free[there])
        self._in_free[there] = message.arrived = max(start + takes, message.arrived)
        message.callbacks = message.then
        self._clock.at(message.arrived, ARRIVALS, message)

    def _line(self, here: int, there: int) -> Line:
        link = here * self._brokers + there
        line = self._lines.get(link)
        if line is None:
            line = self._lines[link] = Line()
        return line

    def look(self, now: float) -> None:
        """A window ends now (s)."""
        done = [line.look(now) for line in self._lines.values()]
        self.windows.look(np.array(list(self._lines), np.int64), np.array(done).reshape(-1, len(LINK_COLUMNS)))

    def take(self, links: NDArray[np.int64], lines: Items, ports: Items) -> None:
        """Take what another engine knows of the backlogs of links, by their keys, and of interfaces: records with these numbers."""
        for link, clear, since, squares in zip(links.tolist(), *_backlogs(lines, ""), strict=True):
            self._lines[link] = Line()
            self._lines[link].backlog = Backlog(clear, since, squares)
        if len(ports):
            self._out, self._in = (
                [Backlog(*each) for each in zip(*_backlogs(ports, way), strict=True)] for way in ("out_", "in_")
            )

    # -- what came out

    def columns(self, source: NDArray[np.int64], destination: NDArray[np.int64], size: NDArray[np.int64]) -> Columns:
        """What links did after the warm-up, for the table of links; `size` is the number of bytes to be sent over each."""
        links = source * self._brokers + destination
        found = self.windows.by_link(links, self._seconds)
        behind = [
            self._saturation(self._lines[link].backlog) if link in self._lines else None for link in links.tolist()
        ]
        return {
            "utilisation": found["utilisation"],
            "offered_load": self._offered_load(size, self.setting.bandwidth),
            **{name: found[name] for name in ("queue_wait", "queue_length", "queue_max", "queue_full", "lost")},
            "saturated_since": [each and each.since for each in behind],
            "capacity_share": [each and each.capacity_share for each in behind],
        }

    def saturated(self) -> int:
        """How many links, and interfaces in one direction, cannot carry what comes to each."""
        backlogs = *(line.backlog for line in self._lines.values()), *self._out, *self._in
        return sum(self._saturation(backlog) is not None for backlog in backlogs)

    def interfaces(self, come: NDArray[np.int64], out: NDArray[np.int64]) -> Columns:
        """What comes to brokers' interfaces, for the table of brokers; `come` and `out` are bytes (brokers)."""
        found: Columns = {}
        for way, size, backlogs in (("in", come, self._in), ("out", out, self._out)):
            behind = [self._saturation(backlog) for backlog in backlogs]
            found[f"interface_{way}"] = self._offered_load(size, self.setting.interface)
            found[f"interface_{way}_saturated_since"] = [each and each.since for each in behind]
            found[f"interface_{way}_capacity_share"] = [each and each.capacity_share for each in behind]
        return found

    @property
    def _seconds(self) -> float:
        return self.windows.measured_seconds

    def _saturation(self, backlog: Backlog) -> Saturation | None:
        horizon = self.windows.edges[-1]
        return saturation(backlog.left(horizon), backlog.squares, backlog.since, self._seconds, horizon)

    def _offered_load(self, size: NDArray[np.int64], rate: float | None) -> NDArray[np.float64]:
        """Seconds of sending that come per second; NaN where any rate will do."""
        return size / ((np.nan if rate is None else rate) * self._seconds)


def _backlogs(records: Items, way: str) -> list[list[float]]:
    """The numbers of backlogs, as columns."""
    return [records[f"{way}{name}"].tolist() for name in ("clear", "since", "squares")]
