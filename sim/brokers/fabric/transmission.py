"""Transmission: interfaces and links of a limited rate, which carry one message at a time, buffers in front of links, and losses.

A message leaves by its broker's interface, then by the link, and comes in by the other broker's interface; in and out do not disturb
each other (full duplex). As a stream of packets it passes all three concurrently, each as soon as it is free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns, Items
from sim.base.randomness import uniform
from sim.brokers.fabric.clock import ARRIVALS, Clock
from sim.brokers.fabric.links import Links
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.saturation import overloaded


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
    def limits(self) -> dict[str, bool]:
        """The scenario's keys that make a hop more than its latency, and whether each does."""
        rates = {name: getattr(self, name) is not None for name in ("bandwidth", "interface")}
        return {f"network.links.{name}": there for name, there in {**rates, "loss": self.loss > 0}.items()}


UNLIMITED = LinkSetting()
"""The setting in which links have unlimited rates and lose nothing."""


class Line:
    """One direction of a link: when it is free (s), the messages waiting for it, when (s) they will be sent, and their bytes."""

    __slots__ = ("busy", "dropped", "free", "lost", "sent", "starts", "waited", "waiting_bytes")

    def __init__(self) -> None:
        self.free = 0.0
        self.starts: deque[tuple[float, int]] = deque()
        self.waiting_bytes = 0
        self.busy = 0.0  # s, after the warm-up
        self.waited = 0.0  # s, of messages that were sent after the warm-up
        self.sent = 0  # likewise
        self.dropped = 0  # messages that did not fit the buffer, after the warm-up
        self.lost = 0  # likewise


Carried = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Numbers of messages and their bytes, by link or broker."""

_COUNTED = ("busy", "waited", "sent", "dropped", "lost")
"""The counters of a line."""


class Transmission:
    """Carries messages over links whose latency `links` has; draws of losses are keyed by (message, link).

    Messages wait up to the moment at which the link begins to send them, which is known on arrival: so it is always the arriving
    message that is dropped. `loss` is the probability of a loss now.
    """

    def __init__(
        self, clock: Clock, links: Links, setting: LinkSetting, brokers: int, key: int, measured: tuple[float, float]
    ) -> None:
        self.setting, self.key, self.loss = setting, key, setting.loss
        self._clock, self._links, self._brokers = clock, links, brokers
        self._warm_up, self._horizon = measured
        self._out_free, self._in_free = [0.0] * brokers, [0.0] * brokers
        self._arrive = [(partial(self._come_in, broker),) for broker in range(brokers)]
        self._lines: dict[int, Line] = {}

    def fits(self, here: int, there: int, size: int) -> bool:
        """Whether a message of `size` bytes that is sent now may wait for its link; otherwise it is dropped."""
        setting = self.setting
        if setting.buffer is None and setting.buffer_bytes is None:
            return True
        now, line = self._clock.now, self._line(here, there)
        while line.starts and line.starts[0][0] <= now:
            line.waiting_bytes -= line.starts.popleft()[1]
        if max(now, self._out_free[here], line.free) <= now:  # it does not wait
            return True
        fits = (setting.buffer is None or len(line.starts) < setting.buffer) and (
            setting.buffer_bytes is None or line.waiting_bytes + size <= setting.buffer_bytes
        )
        if not fits and now >= self._warm_up:
            line.dropped += 1
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
            line.free = last = max(start + size / setting.bandwidth, last)
        if start > now and (setting.buffer is not None or setting.buffer_bytes is not None):
            line.starts.append((start, size))
            line.waiting_bytes += size
        if now >= self._warm_up:
            line.sent += 1
            line.waited += start - now
        line.busy += self._measured(last) - self._measured(start)
        first = self._links.arrival(start, here, there, identity)
        message.arrived = first + (last - start)
        if self._links.jitter:
            self._links.last[here * self._brokers + there] = message.arrived
        if self.loss and uniform(self.key, identity, here * self._brokers + there) < self.loss:
            line.lost += now >= self._warm_up
            return False
        if setting.interface is None:
            self._clock.at(message.arrived, ARRIVALS, message)
        else:
            message.then, message.callbacks = message.callbacks, self._arrive[there]
            self._clock.at(first, ARRIVALS, message)
        return True

    def _measured(self, time: float) -> float:
        """The measured time that is closest to a time (s)."""
        return max(min(time, self._horizon), self._warm_up)

    def _come_in(self, there: int, message: Message) -> None:
        """The beginning of a message has arrived at its destination's interface; its end arrives at `message.arrived` or later."""
        assert self.setting.interface is not None
        start = max(self._clock.now, self._in_free[there])
        self._in_free[there] = message.arrived = max(start + message.size / self.setting.interface, message.arrived)
        message.callbacks = message.then
        self._clock.at(message.arrived, ARRIVALS, message)

    def _line(self, here: int, there: int) -> Line:
        link = here * self._brokers + there
        line = self._lines.get(link)
        if line is None:
            line = self._lines[link] = Line()
        return line

    def take(self, numbers: Mapping[tuple[int, int], int], counted: Items) -> None:
        """Take over the counts of another engine: records with the fields of Line, indexed by link."""
        for link, number in numbers.items():
            line = self._line(*link)
            for name in _COUNTED:
                setattr(line, name, counted[name][number].item())

    def columns(self, source: NDArray[np.int64], destination: NDArray[np.int64], size: NDArray[np.int64]) -> Columns:
        """The columns of links after the warm-up, for the table of links; `size` is the number of bytes to be sent over each."""
        lines = [self._line(*link) for link in zip(source.tolist(), destination.tolist(), strict=True)]
        seconds = self._horizon - self._warm_up
        return {
            "utilisation": np.array([line.busy / seconds for line in lines]),
            "offered_load": self._offered_load(size, self.setting.bandwidth),
            "queue_wait": [line.waited / line.sent if line.sent else None for line in lines],
            "queue_length": np.array([line.waited / seconds for line in lines]),
            "queue_full": np.array([line.dropped for line in lines], np.int64),
            "lost": np.array([line.lost for line in lines], np.int64),
        }

    def saturated(self, links: Carried, come: Carried, out: Carried) -> int:
        """The number of saturated links, and interfaces in one direction, given what was to be sent over each."""
        rates = (links, self.setting.bandwidth), (come, self.setting.interface), (out, self.setting.interface)
        return sum(
            sum(overloaded(messages.tolist(), size.tolist(), rate, self._horizon - self._warm_up))
            for (messages, size), rate in rates
        )

    def interfaces(self, come: NDArray[np.int64], out: NDArray[np.int64]) -> Columns:
        """The offered load of brokers' interfaces, for the table of brokers; `come` and `out` are bytes (brokers)."""
        rate = self.setting.interface
        return {"interface_in": self._offered_load(come, rate), "interface_out": self._offered_load(out, rate)}

    def _offered_load(self, size: NDArray[np.int64], rate: float | None) -> NDArray[np.float64]:
        """The offered load in seconds of sending per second; NaN without a rate limit."""
        return size / ((np.nan if rate is None else rate) * (self._horizon - self._warm_up))
