"""Flights: publications in transit."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.routes import Uplink
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.records import Offloaded
from sim.overlay.geometry import TopicTree

_NONE: NDArray[np.int32] = np.empty(0, np.int32)
_NOWHERE: NDArray[np.bool_] = np.empty(0, np.bool_)
_NO_INTS: list[int] = []
_NO_TIMES: list[float] = []
_NO_COPIES = array("i")
_NOTHING_LOST: dict[str, list[int]] = {}  # likewise


class Flight:
    """One publication on its way: up to the root, and from there down the tree as it stood when it left the root.

    `arrival` has one time (s) per tree position, NaN where nothing has arrived; `served` when the broker there had handled it,
    which is its delivery (the same list where brokers take no time); `due_users` the users due there; `depth` the hops that it
    took. `audience` are the users who wanted it when it left the root, if recorded. `pending` counts messages that are on a link or
    in a queue. The hops of a `traced` flight are added to the trace.

    `offloaded` are the brokers and users that the back end does not serve, if any.

    `identity` identifies it in keyed draws. For content, `new_users` are the users, by position, to whom the arrival is the
    delivery, and `duplicate_at_broker` is true where another copy was the broker's; otherwise they are empty. `lost` are the
    positions to or at which a copy was lost, by cause, with it what is due beyond; `missed` likewise, without.

    If it is flooded, `copies` has the positions from and to of all messages in turn, and `senders` the position from which the
    first one came to each, -1 for none.
    """

    __slots__ = (
        "arrival",
        "audience",
        "broker_array",
        "brokers",
        "child_bounds",
        "copies",
        "depth",
        "due_users",
        "duplicate_at_broker",
        "identity",
        "lost",
        "missed",
        "new_users",
        "number",
        "offloaded",
        "pending",
        "published",
        "publisher",
        "rooted",
        "senders",
        "served",
        "size",
        "topic",
        "traced",
        "tree",
        "uplink",
        "uplink_array",
        "window",
    )

    def __init__(
        self,
        number: int,
        topic: int,
        publisher: int,
        published: float,
        size: int,
        window: int,
        uplink: Uplink,
    ) -> None:
        self.number = self.identity = number
        self.topic = topic
        self.publisher = publisher
        self.published = published
        self.size = size
        self.window = window
        self.uplink_array, self.uplink = uplink.array, uplink.brokers
        self.rooted = float("nan")
        self.pending = 0
        self.traced = False
        self.tree: TopicTree | None = None
        self.audience: Audience | None = None
        self.offloaded: Offloaded | None = None
        self.new_users = _NONE
        self.duplicate_at_broker = _NOWHERE
        self.lost = self.missed = _NOTHING_LOST
        # empty until it leaves the root, and shared by all flights, as many may wait in a queue
        self.brokers = _NO_INTS
        self.broker_array = _NONE
        self.child_bounds = _NO_INTS
        self.due_users = self.depth = _NONE
        self.arrival = self.served = _NO_TIMES
        self.senders = _NO_INTS
        self.copies = _NO_COPIES

    def lose(self, cause: str, position: int) -> None:
        """A copy to or at this position is lost."""
        if not self.lost:
            self.lost = {}
        self.lost.setdefault(cause, []).append(position)

    def miss(self, cause: str, positions: Sequence[int]) -> None:
        """What is due at these positions is lost."""
        if not self.missed:
            self.missed = {}
        self.missed.setdefault(cause, []).extend(positions)
