"""Retained messages: the last of each topic, which those who subscribe receive from their own broker."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.brokers.fabric.clock import RETAINED_MESSAGES, Clock, Feed
from sim.brokers.statistics.ledger import DUE
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users import leg_record as lr
from sim.brokers.users.users import HostedUsers
from sim.workloads.format.workload import Workload


class Retained:
    """Delivers to users who subscribe to a topic the last publication that is retained on it, if it is not empty.

    A publication is retained at all brokers from the moment at which it is published. `host()` is the live broker of each user,
    negative where there is none; such users ask once they are connected, for all that is `wanted(user)` then.
    """

    def __init__(
        self,
        clock: Clock,
        workload: Workload,
        recorder: Recorder,
        host: Callable[[], NDArray[np.int32]],
        wanted: Callable[[int], NDArray[np.int32]],
    ) -> None:
        self._clock, self._recorder, self._host, self._wanted = clock, recorder, host, wanted
        self._published, self._requests = workload.publications, workload.retained_requests
        retains = np.flatnonzero(self._published.retain)
        order = retains[np.argsort(self._published.topic[retains], kind="stable")]
        self._order = order
        self._starts = np.searchsorted(self._published.topic[order], np.arange(len(workload.topics) + 1))
        self._next = 0
        # of each message to the users of one topic: the publication's number
        self._numbers = array("q")

    def start(self) -> None:
        """Schedule the first request."""
        times = self._requests.time
        Feed(self._clock, RETAINED_MESSAGES, self._ask_now).start(float(times[0]) if len(times) else None)

    def _ask_now(self) -> float | None:
        """Answer all requests of this instant; returns when the next ones are due."""
        times, first = self._requests.time, self._next
        self._next = int(np.searchsorted(times, self._clock.now, "right"))
        users, topics = self._requests.user[first : self._next], self._requests.topic[first : self._next]
        connected = self._host()[users] >= 0
        order = np.argsort(topics[connected], kind="stable")
        users, topics = users[connected][order], topics[connected][order]
        for topic in np.unique(topics).tolist():
            low, high = np.searchsorted(topics, (topic, topic + 1))
            self._deliver(topic, users[low:high])
        return float(times[self._next]) if self._next < len(times) else None

    def subscribe(self, user: int, _: float) -> None:
        """A user subscribes now to all that it wants."""
        for topic in self._wanted(user).tolist():
            self._deliver(topic, np.array([user], np.int32))

    def _deliver(self, topic: int, users: NDArray[np.int32]) -> None:
        """The retained message of a topic becomes due to users now."""
        recorder, now = self._recorder, self._clock.now
        numbers = self._order[self._starts[topic] : self._starts[topic + 1]]
        place = int(np.searchsorted(self._published.time[numbers], now)) - 1
        if place < 0 or not self._published.size[numbers[place]]:
            return
        [window] = recorder.windows(np.array([now])).tolist()
        recorder.ledger.count(window, DUE, 0, len(users))
        number = len(self._published) + len(self._numbers)
        self._numbers.append(int(numbers[place]))
        assert recorder.deliveries is not None
        brokers = np.maximum(self._host()[users], 0)
        audience = Audience(topic, -1, users.astype(np.int64), brokers)
        for broker in np.unique(brokers).tolist():
            recorder.deliveries.add(now, now, now, number, broker, audience)

    def told_apart(self, handed: Items) -> NDArray[np.int64]:
        """The publications of what is handed to users (HANDED), after the kind of retained ones has been set."""
        number: NDArray[np.int64] = handed["number"].copy()
        retained = np.flatnonzero(number >= len(self._published))
        handed["kind"][retained] = lr.RETAINED
        number[retained] = np.array(self._numbers)[number[retained] - len(self._published)]
        return number


def retained_messages(
    clock: Clock, workload: Workload, recorder: Recorder, users: Callable[[], HostedUsers]
) -> Retained | None:
    """The retained messages of a network, None where nothing is retained."""
    if not workload.publications.retain.any():
        return None
    return Retained(clock, workload, recorder, lambda: users().host, lambda user: users().interests.of(user))
