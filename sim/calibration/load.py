"""Load on a broker: publications at given times, or always a number of them under way; and when every copy of them arrived.

One thread sends and receives. The kernel notes when data arrived (Linux), so that it does not matter when the client reads it; the
delay of a publication begins right before it is handed to the kernel. While copies are under way the client does not sleep: a broker on
the same machine would pay for waking it with every copy.
"""

from __future__ import annotations

import gc
import secrets
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sim.calibration import mqtt
from sim.calibration.accounting import TaskTimes, times_of_this_thread
from sim.calibration.mqtt import (
    SMALLEST,
    BrokerAddress,
    BrokerError,
    MqttConnection,
    arrivals,
    numbered,
    publish_head,
)

_AT_ONCE = 1 << 18  # bytes read at once
_BATCH = 1 << 16  # bytes sent at once
_ROW = 2_000_000  # ns between two looks at the accounts, at least
_SPIN = 150e-6  # s before a publication is due in which the client does not sleep, as sleep ends late
_NS = 1_000_000_000


@dataclass(frozen=True)
class LoadPlan:
    """What to send: topic and size (bytes) of each publication, to how many subscribers, and by which publisher.

    `time` (s, ascending) is when each is due; with `window` none has a time, and as many are kept under way until `seconds` are over.
    `changes` are (time, subscriber, topic, whether it subscribes); without losses `patience` (s) never matters.
    """

    topic: NDArray[np.int64]
    size: NDArray[np.int64]
    copies: NDArray[np.int64]
    publisher: NDArray[np.int64]
    time: NDArray[np.float64] | None = None
    window: int = 0
    seconds: float = np.inf
    changes: Sequence[tuple[float, int, int, bool]] = ()
    patience: float = field(default_factory=lambda: mqtt.ANSWERS_WITHIN)

    def __len__(self) -> int:
        return len(self.topic)


class LoadRecord(NamedTuple):
    """What happened: for each publication when it was sent and when its last copy arrived (ns; 0: none did), and its copies.

    `receiver`, `number` and `stamp` are the subscriber and the publication of each copy, and when it arrived. `start` is time 0 of the
    plan. `accounts` has rows of (time, the broker's time on a
    core, its waits for one, and both of the client), in ns, cumulative.
    """

    sent: NDArray[np.int64]
    last: NDArray[np.int64]
    copies: NDArray[np.int64]
    receiver: NDArray[np.int64]
    number: NDArray[np.int64]
    stamp: NDArray[np.int64]
    start: int
    accounts: NDArray[np.int64]

    @property
    def delay(self) -> NDArray[np.float64]:
        """From sending a publication to the arrival of its last copy, s."""
        return (self.last - self.sent) / _NS


