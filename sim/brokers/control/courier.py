"""Control messages on their way: hop by hop over links, and through the queues of brokers that take time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.brokers.fabric.clock import CONTROL_ARRIVALS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message


class _Parcel:
    """What one control message is about: its way over brokers, and whom to tell."""

    __slots__ = ("arrived", "number", "passed", "path", "served")

    def __init__(
        self, number: int, path: Sequence[int], served: int, passed: Callable[[int], None], arrived: Callable[[], None]
    ) -> None:
        self.number = number
        self.path = path
        self.served = served
        self.passed = passed
        self.arrived = arrived


class Courier:
    """Carries control messages, which brokers that take time serve ahead of publications.

    Each has a number of its own; in keyed draws it is negative, which tells them from publications.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._number = 0
        self._reached = (self._reach,)

    def send(
        self, path: Sequence[int], passed: Callable[[int], None], arrived: Callable[[], None], to_broker: bool = True
    ) -> None:
        """Send a message over the brokers of `path`.

        `passed(position)` is called when it has been handled there, `arrived()` after the last. What is not `to_broker` is for the
        manager beside the last broker, who takes no time.
        """
        self._number += 1
        parcel = _Parcel(self._number, path, len(path) - (not to_broker), passed, arrived)
        self._go_on(Message(parcel, 0, -1, self._reached, self._go_on))

    def _go_on(self, message: Message) -> None:
        """The broker at this position has handled the message."""
        parcel: _Parcel = message.carries
        position, fabric = message.position, self._fabric
        parcel.passed(position)
        if position == len(parcel.path) - 1:
            parcel.arrived()
            return
        message.position += 1
        message.callbacks = self._reached
        here, there = parcel.path[position], parcel.path[position + 1]
        arrival = fabric.links.arrival(fabric.clock.now, here, there, -parcel.number)
        fabric.clock.at(arrival, CONTROL_ARRIVALS, message)

    def _reach(self, message: Message) -> None:
        parcel: _Parcel = message.carries
        fabric, position = self._fabric, message.position
        if fabric.servers and position < parcel.served:
            broker = parcel.path[position]
            service = fabric.service(-parcel.number, broker, position, 0)
            fabric.servers[broker].accept(message, service, control=True)
        else:
            self._go_on(message)
