"""To whom publications become due, and when: decided only here, for topics and content, on every data plane.

A publication becomes due when it leaves its root, to all who want it at that moment and whom the back end serves. A publication
that is dropped on the way to its root becomes due at that moment, and one that has not reached it by the end, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.content_subscriptions import ContentSubscriptions
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.records import NOBODY, Offloaded
from sim.brokers.users.sharing import NO_MEMBER, NOBODY_CHOSEN, Chosen
from sim.brokers.users.subscriptions import SplitSubscriptions, Subscriptions

_NONE: NDArray[np.int32] = np.empty(0, np.int32)


class Due(NamedTuple):
    """The brokers and users that publications on a topic are due to from one moment on.

    The numbers of `brokers`, `users` and `absent` users of these, connected to no broker. `on_tree` (tree positions): users due at
    each broker of the tree. `audience` are the users themselves, where they are kept; `offloaded` are brokers that the back end does
    not serve, to which it is due as well. `groups` are those of whom a member is still to be chosen.
    """

    brokers: int
    users: int
    on_tree: NDArray[np.int32]
    audience: Audience | None
    offloaded: Offloaded
    absent: int = 0
    groups: int = 0


class DueByTopic:
    """Due by topic: a publication is due to all who subscribe to its topic, but only to one of each group that shares that."""

    def __init__(self, recorder: Recorder, subscriptions: Subscriptions) -> None:
        self._audiences, self.subscriptions = recorder.audiences, subscriptions
        self.shared = subscriptions.shared
        self._splits = subscriptions if isinstance(subscriptions, SplitSubscriptions) else None

    def leaving_root(self, topic: int, brokers: NDArray[np.int32]) -> Due:
        """To whom it is due as it leaves the root of a tree over these brokers."""
        live, offloaded = self.subscriptions, NOBODY
        due = live.brokers_served.item(topic)
        if self._splits is not None and due < live.brokers_wanting.item(topic):
            offloaded = self._splits.offloaded(topic)
        users, absent = live.users_served.item(topic), live.absent.item(topic)
        audience = None if self._audiences is None else self._audience(topic)
        return Due(due, users, live.served_at(topic, brokers), audience, offloaded, absent)

    def short_of_root(self, topic: int) -> Due:
        """To whom it is due if it does not reach its root."""
        live = self.subscriptions
        if (
            self.shared is not None and topic in self.shared
        ):  # nobody has been chosen: the groups' pairs are at no broker
            return self.leaving_with(topic, _NONE, NOBODY_CHOSEN)
        return Due(
            live.brokers_wanting.item(topic), live.users_wanting.item(topic), _NONE, self._audience(topic), NOBODY
        )

    def leaving_with(self, topic: int, brokers: NDArray[np.int32], chosen: Chosen) -> Due:
        """To whom a publication on a shared topic is due with the chosen members, as it leaves the root of a tree over these brokers.

        Groups of whom nobody is chosen are due as well, at no broker.
        """
        assert self.shared is not None
        own, counts, absent, groups, deserted = self.shared.roster(topic)
        users, hosts = own.users, own.brokers
        if chosen.users:
            counts = counts.copy()
            there = np.array([host for host in chosen.hosts if host != NO_MEMBER], np.int32)
            np.add.at(counts, there, 1)
            users = np.concatenate([users, np.array([user for user in chosen.users if user != NO_MEMBER], np.int64)])
            hosts = np.concatenate([hosts, there])
        nowhere = absent + deserted + chosen.users.count(NO_MEMBER)
        audience = Audience(topic, own.version, users, hosts)
        due = len(own.users) + len(groups) + deserted
        to_choose = len(groups) - len(chosen.users)
        return Due(int(np.count_nonzero(counts)), due, counts.take(brokers), audience, NOBODY, nowhere, to_choose)

    def _audience(self, topic: int) -> Audience | None:
        return (
            None if self._audiences is None else self._audiences.audience(topic, self.subscriptions.version.item(topic))
        )


class DueByContent:
    """Due by content: a publication is due to all users with a matching subscription, by the first copy that concerns them.

    `host()` is the live broker of each user.
    """

    def __init__(self, content: ContentSubscriptions, host: Callable[[], NDArray[np.int32]]) -> None:
        self._content, self._host = content, host

    def concerned(self, number: int, topic: int, due: dict[int, int]) -> tuple[dict[int, list[int]], int, int]:
        """The users at each broker whom a publication's copy to a topic concerns, and the numbers of newly due brokers and users.

        `due` maps each user to the broker at which the publication is due so far, and is updated. A user concerned by the copy
        counts only at the broker where it is due to the user.
        """
        host, brokers = self._host(), set(due.values())
        at: dict[int, list[int]] = {}
        users = 0
        for user in self._content.concerned(number, topic):
            broker = int(host[user])
            here = at.setdefault(broker, [])
            if user not in due:
                due[user] = broker
                users += 1
            if due[user] == broker:
                here.append(user)
        return at, len(set(due.values())) - len(brokers), users