@dataclass
class LoadGenerator:
    """Clients of a broker; closing it leaves nothing behind. `broker` is the account of its process, if that is known."""

    address: BrokerAddress
    broker: TaskTimes | None = None
    publishers: list[MqttConnection] = field(default_factory=list)
    subscribers: list[MqttConnection] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run_name = f"brokersim-{secrets.token_hex(4)}"
        self._client = times_of_this_thread()
        self._by_file: dict[int, tuple[int, MqttConnection]] = {}
        self._waiting = select.epoll()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (*self.publishers, *self.subscribers):
            connection.close()
        self._waiting.close()
        self._client.close()

    def connect(
        self,
        publishers: int,
        interests: Sequence[Sequence[int]],
        topics: int,
        at: Sequence[BrokerAddress] = (),
    ) -> None:
        """Connect publishers and subscribers, who want these topics (numbers below `topics`); subscribers may be `at` other brokers."""
        self.topics = [f"{self.run_name}/{topic}" for topic in range(topics)]
        for number in range(publishers):
            self.publishers.append(MqttConnection(self.address, f"{self.run_name}-p{number}"))
        for number, wanted in enumerate(interests):
            connection = MqttConnection(at[number] if at else self.address, f"{self.run_name}-s{number}")
            self.subscribers.append(connection)
            for first in range(0, len(wanted), 100):
                connection.subscribe([self.topics[topic] for topic in wanted[first : first + 100]])
        for number, connection in enumerate(self.subscribers):
            self._by_file[connection.socket.fileno()] = number, connection
            self._waiting.register(connection.socket.fileno(), select.EPOLLIN)
        for connection in (*self.publishers, *self.subscribers):
            connection.socket.setblocking(False)

    def run(self, plan: LoadPlan) -> LoadRecord:
        """Put the load on the broker. Raises BrokerError where it ends connections, or delivers nothing for too long."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return _Run(self, plan).record()
        finally:
            if collects:
                gc.enable()

    def account(self) -> tuple[int, int, int, int, int]:
        """The time, and for how long broker and client have run and waited, ns."""
        broker = (0, 0) if self.broker is None else self.broker.read()
        return (time.time_ns(), *broker, *self._client.read())

    def receive(self, chunks: list[tuple[list[int], int, int]], before: int) -> int:
        """Read what has arrived, without waiting: numbers, subscriber and time (ns); returns how many copies, beside those `before`."""
        copies = 0
        for file, _ in self._waiting.poll(0):
            receiver, connection = self._by_file[file]
            try:
                data, extra, _, _ = connection.socket.recvmsg(_AT_ONCE, 64)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._closed(connection, before + copies, str(error.strerror)) from None
            if not data:
                raise self._closed(connection, before + copies, "end of file")
            if extra:
                seconds, ns = struct.unpack("qq", extra[0][2][:16])
                stamp = seconds * _NS + ns
            else:
                stamp = time.time_ns()
            try:
                found, connection.rest = arrivals(connection.rest + data if connection.rest else data)
            except ValueError:
                raise connection.wrong("what the broker sends is not MQTT") from None
            connection.acknowledge()
            chunks.append((found, receiver, stamp))
            copies += len(found)
        return copies

    def sleep(self, seconds: float) -> None:
        """Wait until something arrives, at most this long; unlike epoll's own, the timeout has microseconds."""
        select.select([self._waiting], [], [], max(seconds, 0.0))

    def _closed(self, connection: MqttConnection, copies: int, reason: str) -> BrokerError:
        return connection.wrong(f"the broker closed a connection after {copies:,} deliveries ({reason})")


