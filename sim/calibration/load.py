"""Load on a broker: publications at given times, or always a number of them under way; and when every copy of them arrived.

One thread sends and receives. The kernel notes when data arrived (Linux), so that it does not matter when the client reads it; the
delay of a publication begins right before it is handed to the kernel. While copies are under way the client does not sleep: a broker on
the same machine would pay for waking it with every copy.
"""

from __future__ import annotations

import gc
import os
import secrets
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.calibration import mqtt
from sim.calibration.accounting import TaskTimes, times_of_this_thread
from sim.calibration.client import (
    ALL_ARRIVED,
    CHANGE,
    CLOSED,
    KIND,
    LOOK_NOW,
    NO_MQTT,
    NOT_DUE,
    PUBLICATION,
    SLEEP,
    SPIN,
    ClientState,
    Subscribers,
    run_client,
)
from sim.calibration.mqtt import TAG, BrokerAddress, BrokerError, MqttConnection, publish_head

_BATCH = 1 << 16  # bytes sent at once
_ROW = 2_000_000  # ns between two looks at the accounts; a broker that is silent for as long is slow
_LONGEST = 1e6  # s
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

    `late` is by how much later than due each was sent (ns). `receiver`, `number` and `stamp` are the subscriber and the publication of
    each copy, and when it arrived. `start` is time 0 of the plan. `accounts` has rows of (time, the broker's time on a core, its waits
    for one, and both of the client), in ns, cumulative. `worked` is for how long (ns) the client had something to do.
    """

    sent: NDArray[np.int64]
    last: NDArray[np.int64]
    copies: NDArray[np.int64]
    late: NDArray[np.int64]
    receiver: NDArray[np.int64]
    number: NDArray[np.int64]
    stamp: NDArray[np.int64]
    start: int
    accounts: NDArray[np.int64]
    worked: int

    @property
    def delay(self) -> NDArray[np.float64]:
        """From sending a publication to the arrival of its last copy, s."""
        return (self.last - self.sent) / _NS

    @property
    def idle(self) -> NDArray[np.float64]:
        """For how long the broker had had nothing to do when each publication was sent, s; not positive where it had."""
        before = np.concatenate([[self.start], np.maximum.accumulate(self.last)[:-1]])
        idle: NDArray[np.float64] = (self.sent - before) / _NS
        return idle

    @property
    def per_copy(self) -> NDArray[np.float64]:
        """The time from one copy of a publication to the next, s; NaN where there is but one."""
        first = np.full(len(self.sent), NOT_DUE)
        np.minimum.at(first, self.number, self.stamp)
        apart: NDArray[np.float64] = (self.last - first) / _NS / np.where(self.copies > 1, self.copies - 1, np.nan)
        return apart


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
        self.waiting = select.epoll()
        self.reading = Subscribers.of([])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (*self.publishers, *self.subscribers):
            connection.close()
        self.waiting.close()
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
        files = [connection.socket.fileno() for connection in self.subscribers]
        self.reading = Subscribers.of(files)
        for file in files:
            self.waiting.register(file, select.EPOLLIN)
        for connection in (*self.publishers, *self.subscribers):
            connection.socket.setblocking(False)
        none = np.zeros(0, np.int64)
        self.run(LoadPlan(none, none, none, none))  # compiles the client's loop

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

    def change(self, subscriber: int, topic: int, joins: bool) -> None:
        """Subscribe or unsubscribe, without waiting for a confirmation."""
        connection = self.subscribers[subscriber]
        connection.send(connection.change(self.topics[topic], joins))

    def sleep(self, seconds: float) -> None:
        """Wait until something arrives, at most this long; unlike epoll's own, the timeout has microseconds."""
        select.select([self.waiting], [], [], max(seconds, 0.0))

    def wrong(self, code: int, doing: Item) -> BrokerError:
        """The error if the client's loop returned because of one."""
        one = self.publishers[0]
        if code == NO_MQTT:
            return one.wrong("what the broker sends is not MQTT")
        reason = os.strerror(int(doing["error"])) if doing["error"] else "end of file"
        return one.wrong(f"the broker closed a connection after {doing['arrived']:,} deliveries ({reason})")


