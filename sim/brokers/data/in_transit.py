"""The flights in transit, and callbacks that wait for their arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sim.brokers.data.flights import Flight
from sim.brokers.fabric.clock import BARRIERS, Clock


class InTransit:
    """The `flights` in transit, and the number of publications held back before that have not left their roots (`released`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.flights: dict[Flight, None] = {}
        self.released: dict[int, int] = {}
        self._when_idle: Callable[[], None] | None = None
        self._when_rooted: Callable[[], None] | None = None

    def depart(self, flights: Iterable[Flight], released: bool) -> None:
        """The flights of a publication, which may have been held back, depart."""
        for flight in flights:
            self.flights[flight] = None
            if released:
                self.released[flight.number] = self.released.get(flight.number, 0) + 1

    def rooted(self, flight: Flight) -> None:
        """The flight has left its root, or has been dropped before."""
        if flight.number in self.released:
            self.released[flight.number] -= 1
            if not self.released[flight.number]:
                del self.released[flight.number]
                self._watch()

    def over(self, flight: Flight) -> None:
        """No message carries the flight any more."""
        del self.flights[flight]
        if self._when_idle is not None:
            self._watch()

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no flight is in transit."""
        self._when_idle = then
        self._watch()

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._when_rooted = then
        self._watch()

    def stop_waiting(self) -> None:
        """Drop the callbacks whose condition does not hold."""
        self._when_idle = self._when_rooted = None

    def _watch(self) -> None:
        """Call waiting callbacks, after everything else of this instant, once their condition holds."""
        if self._when_idle is not None and not self.flights:
            self._clock.call(self._clock.now, BARRIERS, self._when_idle)
            self._when_idle = None
        if self._when_rooted is not None and not self.released:
            self._clock.call(self._clock.now, BARRIERS, self._when_rooted)
            self._when_rooted = None
