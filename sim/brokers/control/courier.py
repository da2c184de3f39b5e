"""Control messages in transit: hop by hop over links, and through the queues of brokers that take time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL_ARRIVALS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.service import NO_EFFORT, Effort


class ControlMessage:
    """A control message: its path of brokers, how many of them serve it, its callbacks, and how often routes had changed.

    `again()` sends it again, over the present overlay, if that routes around a broker or a link for which it waits; None where it has
    to wait.
    """

    __slots__ = ("again", "arrived", "changes", "number", "passed", "path", "served")

    def __init__(
        self,
        number: int,
        path: Sequence[int],
        served: int,
        passed: Callable[[int], None],
        arrived: Callable[[], None],
        again: Callable[[], None] | None,
        changes: int,
    ) -> None:
        self.number, self.changes = number, changes
        self.path = path
        self.served = served
        self.passed = passed
        self.arrived = arrived
        self.again = again


class Courier:
    """Carries control messages: at once, or over links, where brokers that take time serve them ahead of publications.

    `engine()` is the data plane, once there is one. None gets lost: what comes for a broker that is down waits until it is up, and
    what is to go over a link that is cut until it is mended. If the overlay routes around these, what can be sent again is.

    Each message has a number for keyed draws, which is negative to differ from those of publications.
    """

    def __init__(self, fabric: Fabric, engine: Callable[[], Engine]) -> None:
        self._fabric, self._engine, self._outages = fabric, engine, fabric.outages
        self._number = 0
        self._at_once: deque[Callable[[], None]] = deque()  # messages that take no time, on arrival
        self._delivering = False
        self._reached = (self._reach,)
        self._held: dict[int, list[Message]] = {}  # by broker, which is down: what has come for it
        self._cut_off: list[Message] = []  # what waits for links that are cut
        self._changes = 0  # of routes

    def send(
        self,
        path: Sequence[int],
        passed: Callable[[int], None],
        arrived: Callable[[], None],
        to_broker: bool = True,
        again: Callable[[], None] | None = None,
    ) -> None:
        """Send a message over the brokers of `path`.

        `passed(position)` is called when the broker there has handled it, `arrived()` after the last. With `to_broker=False` the
        last hop goes to the manager co-located with that broker and is not queued. `again()` is called instead of these if the
        overlay routes around a broker or a link for which the message waits.
        """
        if self._fabric.joins_instantly:
            self._deliver(path, passed, arrived)
            return
        self._number += 1
        control = ControlMessage(self._number, path, len(path) - (not to_broker), passed, arrived, again, self._changes)
        self._go_on(Message(control, 0, -1, self._reached, self._go_on, _never))

    def _deliver(self, path: Sequence[int], passed: Callable[[int], None], arrived: Callable[[], None]) -> None:
        """Let messages that take no time arrive one after the other, in the order in which they were sent."""
        for position in range(len(path)):
            passed(position)
        self._at_once.append(arrived)
        if not self._delivering:
            self._delivering = True
            while self._at_once:
                self._at_once.popleft()()
            self._delivering = False

    def _go_on(self, message: Message) -> None:
        """The broker at this position has handled the message."""
        control: ControlMessage = message.carries
        position = message.position
        control.passed(position)
        if position == len(control.path) - 1:
            control.arrived()
            return
        message.position += 1
        message.callbacks = self._reached
        self._leave(message)

    def _leave(self, message: Message) -> None:
        """Send the message over the link to the broker at its position, once that is not cut."""
        control: ControlMessage = message.carries
        here, there = control.path[message.position - 1 : message.position + 1]
        if self._outages is not None and self._outages.cut(here, there):
            if control.again is not None and control.changes < self._changes and self._outages.avoided.cut(here, there):
                control.again()
            else:
                self._cut_off.append(message)
            return
        arrival = self._engine().control_arrival(here, there, -control.number)
        self._fabric.clock.at(arrival, CONTROL_ARRIVALS, message)

    def hold(self, broker: int, messages: list[Message]) -> None:
        """The broker, which is down, gets these messages once it is up again."""
        self._held.setdefault(broker, []).extend(messages)

    def restart(self, broker: int) -> None:
        """The broker is up again, and gets what has waited for that."""
        for message in self._held.pop(broker, []):
            self._reach(message)

    def routes_changed(self, fallen: Iterable[int]) -> None:
        """The overlay has healed: send again what waits for brokers that have `fallen`, and for links that it routes around now."""
        self._changes += 1
        for broker in fallen:
            waiting = self._held.pop(broker, [])
            self.hold(broker, [message for message in waiting if message.carries.again is None])
            for message in waiting:
                if message.carries.again is not None:
                    message.carries.again()
        self.links_mended()

    def links_mended(self) -> None:
        """Send what has waited for links, where they are cut no longer."""
        waiting, self._cut_off = self._cut_off, []
        for message in waiting:
            self._leave(message)

    def _reach(self, message: Message) -> None:
        control: ControlMessage = message.carries
        fabric, position = self._fabric, message.position
        if self._outages is not None and position < control.served and self._outages.down.item(control.path[position]):
            if control.again is not None and self._outages.bypassed.item(control.path[position]):
                control.again()
            else:
                self.hold(control.path[position], [message])
            return
        if fabric.servers and position < control.served:
            broker = control.path[position]
            effort = Effort(copies=1) if position < len(control.path) - 1 else NO_EFFORT
            service = fabric.service.seconds(-control.number, broker, position, effort)
            self._engine().serve_control(broker, message, service)
        else:
            self._go_on(message)


def _never(message: Message) -> None:
    raise AssertionError("brokers do not drop control messages")
