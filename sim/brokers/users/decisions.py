"""Decisions of the selection policy: its views, and the broker of a user."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers, frozen
from sim.brokers.fabric.clock import Clock
from sim.brokers.users.subscriptions import Subscriptions
from sim.policies.views import SelectionPolicy, SelectionView, SelectionViews, many_at_once
from sim.workloads.format.workload import Interests

NOWHERE = -1
"""The broker of an unconnected user."""


class Decisions:
    """Asks the policy about users with live `host` (below 0: at no broker) and `places`, their latitudes and longitudes.

    `initial` are the interests with which they join; the states of brokers that the policy sees are those last `exchanged`.
    """

    def __init__(
        self,
        policy: SelectionPolicy,
        clock: Clock,
        initial: Interests,
        subscriptions: Subscriptions,
        host: NDArray[np.int32],
        places: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        self._policy, self._clock, self._initial, self._subscriptions = policy, clock, initial, subscriptions
        self._host, (self._latitude, self._longitude) = host, places
        self.exchanged = subscriptions.unknown()

    @property
    def period(self) -> float | None:
        """The period (s) of exchanges of states; None without exchanges."""
        return None if self._policy.exchange is None else self._policy.exchange.period

    def exchange(self) -> int:
        """Brokers send their states to the others of their cluster; returns the number of messages."""
        exchange = self._policy.exchange
        if exchange is None:
            return 0
        self.exchanged = self._subscriptions.unknown()  # frees the previous states before the next are copied
        self.exchanged = self._subscriptions.states()
        sizes = np.bincount(exchange.cluster)
        return int((sizes * (sizes - 1)).sum())

    def join(self, first: int, last: int) -> Integers | None:
        """The brokers for users `first` to `last` - 1, who join one after the other; None where the policy is asked one by one."""
        select_all = many_at_once(self._policy)
        return None if select_all is None else select_all(self._joining(first, last))

    def _joining(self, first: int, last: int) -> SelectionViews:
        """The views of users who join one after the other, which do not depend on the brokers chosen for others."""
        initial, nothing = self._initial, frozen(np.zeros(last - first, np.int64))
        indptr = initial.indptr[first : last + 1] - initial.indptr[first]
        topics = initial.indices[initial.indptr[first] : initial.indptr[last]]
        return SelectionViews(
            frozen(np.full(last - first, self._clock.now)),
            frozen(np.arange(first, last, dtype=np.int32)),
            frozen(np.full(last - first, -1, np.int32)),
            frozen(indptr),
            frozen(topics.view()),
            frozen(self._latitude[first:last].copy()),
            frozen(self._longitude[first:last].copy()),
            self.exchanged,
            frozen(np.zeros(len(topics), np.int32)),
            nothing,
            nothing,
            nothing,
            frozen(self._subscriptions.total + indptr[:-1]),
        )

    def select(self, user: int, topics: NDArray[np.int32], registered: NDArray[np.int32]) -> int:
        """Ask the policy for a user that wants `topics` and is registered at its broker with `registered`."""
        subscriptions = self._subscriptions
        current = max(int(self._host[user]), NOWHERE)
        wanted = frozen(topics.copy())
        if current < 0:
            own, own_topics, own_load, own_users = frozen(np.zeros(len(topics), np.int32)), 0, 0, 0
        else:
            users, held = subscriptions.wanted.in_column, set(registered.tolist())
            own = frozen(users(current, wanted) - np.array([topic in held for topic in topics.tolist()], np.int32))
            own_topics = subscriptions.topics.item(current) - users(current, registered).tolist().count(1)
            own_load = subscriptions.load.item(current) - len(registered)
            own_users = subscriptions.users.item(current) - 1
        return self._policy.select(
            SelectionView(
                self._clock.now,
                user,
                current,
                wanted,
                float(self._latitude[user]),
                float(self._longitude[user]),
                self.exchanged,
                own,
                own_topics,
                own_load,
                own_users,
                subscriptions.total,
            )
        ).broker
