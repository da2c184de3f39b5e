"""Users of brokers per topic, with callbacks when a broker's first user comes or its last one leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.brokers.statistics.records import Offloaded
from sim.policies.views import BrokerStates


class Subscriptions:
    """Users of each broker that want each topic, with loads and their sum of squares kept up to date.

    `transition(topic, broker, +1 | -1)` is called when a broker begins or ceases to want a topic, after the count has changed.
    What is `served` is what the broker network is to deliver: all that is wanted, unless some is offloaded (SplitSubscriptions).
    """

    def __init__(self, topics: int, brokers: int, transition: Callable[[int, int, int], None]) -> None:
        self.wanted = np.zeros((topics, brokers), np.int32)
        self.brokers_wanting = [0] * topics  # per topic: how many brokers, and users, want it
        self.users_wanting = [0] * topics
        self.served, self.brokers_served, self.users_served = self.wanted, self.brokers_wanting, self.users_wanting
        self.version = [0] * topics  # per topic: changes so far
        self.topics = [0] * brokers
        self.load = [0] * brokers
        self.users = [0] * brokers
        self.total = 0
        self.squares = 0
        self._transition = transition

    def add(self, topic: int, broker: int) -> None:
        """One more user of the broker wants the topic."""
        row = self.wanted[topic]
        before = row[broker]
        row[broker] = before + 1
        self.squares += 2 * self.load[broker] + 1
        self.load[broker] += 1
        self.total += 1
        self.users_wanting[topic] += 1
        self.version[topic] += 1
        if before == 0:
            self.brokers_wanting[topic] += 1
            self.topics[broker] += 1
            self._transition(topic, broker, +1)

    def remove(self, topic: int, broker: int) -> None:
        """One user fewer of the broker wants the topic."""
        row = self.wanted[topic]
        before = row[broker]
        row[broker] = before - 1
        self.squares -= 2 * self.load[broker] - 1
        self.load[broker] -= 1
        self.total -= 1
        self.users_wanting[topic] -= 1
        self.version[topic] += 1
        if before == 1:
            self.brokers_wanting[topic] -= 1
            self.topics[broker] -= 1
            self._transition(topic, broker, -1)

    def states(self) -> BrokerStates:
        """A copy of all states as they are now, read-only."""
        return BrokerStates(
            frozen(self.wanted.copy()),
            frozen(np.array(self.topics, np.int64)),
            frozen(np.array(self.load, np.int64)),
            frozen(np.array(self.users, np.int64)),
        )

    def unknown(self) -> BrokerStates:
        """The states before the first exchange: empty."""
        nothing = np.broadcast_to(np.int64(0), len(self.load))
        return BrokerStates(np.broadcast_to(np.int32(0), self.wanted.shape), nothing, nothing, nothing)


class SplitSubscriptions(Subscriptions):
    """Subscriptions of which the back end serves only those to topics that it keeps: `kept` (topics, brokers), true where it does."""

    def __init__(
        self, topics: int, brokers: int, transition: Callable[[int, int, int], None], kept: NDArray[np.bool_]
    ) -> None:
        super().__init__(topics, brokers, transition)
        self._kept = kept
        self.served = np.zeros((topics, brokers), np.int32)
        self.brokers_served, self.users_served = [0] * topics, [0] * topics

    def add(self, topic: int, broker: int) -> None:
        """One more user of the broker wants the topic."""
        if self._kept[topic, broker]:
            self.brokers_served[topic] += int(self.served[topic, broker] == 0)
            self.served[topic, broker] += 1
            self.users_served[topic] += 1
        super().add(topic, broker)

    def remove(self, topic: int, broker: int) -> None:
        """One user fewer of the broker wants the topic."""
        if self._kept[topic, broker]:
            self.served[topic, broker] -= 1
            self.users_served[topic] -= 1
            self.brokers_served[topic] -= int(self.served[topic, broker] == 0)
        super().remove(topic, broker)

    def split(self, topic: int) -> None:
        """Recount who is served after the topic was offloaded or taken back for some broker."""
        served = np.where(self._kept[topic], self.wanted[topic], 0)
        self.served[topic] = served
        self.brokers_served[topic] = int(np.count_nonzero(served))
        self.users_served[topic] = int(served.sum())
        self.version[topic] += 1

    def offloaded(self, topic: int) -> Offloaded:
        """The brokers that want the topic without being served by the back end, and their users."""
        users = self.wanted[topic] - self.served[topic]
        brokers = np.flatnonzero(users).astype(np.int32)
        return Offloaded(brokers, users[brokers])


Number = TypeVar("Number", bound=np.generic)


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """The array, made read-only."""
    array.flags.writeable = False
    return array
