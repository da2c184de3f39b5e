"""What travels: publications in flight, and the messages that carry them or carry control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.overlay.geometry import TopicTree

_NONE: NDArray[np.int32] = np.empty(0, np.int32)


class Flight:
    """One publication on its way: up to the root, and from there down the tree as it stood when it left the root.

    `arrival` has one time (s) per tree position, NaN where nothing has arrived; `due_users` the users due there; `sent` tells
    whether a message to the position was sent. `pending` counts messages that are on a link or in a queue.
    """

    __slots__ = (
        "arrival",
        "broker_array",
        "brokers",
        "child_bounds",
        "due_users",
        "number",
        "pending",
        "published",
        "publisher",
        "rooted",
        "sent",
        "size",
        "topic",
        "tree",
        "uplink",
        "uplink_array",
        "window",
    )

    def __init__(self, number: int, topic: int, publisher: int, published: float, size: int, window: int) -> None:
        self.number = number
        self.topic = topic
        self.publisher = publisher
        self.published = published
        self.size = size
        self.window = window
        self.uplink: list[int] = []
        self.uplink_array = _NONE
        self.rooted = float("nan")
        self.tree: TopicTree | None = None
        self.brokers: list[int] = []
        self.broker_array = _NONE
        self.child_bounds: list[int] = []
        self.due_users = _NONE
        self.arrival: list[float] = []
        self.sent = bytearray()
        self.pending = 0


class Message:
    """One message at one place of its way; a SimPy event in itself: its arrival is one entry in the heap.

    `carries` is a Flight or a control request; `position` a place on the uplink, on the tree or on the control path; `handled` is
    called once a broker has served the message. `sent` and `arrived` are the times (s) of its present hop.
    """

    __slots__ = ("arrived", "callbacks", "carries", "handled", "position", "sent", "source")
    _ok = True

    def __init__(
        self,
        carries: Any,
        position: int,
        source: int,
        callbacks: tuple[Callable[[Message], None]],
        handled: Callable[[Message], None],
    ) -> None:
        self.carries = carries
        self.position = position
        self.source = source
        self.callbacks: Any = callbacks
        self.handled = handled
        self.sent = 0.0
        self.arrived = 0.0
