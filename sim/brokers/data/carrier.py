"""Carries flights hop by hop: every hop, and every service at a broker, is one event in SimPy's heap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sim.brokers.data.flights import Flight
from sim.brokers.data.in_transit import InTransit
from sim.brokers.data.rules import NAN, FloodRule, Rule
from sim.brokers.fabric.clock import ARRIVALS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.statistics.deliveries import DeliveryBuffer
from sim.brokers.statistics.hops import UPLINK
from sim.brokers.statistics.ledger import LOST
from sim.brokers.statistics.recorder import Recorder


class Carrier:
    """Carries flights up to their roots and on from there, by a rule that determines what brokers do with them."""

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: Rule) -> None:
        self.rule, self.in_transit = rule, InTransit(fabric.clock)
        self._effort, self._flood = rule.effort, rule if isinstance(rule, FloodRule) else None
        self._clock, self._recorder, self._transmission = fabric.clock, recorder, fabric.transmission
        self._links, self._servers, self._service = fabric.links, fabric.servers, fabric.service.seconds
        self._trace, self._deliveries, self._outages = recorder.trace, recorder.deliveries, fabric.outages
        self.outages_changed()
        self._climbed = (self._reach_uplink,)
        self._descended = (self._reach_tree,)

    def depart(self, number: int, broker: int, window: int, released: bool = False) -> None:
        """A publication leaves its broker now, which may have held it back before; or is lost, see `Engine.publish`."""
        flights = self.rule.publish(number, max(broker, ~broker), window)
        self.in_transit.depart(flights, released)
        if broker < 0:
            messages = (Message(flight, 0, -1, self._climbed, self._climb, self._drop) for flight in flights)
            self.crash(~broker, messages)
            return
        send: Callable[[Message], object] = self._serve_uplink if self._servers else self._climb
        traced = self._trace is not None and self._trace.traces(number)
        for flight in flights:
            flight.traced = traced
            send(Message(flight, 0, -1, self._climbed, self._climb, self._drop, flight.size))

    def crash(self, broker: int, messages: Iterable[Message]) -> None:
        """A broker with these messages crashes."""
        for message in messages:
            self._drop(message, "crashed")

    def restart(self, broker: int) -> None:
        """A broker that has crashed is up again."""

    def keeps(self, broker: int) -> bool:
        """Nothing is kept."""
        return False

    def outages_changed(self) -> None:
        """Update whether hops may take more than their latency."""
        outages = self._outages
        self._troubled = outages is not None and outages.active
        self._plain = self._links.fixed and self._transmission is None and not (outages is not None and outages.cuts)

    def close(self, messages: Iterable[Message]) -> None:
        """Count what is in transit at the end, in these messages."""
        travelling: dict[Flight, list[tuple[int, int]]] = {flight: [] for flight in self.in_transit.flights}
        for message in messages:
            if isinstance(message.carries, Flight):
                travelling[message.carries].extend((place, message.source) for place in self._places(message))
        for flight, hops in travelling.items():
            if flight.tree is None:
                for place, _ in hops:  # the place of the one message that carries it
                    self.rule.overtake(flight, place)
            else:
                positions, sources = [place for place, _ in hops], [source for _, source in hops]
                self.rule.over(flight, len(flight.uplink) - 1, self.rule.ahead(flight, positions, sources))
        self.rule.finished.record()

    def _places(self, message: Message) -> Sequence[int]:
        """Where a message is at the end, or is heading: a place on the uplink, or positions on the tree; none for duplicates."""
        return () if message.handled == self._one_less else (message.position,)

    # -- up to the root

    def _reach_uplink(self, message: Message) -> None:
        flight: Flight = message.carries
        here, there = flight.uplink[message.position - 1 : message.position + 1]
        if (self._troubled and self._stopped(message, here, there)) or (
            self._servers and not self._serve_uplink(message)
        ):
            return
        if self._trace is not None and flight.traced:
            self._trace.add(message.sent, message.arrived, flight.number, here, there, UPLINK, False)
        if not self._servers:
            self._climb(message)

    def _serve_uplink(self, message: Message) -> bool:
        """Pass the flight to the broker; returns whether it was accepted."""
        flight: Flight = message.carries
        broker = flight.uplink[message.position]
        return self._servers[broker].accept(message, self._seconds(flight, broker, message.position, 0))

    def _drop(self, message: Message, cause: str = "queue_full") -> None:
        """A broker drops the message, as its queue is full or it crashes."""
        flight: Flight = message.carries
        if flight.tree is not None and message.handled == self._descend:
            flight.arrival[message.position] = NAN  # it may have waited: another copy may still become the first
        self._lose(message, cause)

    def _lose(self, message: Message, cause: str) -> None:
        """A message is lost: the flight on its way up, or one copy of it below the root."""
        flight: Flight = message.carries
        if flight.tree is None:
            self.rule.miss_root(flight, LOST[cause])
            self.in_transit.rooted(flight)
            self._finish(flight, message.position)
            return
        flight.lose(cause, message.position)
        self._one_less(message)

    def _stopped(self, message: Message, here: int, there: int) -> bool:
        """Whether a message that comes from one broker to another is lost by an outage."""
        assert self._outages is not None
        cause = self._outages.stops(here, there)
        if cause is not None:
            self._lose(message, cause)
        return cause is not None

    def _send(self, message: Message, here: int, there: int) -> None:
        """Send a message over a link that may be cut or busy, have a full buffer, or lose it."""
        transmission, identity = self._transmission, message.carries.identity
        if self._outages is not None and self._outages.cut(here, there):
            self._lose(message, "partitioned")
        elif transmission is None:
            message.arrived = self._links.arrival(message.sent, here, there, identity)
            self._clock.at(message.arrived, ARRIVALS, message)
        elif not transmission.fits(here, there, message.size):
            self._lose(message, "queue_full")
        elif not transmission.send(message, here, there, identity):
            self._lose(message, "link")

    def _seconds(self, flight: Flight, broker: int, position: int, stage: int) -> float:
        """The service time of a flight at this stage (s)."""
        return self._service(flight.identity, broker, stage, self._effort(flight, broker, position, stage))

    def _climb(self, message: Message) -> None:
        """The broker at this place of the uplink has handled the flight: forward it to the next, or down from the root."""
        flight: Flight = message.carries
        position = message.position + 1
        if position == len(flight.uplink):
            self._leave_root(flight, message)
            return
        message.position, message.callbacks, message.sent = position, self._climbed, self._clock.now
        self._send(message, flight.uplink[position - 1], flight.uplink[position])

    # -- below the root

    def _leave_root(self, flight: Flight, message: Message) -> None:
        self.rule.leave_root(flight, self._clock.now)
        self.in_transit.rooted(flight)
        if not flight.brokers:
            self._finish(flight, len(flight.uplink) - 1)
            return
        flight.pending = 1
        message.handled = self._descend
        self._forward(flight, 0, flight.rooted, message)

    def _reach_tree(self, message: Message) -> None:
        flight: Flight = message.carries
        position, source, now = message.position, message.source, message.arrived
        arrival, brokers = flight.arrival, flight.brokers
        if self._troubled and self._stopped(message, brokers[source], brokers[position]):
            return
        first = arrival[position] != arrival[position]  # NaN
        if first and self._flood is not None:
            self._flood.arrive(flight, position, source)
        if self._servers:
            message.handled = self._descend if first else self._one_less
            broker = brokers[position]
            stage = 1 if first else 2 + brokers[source]
            if not self._servers[broker].accept(message, self._seconds(flight, broker, position, stage)):
                return
        if first:
            arrival[position] = now
        else:
            self._recorder.counted["duplicates"][flight.window] += 1
        if self._trace is not None and flight.traced:
            hop = flight.number, brokers[source], brokers[position]
            self._trace.add(message.sent, now, *hop, self.rule.kind, bool(flight.due_users[position]))
        if not self._servers:
            if first:
                self._forward(flight, position, now, message)
            else:
                self._one_less(message)

    def _descend(self, message: Message) -> None:
        """The broker at this position has served the flight, and so delivered it."""
        flight: Flight = message.carries
        flight.served[message.position] = now = self._clock.now
        self._forward(flight, message.position, now, message)

    def _forward(self, flight: Flight, position: int, now: float, message: Message) -> None:
        """Send copies to the next hops of a position; the message that brought the flight is reused for the first of them."""
        if self._deliveries is not None:
            self._hand_over(self._deliveries, flight, position, now)
        if self._flood is not None:
            onward: Sequence[int] = self._flood.send_on(flight, position)
        else:  # on a tree, a broker sends copies to its children
            onward = range(flight.child_bounds[position], flight.child_bounds[position + 1])
        if not onward:
            self._one_less(message)
            return
        flight.pending += len(onward) - 1
        brokers, at, here = flight.brokers, self._clock.at, flight.brokers[position]
        times = self._links.times(here) if self._plain else None
        first = onward[0]
        for there in onward:
            if there == first:
                message.position, message.source, message.callbacks = there, position, self._descended
            else:
                message = Message(flight, there, position, self._descended, self._descend, self._drop, flight.size)
            message.sent = now
            if times is None:
                self._send(message, here, brokers[there])
            else:
                message.arrived = time = now + times[brokers[there]]
                at(time, ARRIVALS, message)

    def _hand_over(self, deliveries: DeliveryBuffer, flight: Flight, position: int, now: float) -> None:
        """The broker at this position has served the flight, and passes it on to its users, or those that the rule gives."""
        if flight.audience is None or not flight.due_users[position]:
            return
        broker = flight.brokers[position]
        deliveries.add(now, flight.arrival[position], flight.rooted, flight.number, broker, flight.audience)
        if deliveries.full:
            self.rule.finished.record()  # together with deliveries of the best-effort channel
            deliveries.advance(now)

    def _one_less(self, message: Message) -> None:
        """The message carries its flight no further."""
        flight: Flight = message.carries
        flight.pending -= 1
        if not flight.pending:
            self._finish(flight, len(flight.uplink) - 1)

    def _finish(self, flight: Flight, uplinks_sent: int) -> None:
        """No message carries the flight any more."""
        self.in_transit.over(flight)
        self.rule.over(flight, uplinks_sent)