class _Run:
    """One load; times are of the clock of kernel's stamps, in ns."""

    def __init__(self, load: LoadGenerator, plan: LoadPlan) -> None:
        self._load, self._plan = load, plan
        self._sent = np.zeros(len(plan), np.int64)
        self._heads: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        self._unsent: dict[socket.socket, bytearray] = {}
        self._chunks: list[tuple[list[int], int, int]] = []
        self._due = self._arrived = self._last_arrival = 0
        self._rows: list[tuple[int, ...]] = []
        self._next = self._start = 0

    def record(self) -> LoadRecord:
        plan = self._plan
        self._look(force=True)
        self._last_arrival = time.time_ns()
        self._start = self._last_arrival + 1_000_000
        if plan.window:
            self._keep_under_way()
        else:
            self._at_times()
        self._drain()
        self._look(force=True)
        return self._recorded()

    def _recorded(self) -> LoadRecord:
        sizes = [len(numbers) for numbers, _, _ in self._chunks]
        number = np.array([each for numbers, _, _ in self._chunks for each in numbers], np.int64)
        receiver = np.repeat(np.array([receiver for _, receiver, _ in self._chunks], np.int64), sizes)
        stamps = np.repeat(np.array([stamp for _, _, stamp in self._chunks], np.int64), sizes)
        known = number < self._next
        number, receiver, stamps = number[known], receiver[known], stamps[known]
        last = np.zeros(self._next, np.int64)
        np.maximum.at(last, number, stamps)
        return LoadRecord(
            self._sent[: self._next],
            last,
            np.bincount(number, minlength=self._next),
            receiver,
            number,
            stamps,
            self._start,
            np.array(self._rows, np.int64),
        )

    def _look(self, force: bool = False) -> None:
        """Record the accounts from time to time."""
        if force or time.time_ns() - self._rows[-1][0] >= _ROW:
            self._rows.append(self._load.account())

    def _frames(self, first: int, count: int) -> bytes:
        """Publications that are alike but for their numbers."""
        key = self._plan.topic.item(first), self._plan.size.item(first)
        if key not in self._heads:
            self._heads[key] = publish_head(self._load.topics[key[0]], key[1]), bytes(key[1] - SMALLEST)
        return numbered(*self._heads[key], first, count)

    def _at_times(self) -> None:
        """Publications and changes of subscriptions, each when it is due."""
        plan, load = self._plan, self._load
        assert plan.time is not None
        due = (plan.time * _NS).astype(np.int64).tolist()
        changes = list(plan.changes)[::-1]
        start = self._start
        while self._next < len(due) or changes:
            now = time.time_ns()
            change = start + int(changes[-1][0] * _NS) if changes else None
            send = start + due[self._next] if self._next < len(due) else None
            soonest = min(each for each in (change, send) if each is not None)
            if soonest > now:
                if not self._receive() and self._arrived >= self._due and soonest - now > _SPIN * _NS:
                    load.sleep(min((soonest - now) / _NS - _SPIN, 0.1))
                self._flush()
                continue
            if change == soonest:
                _, subscriber, topic, joins = changes.pop()
                connection = load.subscribers[subscriber]
                self._send(connection.socket, connection.change(load.topics[topic], joins))
                continue
            self._look()
            self._publish(1)
            if now - soonest > 1_000_000:
                self._receive()

    def _keep_under_way(self) -> None:
        """As many publications as the window has, until all are sent or time is over."""
        plan = self._plan
        copies = plan.copies.item(0)
        size = plan.size.item(0)
        batch = max(min(plan.window // 2, _BATCH // size), 1)
        end = time.time_ns() + int(plan.seconds * _NS)
        while self._next < len(plan) and time.time_ns() < end:
            under_way = (self._due - self._arrived) / copies
            if under_way <= plan.window - batch:
                self._look()
                self._publish(min(batch, len(plan) - self._next))
            elif not self._receive():
                self._flush()
                self._load.sleep(0.1)
                self._check_patience()

    def _drain(self) -> None:
        """Wait for what is under way; whatever does not come in time is lost."""
        while self._arrived < self._due or self._unsent:
            self._flush()
            if not self._receive():
                self._load.sleep(0.05)
                if time.time_ns() - self._last_arrival > self._plan.patience * _NS:
                    return

    def _publish(self, count: int) -> None:
        """Hand the next publications to the kernel; they are alike."""
        first, plan = self._next, self._plan
        frames = self._frames(first, count)
        connection = self._load.publishers[plan.publisher.item(first)].socket
        self._sent[first : first + count] = time.time_ns()
        self._send(connection, frames)
        self._due += count * plan.copies.item(first)
        self._next += count

    def _send(self, connection: socket.socket, data: bytes) -> None:
        waiting = self._unsent.get(connection)
        if waiting is not None:
            waiting += data
            return
        sent = self._offer(connection, data)
        if sent < len(data):
            self._unsent[connection] = bytearray(data[sent:])

    def _flush(self) -> None:
        for connection, data in list(self._unsent.items()):
            del data[: self._offer(connection, data)]
            if not data:
                del self._unsent[connection]

    def _offer(self, connection: socket.socket, data: bytes | bytearray) -> int:
        """Send as much as the kernel takes; returns how much."""
        try:
            return connection.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            one = self._load.publishers[0]
            raise one.wrong(
                f"the broker closed a connection after {self._arrived:,} deliveries ({error.strerror})"
            ) from None

    def _receive(self) -> int:
        found = self._load.receive(self._chunks, self._arrived)
        self._arrived += found
        if found:
            self._last_arrival = time.time_ns()
        return found

    def _check_patience(self) -> None:
        if time.time_ns() - self._last_arrival > self._plan.patience * _NS:
            left = self._due - self._arrived
            raise self._load.publishers[0].wrong(
                f"the broker has delivered nothing for {self._plan.patience:g} s, while {left:,} deliveries are due"
            )
