"""The present interests of users: their initial ones or, for users who change, those in separate memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.brokers.users.change_kernels import hold_initial, rooms
from sim.brokers.users.state import UserState
from sim.workloads.format.workload import Interests, SubscriptionEvents, Workload


class HeldInterests:
    """The interests of all users, in arrays that compiled changes of subscriptions share."""

    def __init__(self, workload: Workload, state: UserState) -> None:
        self._initial, self._changes = workload.interests, len(workload.subscription_events) > 0
        state.use(indptr=self._initial.indptr, indices=self._initial.indices)
        if not self._changes:
            return
        most = rooms(state.records, np.diff(self._initial.indptr))
        self._room = np.concatenate([[0], np.cumsum(most)])
        self._held = np.empty(int(self._room[-1]), np.int32)
        self._many = np.zeros(len(most), np.int32)
        state.use(room=self._room, held=self._held, held_many=self._many)
        state.set(held_by=True)
        hold_initial(state.records)

    def of(self, user: int) -> NDArray[np.int32]:
        """The topics that the user wants now, ascending; a view that must be neither kept nor changed."""
        if self._changes and self._room.item(user) < self._room.item(user + 1):
            first = self._room.item(user)
            return self._held[first : first + self._many.item(user)]
        indptr = self._initial.indptr
        return self._initial.indices[indptr.item(user) : indptr.item(user + 1)]

    def after(self, user: int, events: SubscriptionEvents) -> NDArray[np.int32]:
        """The topics that the user will want, ascending, after these events of its own, which are valid."""
        topics: list[int] = self.of(user).tolist()
        for topic, action in zip(events.topic.tolist(), events.action.tolist(), strict=True):
            (topics.append if action > 0 else topics.remove)(topic)
        return np.array(sorted(topics), np.int32)

    def change(self, user: int, topics: NDArray[np.int32]) -> None:
        """Set the topics that the user wants, ascending."""
        first = self._room.item(user)
        self._held[first : first + len(topics)] = topics
        self._many[user] = len(topics)

    def all(self) -> Interests:
        """The present interests of all users."""
        if not self._changes:
            return self._initial
        initial, changing = self._initial, np.diff(self._room) > 0
        before = np.diff(initial.indptr)
        sizes = np.where(changing, self._many, before)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices, same = np.empty(indptr[-1], np.int32), np.repeat(~changing, sizes)
        indices[same] = initial.indices[np.repeat(~changing, before)]
        held = np.arange(len(self._held)) - np.repeat(self._room[:-1], np.diff(self._room))
        indices[~same] = self._held[held < np.repeat(self._many, np.diff(self._room))]
        return Interests(indptr, indices)
