"""Guarantees in the event engine: who sends a copy keeps it until the next broker has acknowledged it, and sends it again.

What is of quality of service 0 is sent once, and not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.data.flights import Flight
from sim.brokers.data.kept import CLIENT, Attempt, KeepingCarrier, KeptCopy
from sim.brokers.fabric.clock import ARRIVALS
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.service import Effort
from sim.brokers.statistics.hops import UPLINK


class GuaranteedCarrier(KeepingCarrier):
    """Carries flights on trees, with a guarantee for every hop."""

    def depart(self, number: int, broker: int, window: int, released: bool = False) -> None:
        """A publisher's client sends a publication to its broker; or it is lost, see `Engine.publish`."""
        flights = self.rule.publish(number, max(broker, ~broker), window)
        self.in_transit.depart(flights, released)
        for flight in flights:
            flight.traced = self._trace is not None and self._trace.traces(number)
            self._under_way[flight] = {}
            kept = self._keep(flight, 0, CLIENT, flight.uplink[0], below=False)
            if broker < 0:
                self._end(kept, "crashed")
            else:
                self._enter(kept)

    def close(self, messages: Iterable[Message]) -> None:
        """Count what is in transit at the end: what has not been handled, and may still be."""
        for flight, under_way in self._under_way.items():
            ahead = [kept for kept in under_way if not kept.handled]
            if flight in self._short:
                self.rule.over(flight, self._short[flight])
            elif flight.tree is None:
                self.rule.overtake(flight, self._hops_up(flight, ahead[0].position))
            else:
                self.rule.over(flight, self._hops_up(flight, len(flight.uplink) - 1), self._ahead(flight, ahead))
        self.rule.finished.record()
        self._resent.record()

    def _ahead(self, flight: Flight, ahead: Sequence[KeptCopy]) -> NDArray[np.bool_]:
        """The tree positions (k) at which what is kept may still be delivered."""
        return self.rule.ahead(flight, [kept.position for kept in ahead])

    def _arrive(self, message: Message) -> None:
        kept: KeptCopy = message.carries.kept
        if not (self._troubled and self._stopped(message, kept.sender, kept.broker)):
            self._come(message)

    def _come(self, message: Message) -> None:
        """A copy comes to its broker."""
        kept: KeptCopy = message.carries.kept
        flight, broker = kept.flight, kept.broker
        if self._servers and not self._servers[broker].accept(message, self._seconds_of(message.carries)):
            return
        if self._trace is not None and flight.traced and kept.sender != CLIENT:
            due = kept.below and not self._relays(kept)
            kind = self.rule.kind if kept.below else UPLINK
            self._trace.add(message.sent, message.arrived, flight.number, kept.sender, broker, kind, due)
        if not self._servers:
            self._handle(message)

    def _seconds_of(self, attempt: Attempt) -> float:
        """The service time of a copy (s): once another has been handled, it has only to be received, and passed on to users."""
        kept = attempt.kept
        stage = 2 if self._knows(kept) else int(kept.below)
        again = Effort(users=self._users_again(kept), size=kept.flight.size)
        effort = again if stage == 2 else self._first_effort(kept, stage)
        return self._service(attempt.identity, kept.broker, stage, effort)

    def _first_effort(self, kept: KeptCopy, stage: int) -> Effort:
        return self._effort(kept.flight, kept.broker, kept.position, stage)

    def _knows(self, kept: KeptCopy) -> bool:
        """Whether the receiver has handled what is kept for it."""
        return kept.handled

    def _handle(self, message: Message) -> None:
        """The broker has served a copy."""
        kept: KeptCopy = message.carries.kept
        kept.copies -= 1
        known, kept.handled = self._knows(kept), True
        if known:
            self._repeat(kept)
        else:
            if kept.below:
                self._serve(kept, message.arrived)
            else:
                self._ascend(kept)
            self._remember(kept, +1)
        self._acknowledge(message.carries)
        self._look(kept)

    def _serve(self, kept: KeptCopy, arrived: float) -> None:
        """A broker below the root has served the first copy."""
        kept.flight.arrival[kept.position] = arrived
        kept.flight.served[kept.position] = self._clock.now
        self._hand_on(kept.flight, kept.position)

    def _ascend(self, kept: KeptCopy) -> None:
        flight, onward = kept.flight, kept.position + 1
        if kept.final:
            self._leave(flight)
        else:
            self._send_copy(self._keep(flight, onward, kept.broker, flight.uplink[onward], below=False))

    def _leave(self, flight: Flight) -> None:
        self.rule.leave_root(flight, self._clock.now)
        self.in_transit.rooted(flight)
        if flight.brokers:
            self._hand_on(flight, 0)

    def _hand_on(self, flight: Flight, position: int) -> None:
        """Pass the flight on to users of a position, and to its children."""
        if self._deliveries is not None:
            self._hand_over(self._deliveries, flight, position, self._clock.now)
        here = flight.brokers[position]
        for child in range(flight.child_bounds[position], flight.child_bounds[position + 1]):
            self._send_copy(self._keep(flight, child, here, flight.brokers[child], below=True))

    def _users_again(self, kept: KeptCopy) -> int:
        """The users who get what is handled once more."""
        return 0 if kept.quality == 2 else self._users(kept)

    def _repeat(self, kept: KeptCopy) -> None:
        """A broker has served a copy of what it had handled."""
        flight, users = kept.flight, self._users_again(kept)
        self._recorder.counted["duplicates"][flight.window] += 1
        if users:
            self._recorder.counted["duplicate_deliveries"][flight.window] += users
            self._resent.to_users(flight, kept.broker, users)

    def _acknowledge(self, attempt: Attempt) -> None:
        kept, transmission = attempt.kept, self._transmission
        if not kept.quality:
            return
        if kept.sender == CLIENT:
            if kept.done is None:
                self._end(kept, "acknowledged")
            return
        self._recorder.counted["acknowledgements"][kept.flight.window] += 1
        here, there = kept.broker, kept.sender
        if self._outages is not None and self._outages.cut(here, there):
            return
        link = (self._brokers + here) * self._brokers + there  # beyond all links of copies
        loss = 0.0 if transmission is None else transmission.loss
        if transmission and loss and keyed_uniform(transmission.key, attempt.identity, link) < loss:
            return
        answer = Message(attempt, kept.position, -1, self._answered, self._acknowledged, self._lose)
        self._clock.at(self._clock.now + self._links.times(here)[there], ARRIVALS, answer)
