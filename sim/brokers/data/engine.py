"""The interface of data planes, which is all that the control plane uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord


class Engine(Protocol):
    """Carries publications from publishers' brokers to all to whom they are due, and reports their outcomes to the recorder.

    An engine decides when things happen; what a broker does with a copy is its rule's (`sim.brokers.data.rules`), how long a hop or a
    service takes the fabric's. Control messages (`sim.brokers.control.courier`) contend with publications, so engines carry these too.
    """

    together: int
    """How many publications may be passed to `publish` at once if nothing else happens between them."""

    @property
    def follows(self) -> bool:
        """Whether publications cause no events on the clock from now on, and the engine catches up subscriptions as needed."""

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publications `first`, `first + 1`, … enter at these brokers now, or before anything else happens.

        ~b stands for nowhere: whoever publishes is connected to no broker, since b crashed. That publication is lost.
        """

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now; at the end it counts as in transit to the root."""

    def release(self, broker: int) -> None:
        """Release what the broker has held back, in order; delays count from publication."""

    def recall(self, broker: int) -> list[int]:
        """Forget what the broker has held back; returns the numbers of these publications, in order."""

    def advance(self, until: float) -> None:
        """Process everything before `until` (s) with the current trees and subscriptions, which are about to change."""

    def next_time(self) -> float:
        """When the engine next has to act by itself (s); infinite where the clock's events drive it."""

    def brokers_moved(self) -> None:
        """Notify that brokers have moved to other nodes."""

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another (s); `number` identifies it in keyed draws."""

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Let the broker serve a control message that arrives now and needs `service` seconds; then its `handled` is called."""

    def fail(self, broker: int) -> list[Message]:
        """Lose all publications that the broker holds, as it crashes now; returns the control messages that it held, in order.

        What brokers have served before has been passed on to users then.
        """

    def restart(self, broker: int) -> None:
        """The broker is up again, and sends what it still keeps for others."""

    def keeps(self, broker: int) -> bool:
        """Whether a guarantee makes the broker keep something for others, or a client something for it, now."""

    def outages_changed(self) -> None:
        """Notify that brokers are down, links are cut, or services are slow, other than before."""

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit; meanwhile nothing is published or changes."""

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""

    def stop_waiting(self) -> None:
        """Drop the callbacks of `when_idle` and `when_rooted` whose time has not come."""

    def close(self) -> StationRecord:
        """Count what is in transit at the end; returns what brokers that take time did."""
