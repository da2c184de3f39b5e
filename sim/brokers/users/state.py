"""The state of users and their subscriptions: one record with the addresses of arrays, which kernels change in place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items

_COUNTS = (
    "brokers",
    "topics_many",  # how many there are; and of users, events and movements
    "users_many",
    "events",
    "movements",
    "splits",  # whether some topics may be offloaded
    "held_by",  # whether interests change
    "by_subscription",  # whether the policy reacts to that
    "by_movement",
    "asks",  # whether it can be asked for many at once
    "total",  # user subscriptions
    "squares",  # the sum of the squares of brokers' loads
    "event",  # the next rows to be enacted, and the first rows whose effects are not known
    "movement",
    "event_end",
    "movement_end",
)
_ARRAYS = {
    "kept": np.bool_,  # topics × brokers, where some may be offloaded
    "brokers_wanting": np.int64,  # by topic
    "users_wanting": np.int64,
    "brokers_served": np.int64,
    "users_served": np.int64,
    "version": np.int64,
    "topics": np.int64,  # by broker
    "load": np.int64,
    "users": np.int64,
    "since": np.float64,
    "load_area": np.float64,
    "users_area": np.float64,
    "host": np.int32,  # by user
    "latitude": np.float64,
    "longitude": np.float64,
    "indptr": np.int64,  # the initial interests of each user
    "indices": np.int32,
    "room": np.int64,  # where there is room for what each wants now
    "held": np.int32,
    "held_many": np.int32,
    "event_time": np.float64,  # subscription events
    "event_user": np.int32,
    "event_topic": np.int32,
    "event_action": np.int8,
    "movement_time": np.float64,
    "movement_user": np.int32,
    "movement_latitude": np.float64,
    "movement_longitude": np.float64,
    "left_latitude": np.float64,  # the users' positions before movements that are tried out
    "left_longitude": np.float64,
    "view_time": np.float64,  # what policies are asked
    "view_user": np.int32,
    "view_indptr": np.int64,
    "view_topics": np.int32,
    "view_own_wanted": np.int32,
    "view_current": np.int32,
    "view_latitude": np.float64,
    "view_longitude": np.float64,
    "view_own_topics": np.int64,
    "view_own_load": np.int64,
    "view_own_users": np.int64,
    "view_total_load": np.int64,
    "view_event": np.int64,  # the first rows of the instant
    "view_movement": np.int64,
}
"""Arrays and their types; the record has an address for each."""

USER_STATE = np.dtype(
    [(name, "i8") for name in (*_COUNTS, *_ARRAYS, "wanted", "balance")] + [("warm_up", "f8"), ("next", "f8")],
    align=True,
)
"""All of it; `next` is the time (s) of the next rows that are to be enacted, infinite where there are none."""


class UserState:
    """The record for kernels (`records`) and by itself (`record`), and the arrays whose addresses it holds, by name."""

    def __init__(self) -> None:
        self.records = np.zeros(1, USER_STATE)
        self.record: Item = self.records[0]
        self.arrays: dict[str, Items] = {}

    def use(self, **arrays: NDArray[np.generic]) -> None:
        """Give kernels the addresses of arrays."""
        for name, array in arrays.items():
            assert array.dtype == _ARRAYS[name], name
            assert array.flags.c_contiguous, name
            self.arrays[name] = array
            self.record[name] = array.ctypes.data

    def set(self, **numbers: float) -> None:
        """Set numbers of the record."""
        for name, number in numbers.items():
            self.record[name] = number
