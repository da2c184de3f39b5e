"""Users: their interests, positions and brokers, and the changes of these."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.brokers.fabric.clock import CONTROL, Clock, Feed
from sim.brokers.users.subscriptions import Subscriptions, frozen
from sim.policies.views import SelectionPolicy, SelectionView
from sim.workloads.format.workload import Interests, Workload

HANDOVER_MESSAGES = 4  # request, reply, leave, join


class UserStatistics(Protocol):
    """What is recorded of users: events by name when they happen, the load of brokers, and who hosts and wants what."""

    warm_up: float
    bootstrap_messages: int

    def count(self, name: str, time: float, amount: int = 1) -> None:
        """So many of what has this name have happened at a time (s)."""

    def load_changed(self, now: float, brokers: int, total: int, squares: int) -> None:
        """From `now` on the brokers host `total` user subscriptions whose squares sum up to `squares`."""

    def attached(self, user: int, broker: int) -> None:
        """The broker hosts the user from now on."""

    def interest_changed(self, user: int, topic: int, action: int) -> None:
        """The user begins (+1) or ceases (-1) to want the topic."""


class HostedUsers:
    """All users, attached to brokers by a selection policy.

    The changes of one user at one instant are one update: the policy is asked once, with the interests and place that result, and
    the user is then at one broker with them. At a handover the user is added at the new broker before it is removed at the old.
    `before_change()` is called before anything changes, `changed()` when everything has that changes at one instant.
    """

    def __init__(
        self,
        clock: Clock,
        workload: Workload,
        policy: SelectionPolicy,
        subscriptions: Subscriptions,
        recorder: UserStatistics,
        before_change: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._clock, self._workload, self._policy = clock, workload, policy
        self._subscriptions, self._recorder, self._before_change, self._report = (
            subscriptions,
            recorder,
            before_change,
            changed,
        )
        self.host = np.full(len(workload.users), -1, np.int32)
        self.latitude = workload.users.latitude.copy()
        self.longitude = workload.users.longitude.copy()
        self._changed: dict[int, list[int]] = {}  # interests that are no longer those at time 0
        self._exchanged = subscriptions.unknown()
        self.decided_at = array("d")  # s; with it, (user, from, broker) of each decision to move
        self.decisions = array("i")
        self._by_subscription = "subscription" in policy.reacts_to
        self._by_movement = "movement" in policy.reacts_to
        brokers = len(subscriptions.load)
        self._since = [0.0] * brokers  # load and users are constant since then
        self.load_area = [0.0] * brokers
        self.users_area = [0.0] * brokers

    def wants(self, user: int) -> list[int]:
        """The topics that the user wants now, ascending."""
        changed = self._changed.get(user)
        if changed is not None:
            return changed
        interests = self._workload.interests
        initial: list[int] = interests.indices[interests.indptr[user] : interests.indptr[user + 1]].tolist()
        return initial

    def interests(self) -> Interests:
        """What all users want now."""
        initial = self._workload.interests
        if not self._changed:
            return initial
        before = np.diff(initial.indptr)
        sizes, same = before.copy(), np.ones(len(before), np.bool_)
        changed = sorted(self._changed)
        sizes[changed], same[changed] = [len(self._changed[user]) for user in changed], False
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices, kept = np.empty(indptr[-1], np.int32), np.repeat(same, sizes)
        indices[kept] = initial.indices[np.repeat(same, before)]
        indices[~kept] = list(chain.from_iterable(self._changed[user] for user in changed))
        return Interests(indptr, indices)

    # -- joining

    def join_all(self) -> None:
        """Attach all users one by one; brokers exchange states at least every 500 joins, and a hundred times in all."""
        every = max(1, min(500, len(self.host) // 100))
        for user in range(len(self.host)):
            if user % every == 0:
                self._recorder.bootstrap_messages += self._exchange()
            topics = self.wants(user)
            self._attach(user, self._select(user, topics, topics), topics)
        self._recorder.bootstrap_messages += self._exchange()

    def start(self) -> None:
        """Start the exchange of states."""
        self._load_changed()
        exchange = self._policy.exchange
        if exchange is not None:
            Feed(self._clock, CONTROL, self._exchange_again).start(exchange.period)

    def _exchange_again(self) -> float | None:
        self._recorder.count("subscription_overhead", self._clock.now, self._exchange())
        assert self._policy.exchange is not None
        return self._clock.now + self._policy.exchange.period

    def _exchange(self) -> int:
        """Brokers send the others of their cluster their states; returns how many messages that takes."""
        exchange = self._policy.exchange
        if exchange is None:
            return 0
        self._exchanged = self._subscriptions.unknown()  # lets the last ones go before the next are copied
        self._exchanged = self._subscriptions.states()
        sizes = np.bincount(exchange.cluster)
        return int((sizes * (sizes - 1)).sum())

    # -- deciding

    def _select(self, user: int, topics: list[int], registered: list[int]) -> int:
        """Ask the policy for a user that wants `topics` and is registered at its broker with `registered`."""
        subscriptions = self._subscriptions
        current = int(self.host[user])
        wanted = frozen(np.array(topics, np.int32))
        if current < 0:
            own, own_topics, own_load, own_users = frozen(np.zeros(len(topics), np.int32)), 0, 0, 0
        else:
            column = subscriptions.wanted[:, current]
            held = set(registered)
            own = frozen(column[wanted] - np.array([topic in held for topic in topics], np.int32))
            own_topics = subscriptions.topics[current] - column[registered].tolist().count(1)
            own_load = subscriptions.load[current] - len(registered)
            own_users = subscriptions.users[current] - 1
        return self._policy.select(
            SelectionView(
                self._clock.now,
                user,
                current,
                wanted,
                float(self.latitude[user]),
                float(self.longitude[user]),
                self._exchanged,
                own,
                own_topics,
                own_load,
                own_users,
                subscriptions.total,
            )
        ).broker

    # -- enacting

    def _attach(self, user: int, broker: int, topics: list[int]) -> None:
        """Move the user to the broker with these topics: added there first, then removed where it was."""
        subscriptions = self._subscriptions
        former = int(self.host[user])
        before = self.wants(user)
        self.decided_at.append(self._clock.now)
        self.decisions.extend((user, former, broker))
        self._touch(broker)
        for topic in topics:
            subscriptions.add(topic, broker)
        subscriptions.users[broker] += 1
        self.host[user] = broker
        self._recorder.attached(user, broker)
        if former >= 0:
            self._touch(former)
            for topic in before:
                subscriptions.remove(topic, former)
            subscriptions.users[former] -= 1
            self._recorder.count("handovers", self._clock.now)
            self._recorder.count("handover_messages", self._clock.now, HANDOVER_MESSAGES)

    def _update(self, user: int, topics: list[int]) -> None:
        """The user stays at its broker and wants these topics now."""
        before = self.wants(user)
        if topics == before:
            return
        broker = self.host.item(user)
        self._touch(broker)
        kept = set(before)
        for topic in topics:
            if topic not in kept:
                self._subscriptions.add(topic, broker)
        kept = set(topics)
        for topic in before:
            if topic not in kept:
                self._subscriptions.remove(topic, broker)

    def _touch(self, broker: int) -> None:
        """Integrate a broker's load and users up to now (from the end of the warm-up on)."""
        since = max(self._since[broker], self._recorder.warm_up)
        now = self._clock.now
        if now > since:
            self.load_area[broker] += self._subscriptions.load[broker] * (now - since)
            self.users_area[broker] += self._subscriptions.users[broker] * (now - since)
        self._since[broker] = now

    def _load_changed(self) -> None:
        s = self._subscriptions
        self._recorder.load_changed(self._clock.now, len(s.load), s.total, s.squares)

    def selections(self) -> dict[str, NDArray[Any]]:
        """The broker of each user from which time on, as columns of a table; `from` is -1 at the first attachment."""
        user, former, broker = np.array(self.decisions, np.int32).reshape(-1, 3).T
        return {"time": np.array(self.decided_at), "user": user, "from": former, "broker": broker}

    def close(self) -> None:
        """Account for the time up to the end."""
        for broker in range(len(self._since)):
            self._touch(broker)

    # -- changes from outside

    def enact(self, changing: Iterable[int], moving: Iterable[int]) -> None:
        """Enact rows of subscription events and movements, of one instant: interests, then places, then a decision per user."""
        self._before_change()
        events, movements = self._workload.subscription_events, self._workload.movements
        touched: dict[int, list[int]] = {}  # user → topics that result
        ask: dict[int, None] = {}
        for row in changing:
            user = events.user.item(row)
            if user not in touched:
                touched[user] = list(self.wants(user))
                if self._by_subscription:
                    ask[user] = None
            self._apply(user, touched[user], row)
        for row in moving:
            user = movements.user.item(row)
            self.latitude[user] = movements.latitude[row]
            self.longitude[user] = movements.longitude[row]
            if self._by_movement:
                ask[user] = None
        for user in dict.fromkeys((*touched, *ask)):
            topics = touched[user] if user in touched else self.wants(user)
            host = self.host.item(user)
            broker = self._select(user, topics, self.wants(user)) if user in ask else host
            if broker == host:
                self._update(user, topics)
            else:
                self._attach(user, broker, topics)
            if user in touched:
                self._changed[user] = topics
        if touched or ask:
            self._load_changed()
            self._report()

    def _apply(self, user: int, topics: list[int], row: int) -> None:
        events = self._workload.subscription_events
        topic, action = events.topic.item(row), events.action.item(row)
        if (action > 0) == (topic in topics):
            state = "wants it already" if action > 0 else "does not want it"
            raise WorkloadError(
                f"subscription_events.parquet: row {row}: user {user} "
                f"{'subscribes to' if action > 0 else 'unsubscribes from'} topic {topic} but {state}"
            )
        self._recorder.interest_changed(user, topic, action)
        if action > 0:
            topics.append(topic)
            topics.sort()
        else:
            topics.remove(topic)
