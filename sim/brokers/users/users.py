"""Users: their interests, positions and brokers, and changes of these."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.base.errors import WorkloadError
from sim.brokers.fabric.clock import CONTROL, Clock, Feed
from sim.brokers.fabric.outages import Outages
from sim.brokers.statistics.averages import TimeAverage
from sim.brokers.statistics.balance import LoadBalance
from sim.brokers.statistics.receipts import Audiences
from sim.brokers.users.ahead import Ahead, use_workload
from sim.brokers.users.change_kernels import load_changed, touch_all, touch_broker
from sim.brokers.users.decisions import NOWHERE, Decisions
from sim.brokers.users.interests import HeldInterests
from sim.brokers.users.subscriptions import Subscriptions
from sim.policies.views import SelectionPolicy
from sim.workloads.format.workload import Workload

HANDOVER_MESSAGES = 4  # request, reply, leave, join


class UserStatistics(Protocol):
    """The records of users: events by name when they happen, the brokers' load, and the users' brokers and interests."""

    warm_up: float
    bootstrap_messages: int
    balance: LoadBalance
    users_absent: TimeAverage
    audiences: Audiences | None

    def count(self, name: str, time: float, amount: int = 1) -> None:
        """Add to the count of this name at a time (s)."""

    def attached(self, user: int, broker: int) -> None:
        """The broker hosts the user from now on."""

    def interest_changed(self, user: int, topic: int, action: int) -> None:
        """The user begins (+1) or ceases (-1) to want the topic."""


class HostedUsers:
    """All users, attached to brokers by a selection policy.

    The changes of one user at one instant are one update: the policy is asked once, with the resulting interests and place, and the
    user is then at one broker with them. At a handover the user is added at the new broker before it is removed at the old.
    `before_change()` is called before anything changes, `changed()` after all changes of one instant. A user whom
    the policy sends to a broker that is down or being drained stays where it is.
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
        outages: Outages | None = None,
    ) -> None:
        self._clock, self._workload, self._subscriptions = clock, workload, subscriptions
        self._recorder, self._before_change, self._report, self._outages = recorder, before_change, changed, outages
        self.numbers = subscriptions.users  # how many users each broker hosts
        self.host = np.full(len(workload.users), NOWHERE, np.int32)  # ~b: nowhere, since its broker b has crashed
        self.absent = 0  # users of whom that is true
        self.elsewhere: Callable[[int], int] | None = None  # where users go whom the policy sends to a broker at first
        self.latitude, self.longitude = workload.users.latitude.copy(), workload.users.longitude.copy()
        state = subscriptions.state
        state.set(users_many=len(self.host), warm_up=recorder.warm_up, balance=recorder.balance.records.ctypes.data)
        use_workload(workload, state)
        self._records, self.interests = state.records, HeldInterests(workload, state)
        self.decided_at = array("d")  # s; with it, (user, from, broker) of each move
        self.decisions = array("i")
        self._by_subscription = "subscription" in policy.reacts_to
        self._by_movement = "movement" in policy.reacts_to
        brokers = len(subscriptions.load)
        self.load_area, self.users_area = np.zeros(brokers), np.zeros(brokers)  # integrated up to `since`
        state.use(host=self.host, latitude=self.latitude, longitude=self.longitude, since=np.zeros(brokers))
        state.use(load_area=self.load_area, users_area=self.users_area)
        report = None if recorder.audiences is None else recorder.interest_changed
        subscriptions.wanted.expect(np.bincount(workload.interests.indices, minlength=len(workload.topics)))
        known = workload.interests, subscriptions, self.host, (self.latitude, self.longitude)
        self._decisions, self._ahead = Decisions(policy, clock, *known), Ahead(workload, policy, subscriptions, report)

    def join_all(self) -> None:
        """Attach all users one by one; brokers exchange states at least every 500 joins, and a hundred times in all."""
        users, decisions = len(self.host), self._decisions
        every = max(1, min(500, users // 100))
        for first in range(0, users, every):
            self._recorder.bootstrap_messages += decisions.exchange()
            last = min(first + every, users)
            if self.elsewhere is None and (brokers := decisions.join(first, last)) is not None:
                self._join_together(brokers, first, last)
                continue
            for user in range(first, last):
                topics = self.interests.of(user)
                broker = decisions.select(user, topics, topics)
                self._attach(user, broker if self.elsewhere is None else self.elsewhere(broker), topics)
        self._recorder.bootstrap_messages += decisions.exchange()

    def _join_together(self, brokers: Integers, first: int, last: int) -> None:
        indptr = self._workload.interests.indptr
        self._subscriptions.join(first, brokers, int(indptr[last] - indptr[first]))
        for user, broker in enumerate(brokers.tolist(), first):
            self.decided_at.append(self._clock.now)
            self.decisions.extend((user, -1, broker))
            self._recorder.attached(user, broker)

    def start(self) -> None:
        """Start the exchange of states."""
        load_changed(self._records, self._clock.now)
        Feed(self._clock, CONTROL, self._exchange_again).start(self._decisions.period)

    def _exchange_again(self) -> float | None:
        self._recorder.count("subscription_overhead", self._clock.now, self._decisions.exchange())
        period = self._decisions.period
        return None if period is None else self._clock.now + period

    def _attach(self, user: int, broker: int, topics: NDArray[np.int32]) -> None:
        """Move the user to the broker with these topics: added there first, then removed where it was."""
        subscriptions = self._subscriptions
        former = max(int(self.host[user]), NOWHERE)
        before = self.interests.of(user)
        self.decided_at.append(self._clock.now)
        self.decisions.extend((user, former, broker))
        touch_broker(self._records, broker, self._clock.now)
        subscriptions.change(topics, broker, +1)
        subscriptions.users[broker] += 1
        self.host[user] = broker
        self._recorder.attached(user, broker)
        if former >= 0:
            touch_broker(self._records, former, self._clock.now)
            subscriptions.change(before, former, -1)
            subscriptions.users[former] -= 1
            self._recorder.count("handovers", self._clock.now)
            self._recorder.count("handover_messages", self._clock.now, HANDOVER_MESSAGES)

    def _update(self, user: int, after: list[int]) -> None:
        """Update the interests of a user who stays at its broker."""
        before = self.interests.of(user).tolist()
        if after == before:
            return
        broker = self.host.item(user)
        if broker < 0:
            self._subscriptions.miss(self.interests.of(user), -1)
            self._subscriptions.miss(np.array(after, np.int32), +1)
            return
        touch_broker(self._records, broker, self._clock.now)
        for change, some, others in ((+1, after, before), (-1, before, after)):
            held = set(others)
            if topics := [topic for topic in some if topic not in held]:
                self._subscriptions.change(topics, broker, change)

    # -- brokers that crash

    def leave(self, broker: int) -> list[int]:
        """All users of a broker that has crashed are connected to none from now on; returns them, ascending."""
        self._before_change()
        self._subscriptions.catch_up(self._clock.now)
        gone: list[int] = np.flatnonzero(self.host == broker).tolist()
        touch_broker(self._records, broker, self._clock.now)
        for user in gone:
            topics = self.interests.of(user)
            self._subscriptions.change(topics, broker, -1)
            self._subscriptions.miss(topics, +1)
            self.host[user] = ~broker
            self.decided_at.append(self._clock.now)
            self.decisions.extend((user, broker, NOWHERE))
            self._recorder.attached(user, NOWHERE)
        self._subscriptions.users[broker] -= len(gone)
        self._count_absent(len(gone))
        self._report()
        return gone

    def _count_absent(self, more: int) -> None:
        self.absent += more
        self._recorder.users_absent.set(self._clock.now, self.absent / len(self.host))
        load_changed(self._records, self._clock.now)

    def choice(self, user: int) -> int:
        """The broker that the policy chooses for a user, now."""
        return self._decisions.select(user, topics := self.interests.of(user), topics)

    def connect(self, user: int, broker: int) -> int:
        """The user, at no broker or another before, is connected to the broker now; returns to how many topics it subscribes."""
        self._before_change()
        self._subscriptions.catch_up(self._clock.now)
        topics, absent = self.interests.of(user), self.host.item(user) < 0
        if absent:
            self._subscriptions.miss(topics, -1)
        self._attach(user, broker, topics)
        self._count_absent(-absent)
        self._report()
        return len(topics)

    def selections(self) -> Columns:
        """The broker of each user from which time on, as columns of a table; -1 stands for none, at first and after a crash."""
        columns = dict(
            zip(("user", "from", "broker"), np.array(self.decisions, np.int32).reshape(-1, 3).T, strict=True)
        )
        return {"time": np.array(self.decided_at), **columns}

    def close(self) -> None:
        """Account for the time up to the end."""
        self.catch_up()
        touch_all(self._records, self._clock.now)

    # -- changes from outside

    def look_ahead(self, event: int, movement: int, until: float) -> tuple[int, int]:
        """Find the quiet changes (without effect on brokers) from these rows on, before `until` (s); returns the rows after them.

        They are enacted when subscriptions as of a later time are needed.
        """
        return self._ahead.look(event, movement, until, self._decisions.exchanged)

    def catch_up(self) -> None:
        """Enact the changes before now that are known ahead."""
        if self._subscriptions.next_change < self._clock.now:
            self._before_change()
            self._subscriptions.catch_up(self._clock.now)

    def enact(self, changing: list[int], moving: list[int]) -> None:
        """Enact rows of subscription events and movements, of one instant: interests, then places, then a decision per user."""
        self._before_change()
        self._subscriptions.catch_up(self._clock.now)
        if changing and not self.absent and self._enact_together(changing, moving):
            self._report()
            return
        events, movements = self._workload.subscription_events, self._workload.movements
        touched: dict[int, list[int]] = {}  # user → topics that result
        ask: dict[int, None] = {}
        for row in changing:
            user = events.user.item(row)
            if user not in touched:
                touched[user] = self.interests.of(user).tolist()
                if self._by_subscription:
                    ask[user] = None
            self._apply(user, touched[user], row)
        for row in moving:
            user = movements.user.item(row)
            self.latitude[user], self.longitude[user] = movements.latitude[row], movements.longitude[row]
            if self._by_movement:
                ask[user] = None
        for user in dict.fromkeys((*touched, *ask)):
            registered = self.interests.of(user)
            topics = np.array(touched[user], np.int32) if user in touched else registered
            host = self.host.item(user)
            broker = self._decisions.select(user, topics, registered) if user in ask and host >= 0 else host
            if self._outages is not None and broker != host and not self._outages.accepts(broker):
                broker = host
            if broker == host:
                self._update(user, topics.tolist())
            else:
                self._attach(user, broker, topics)
            if user in touched:
                self.interests.change(user, topics)
        if touched or ask:
            load_changed(self._records, self._clock.now)
            self._report()

    def _enact_together(self, changing: list[int], moving: list[int]) -> bool:
        """Enact an instant user by user, if compiled code can; not if brokers hold back others of the instant, or may be down."""
        if self._outages is not None and (self._by_subscription or moving):
            return False
        if enacted := self._ahead.enact(changing, moving, self._clock.now, self._decisions.exchanged, self._hand_over):
            load_changed(self._records, self._clock.now)
        return enacted

    def _hand_over(self, user: int, broker: int, rows: slice) -> None:
        """Hand a user over, with its events in these rows, which are valid."""
        after = self.interests.after(user, self._workload.subscription_events.rows(rows))
        self._attach(user, broker, after)
        self.interests.change(user, after)

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