class _Run:
    """One load; times are of the clock of the kernel's stamps, in ns."""

    def __init__(self, load: LoadGenerator, plan: LoadPlan) -> None:
        self._load, self._plan = load, plan
        publications, kinds = self._publications()
        largest = int(kinds["size"].max(initial=1))
        batch = max(min(plan.window // 2, _BATCH // largest), 1)
        self._state = ClientState.of(publications, kinds, load.reading, plan.window, batch)
        self._changes = list(plan.changes)[::-1]
        self._noted: list[tuple[NDArray[np.int64], ...]] = []
        self._rows: list[tuple[int, ...]] = []

    def _publications(self) -> tuple[Items, Items]:
        """The publications as the client's loop has them, and what they look like."""
        plan, load = self._plan, self._load
        alike, kind = np.unique(np.stack([plan.topic, plan.size]), axis=1, return_inverse=True)
        kinds = np.zeros(alike.shape[1], KIND)
        for row, (topic, size) in zip(kinds, alike.T.tolist(), strict=True):
            head = publish_head(load.topics[topic], size)
            row["length"], row["head"][: len(head)] = len(head), np.frombuffer(head, np.uint8)
            row["size"] = len(head) + size - len(TAG)
        found = np.zeros(len(plan), PUBLICATION)
        found["kind"], found["copies"] = kind.ravel(), plan.copies
        found["file"] = np.array([each.socket.fileno() for each in load.publishers])[plan.publisher]
        if plan.time is not None:
            found["time"] = plan.time * _NS
        return found, kinds

    def record(self) -> LoadRecord:
        """Put the load on the broker, and note what happens."""
        plan, load, doing = self._plan, self._load, self._state.progress[0]
        now = time.time_ns()
        doing["last_news"], doing["start"] = now, now + 1_000_000
        doing["end"] = now + int(min(plan.seconds, _LONGEST) * _NS)
        self._look()
        while True:
            doing["change"] = doing["start"] + int(self._changes[-1][0] * _NS) if self._changes else NOT_DUE
            code = run_client(self._state, load.waiting.fileno())
            self._note(int(doing["noted"]))
            if code == ALL_ARRIVED:
                break
            if code == LOOK_NOW:
                self._look()
                if self._gives_up():
                    break
            elif code == CHANGE:
                _, subscriber, topic, joins = self._changes.pop()
                load.change(subscriber, topic, joins)
            elif code == SLEEP:
                self._sleep()
            elif code in (CLOSED, NO_MQTT):
                raise load.wrong(code, doing)
        self._look()
        return self._recorded()

    def _note(self, count: int) -> None:
        """Keep arrivals."""
        state = self._state
        if count:
            self._noted.append(tuple(each[:count].copy() for each in (state.receivers, state.numbers, state.stamps)))

    def _recorded(self) -> LoadRecord:
        sent = self._state.sent[: int(self._state.progress[0]["next"])]
        receiver, number, stamps = (
            np.concatenate(each)
            for each in (zip(*self._noted, strict=True) if self._noted else ([np.zeros(0, np.int64)],) * 3)
        )
        known = number < len(sent)
        receiver, number, stamps = receiver[known], number[known], stamps[known]
        last = np.zeros(len(sent), np.int64)
        np.maximum.at(last, number, stamps)
        copies = np.bincount(number, minlength=len(sent))
        start, worked = (int(self._state.progress[0][name]) for name in ("start", "worked"))
        late = 0 * sent if self._plan.window else sent - start - self._state.publications["time"][: len(sent)]
        return LoadRecord(
            sent, last, copies, late, receiver, number, stamps, start, np.array(self._rows, np.int64), worked
        )

    def _look(self) -> None:
        """Record the accounts."""
        self._rows.append(self._load.account())
        self._state.progress["look"] = self._rows[-1][0] + _ROW

    def _sleep(self) -> None:
        """Wait until something arrives, or shortly before something is due."""
        doing = self._state.progress[0]
        following = int(doing["next"])
        timed = following < len(self._plan) and not self._plan.window
        due = doing["start"] + self._state.publications["time"][following] if timed else NOT_DUE
        self._load.sleep(min((int(min(due, doing["change"])) - time.time_ns() - SPIN) / _NS, 0.1))

    def _gives_up(self) -> bool:
        """Whether no more copies are waited for; sleeps where the broker is slow. Raises BrokerError where that never delivers."""
        plan, doing = self._plan, self._state.progress[0]
        now, left, stuck = time.time_ns(), int(doing["due"] - doing["arrived"]), bool(doing["begin"] < doing["ready"])
        since = now - int(doing["last_news"])
        if since < _ROW or not (left or stuck):
            return False
        if since > plan.patience * _NS:
            if not stuck and (doing["next"] == len(plan) or (plan.window and now >= doing["end"])):
                return True
            if stuck or plan.window:
                raise self._load.publishers[0].wrong(
                    f"the broker has delivered nothing for {plan.patience:g} s, while {left:,} deliveries are due"
                )
        self._sleep()
        return False
