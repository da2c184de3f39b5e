"""The brokers' users per topic, with callbacks when a broker's first user joins a topic or its last one leaves it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers, frozen
from sim.base.sparse import SparseCounts
from sim.brokers.statistics.records import Offloaded
from sim.brokers.users.ahead_kernels import enact_ahead, enact_events
from sim.brokers.users.change_kernels import count_all, join_all
from sim.brokers.users.sharing import SharedSubscriptions
from sim.brokers.users.state import UserState
from sim.policies.views import BrokerStates


class Subscriptions:
    """Users of each broker that want each topic, with loads and their sum of squares kept up to date.

    `transition(topic, broker, +1 | -1)` is called when a broker begins or ceases to want a topic, after the counts have changed.
    `shared` are those that groups share, if any. What is served is what the broker network is to deliver: all that is wanted, unless
    some is offloaded (SplitSubscriptions). Quiet changes, which make no difference to brokers, may be known ahead; code that needs
    subscriptions as of a time then calls `catch_up`, and the first remaining change is at `next_change` (s).
    """

    def __init__(self, topics: int, brokers: int, transition: Callable[[int, int, int], None]) -> None:
        self.state = UserState()
        self.wanted = SparseCounts(topics, brokers)  # by topic and broker
        self.brokers_wanting = np.zeros(topics, np.int64)  # per topic: how many brokers, and users, want it
        self.users_wanting = np.zeros(topics, np.int64)
        self.absent = np.zeros(topics, np.int64)  # per topic: users among those that are connected to no broker
        self.brokers_served, self.users_served = self.brokers_wanting, self.users_wanting
        self.version = np.zeros(topics, np.int64)  # per topic: the number of changes so far
        self.topics = np.zeros(brokers, np.int64)
        self.load = np.zeros(brokers, np.int64)
        self.users = np.zeros(brokers, np.int64)
        self.state.set(topics_many=topics, brokers=brokers, wanted=self.wanted.records.ctypes.data)
        for name in ("brokers_wanting", "users_wanting", "version", "topics", "load", "users"):
            self.state.use(**{name: getattr(self, name)})
        self._transition = transition
        self.next_change = math.inf
        self.shared: SharedSubscriptions | None = None
        self.caught_up: Callable[[int, int], None] | None = None  # called with the rows of enacted events

    @property
    def total(self) -> int:
        """All user subscriptions."""
        return int(self.state.record["total"])

    def change(self, topics: Sequence[int] | NDArray[np.int32], broker: int, change: int) -> None:
        """Count one more (+1) or fewer (-1) user of the broker for each of the topics."""
        self.wanted.reserve(len(topics))
        for topic in count_all(self.state.records, np.array(topics, np.int32), broker, change).tolist():
            self._transition(topic, broker, change)

    def miss(self, topics: NDArray[np.int32], change: int) -> None:
        """One user more (+1) or fewer (-1) that is connected to no broker wants each of the topics."""
        for counts in (self.absent, self.users_wanting):
            counts[topics] += change
        self.version[topics] += 1

    def enact(self, first: int, end: int, now: float) -> bool:
        """Enact the events in these rows, of one instant, if compiled code can; `wanted` has room for them."""
        enacted, turned = enact_events(self.state.records, first, end, now)
        for topic, broker, change in turned.tolist():
            self._transition(topic, broker, change)
        return enacted

    def join(self, first: int, brokers: Integers, interests: int) -> None:
        """Let users `first`, `first + 1`, … join these brokers, with `interests` in all, for which `wanted` has room."""
        turned = join_all(self.state.records, first, np.array(brokers, np.int32), interests)
        for topic, broker in zip(*(column.tolist() for column in turned), strict=True):
            self._transition(topic, broker, +1)

    def catch_up(self, time: float) -> None:
        """Enact the changes that are known ahead, up to and including a time (s)."""
        if time >= self.next_change:
            first = self.state.record["event"]
            self.next_change = enact_ahead(self.state.records, time)
            if self.caught_up is not None:
                self.caught_up(int(first), int(self.state.record["event"]))

    def states(self) -> BrokerStates:
        """A read-only copy of all present states."""
        counts = (frozen(each.copy()) for each in (self.topics, self.load, self.users))
        return BrokerStates(frozen(self.wanted.dense()), *counts)

    def unknown(self) -> BrokerStates:
        """The states before the first exchange: empty."""
        nothing = np.broadcast_to(np.int64(0), len(self.load))
        return BrokerStates(np.broadcast_to(np.int32(0), self.wanted.shape), nothing, nothing, nothing)

    def served_at(self, topic: int, brokers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The users of these brokers that want the topic, and are to get it from the broker network."""
        return self.wanted.in_row(topic, brokers)

    def serving(self, broker: int) -> NDArray[np.bool_]:
        """Which topics (topics) the broker network is to deliver to the broker."""
        return self.wanted.in_column(broker) > 0

    def all_serving(self) -> NDArray[np.bool_]:
        """The same of all brokers (topics, brokers)."""
        return self.wanted.dense() > 0

    def table(self, published: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """One row per topic with publications: their number, and the brokers and users that want it now."""
        topics = np.flatnonzero(published)
        publications, users = published[topics], self.users_wanting[topics]
        return {
            "topic": topics,
            "publications": publications,
            "brokers": self.brokers_wanting[topics],
            "users": users,
            "copies": publications * users,
        }


class SplitSubscriptions(Subscriptions):
    """Subscriptions with offloading: the back end serves only topics that are `kept` (topics, brokers)."""

    def __init__(
        self, topics: int, brokers: int, transition: Callable[[int, int, int], None], kept: NDArray[np.bool_]
    ) -> None:
        super().__init__(topics, brokers, transition)
        self._kept = kept
        self.brokers_served, self.users_served = np.zeros(topics, np.int64), np.zeros(topics, np.int64)
        self.state.set(splits=True)
        self.state.use(kept=kept, brokers_served=self.brokers_served, users_served=self.users_served)

    def miss(self, topics: NDArray[np.int32], change: int) -> None:
        """Count absent users, whom the back end is to serve, whatever it keeps."""
        super().miss(topics, change)
        self.users_served[topics] += change

    def split(self, topic: int) -> None:
        """Recount the served users after the topic was offloaded or taken back for some broker."""
        served = np.where(self._kept[topic], self.wanted.row(topic), 0)
        self.brokers_served[topic] = int(np.count_nonzero(served))
        self.users_served[topic] = int(served.sum()) + self.absent[topic]
        self.version[topic] += 1

    def offloaded(self, topic: int) -> Offloaded:
        """The brokers that want the topic without being served by the back end, and their users."""
        users = np.where(self._kept[topic], 0, self.wanted.row(topic))
        brokers = np.flatnonzero(users).astype(np.int32)
        return Offloaded(brokers, users[brokers])

    def served_at(self, topic: int, brokers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The users of these brokers that want the topic, where it is kept."""
        return np.where(self._kept[topic, brokers], super().served_at(topic, brokers), 0)

    def serving(self, broker: int) -> NDArray[np.bool_]:
        """Which topics (topics) are wanted at the broker and kept for it."""
        return self._kept[:, broker] & super().serving(broker)

    def all_serving(self) -> NDArray[np.bool_]:
        """The same of all brokers (topics, brokers)."""
        return self._kept & super().all_serving()
