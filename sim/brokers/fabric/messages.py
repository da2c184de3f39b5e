"""Messages between brokers, which carry publications or control requests hop by hop."""

from __future__ import annotations

from collections.abc import Callable

# Any: what a message carries is known to those alone who handle it.
from typing import Any

from sim.brokers.fabric.clock import Scheduled


class Message(Scheduled):
    """A message at one place of its path; its arrival is one entry in the clock's heap.

    `carries` is a Flight or a control request; `position` a place on the uplink, on the tree or on the control path. `handled` is
    called once a broker has served the message, `dropped` if one drops it. `sent` and `arrived` are the times (s) of its present hop,
    `source` the position on the tree from which it set out, `size` its bytes. At a broker, `service` is its service time (s),
    `done_at` is when its service ends, and `control` is true for a waiting control message. `then` are the callbacks after passing
    an interface.
    """

    control: bool
    done_at: float
    then: tuple[Callable[[Message], None], ...] | None

    __slots__ = (
        "arrived",
        "callbacks",
        "carries",
        "control",
        "done_at",
        "dropped",
        "handled",
        "position",
        "sent",
        "service",
        "size",
        "source",
        "then",
    )

    def __init__(
        self,
        carries: Any,  # its type is known only to its handlers
        position: int,
        source: int,
        callbacks: tuple[Callable[[Message], None]],
        handled: Callable[[Message], None],
        dropped: Callable[[Message], None],
        size: int = 0,
    ) -> None:
        self.carries = carries
        self.position = position
        self.source = source
        self.callbacks = callbacks
        self.handled = handled
        self.dropped = dropped
        self.size = size
        self.sent = 0.0
        self.arrived = 0.0
        self.service = 0.0

    def set_aside(self) -> Message:
        """Another message in this one's place: this one comes up on the clock as it is scheduled, and carries nothing."""
        other = Message(self.carries, self.position, self.source, _VOID, self.handled, self.dropped, self.size)
        other.sent, other.arrived, other.control = self.sent, self.arrived, self.control
        self.carries, self.callbacks = None, _VOID
        return other


def _nothing(_: Message) -> None:
    """Do nothing: the message carries nothing."""


_VOID = (_nothing,)
