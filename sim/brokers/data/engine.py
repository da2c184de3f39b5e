"""The interface of data planes: whatever carries publications, control knows no more of it than this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sim.brokers.fabric.messages import Message


class Engine(Protocol):
    """Carries publications from publishers' brokers to all that they are due to, and reports what came of each to the recorder.

    An engine decides when things happen; what a broker does with a copy is its rule's (`sim.brokers.data.rules`), how long a hop or a
    service takes the fabric's. Control messages travel by `sim.brokers.control.courier` on the same fabric, whichever the engine.
    """

    together: int
    """How many publications may be handed over at once, where nothing else happens between them."""

    def publish(self, first: int, brokers: list[int]) -> None:
        """Publications number `first` and following leave for these brokers now, or before anything else happens."""

    def hold(self, number: int, broker: int) -> None:
        """The broker holds back a publication that arrives now; at the end it counts as on its way to the root."""

    def release(self, broker: int) -> None:
        """What the broker has held back leaves now, in order; delays count from publication."""

    def advance(self, until: float) -> None:
        """Bring all that happens before `until` (s) about, by trees and subscriptions as they stand: these are about to change."""

    def next_time(self) -> float:
        """When the engine next has to act by itself (s), infinite where it is driven by events of the clock alone."""

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""

    def when_idle(self, then: Callable[[], None]) -> None:
        """Have `then()` called once, when nothing that was published is on its way; meanwhile nothing is published or changes."""

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Have `then()` called once, when all that was released has left its root."""

    def close(self, held: list[Message]) -> None:
        """Count what is on its way at the end; `held` are the messages that wait or are in service at brokers."""
