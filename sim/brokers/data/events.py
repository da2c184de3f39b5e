"""The general engine: every hop of every message is one event in SimPy's heap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.flights import Flight
from sim.brokers.data.rules import NAN, FloodRule, Rule
from sim.brokers.fabric.clock import ARRIVALS, BARRIERS, LOOKS, Feed
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.fabric.station_windows import StationWindows
from sim.brokers.fabric.stations import station_record
from sim.brokers.fabric.transmission import Transmission
from sim.brokers.statistics.deliveries import DeliveryBuffer
from sim.brokers.statistics.hops import UPLINK
from sim.brokers.statistics.ledger import CLIMBING, DROPPED, IN_FLIGHT, LOST, PUBLISHED
from sim.brokers.statistics.recorder import Recorder


class EventEngine:
    """Carries flights up to their roots and on from there, hop by hop (see Engine); `published` (publications) are times in s."""

    together = 1
    follows = False

    def __init__(self, fabric: Fabric, recorder: Recorder, published: NDArray[np.float64], rule: Rule) -> None:
        self.rule, self._published = rule, published
        self._effort, self._flood = rule.effort, rule if isinstance(rule, FloodRule) else None
        self._clock, self._recorder, self._transmission = fabric.clock, recorder, fabric.transmission
        self._links, self._servers, self._service = fabric.links, fabric.servers, fabric.service.seconds
        self._ledger, self._trace, self._deliveries = recorder.ledger, recorder.trace, recorder.deliveries
        self._active: dict[Flight, None] = {}
        self._held: dict[int, list[int]] = {}  # by broker: publications that it holds back
        # Of publications that were held back: flights that have not left their roots
        self._released: dict[int, int] = {}
        self._when_idle: Callable[[], None] | None = None
        self._when_rooted: Callable[[], None] | None = None
        self._windows = StationWindows(recorder.edges, recorder.measured)
        if self._servers and self._windows.next < math.inf:
            Feed(self._clock, LOOKS, self._end_window).start(self._windows.next)
        self._climbed = (self._reach_uplink,)
        self._descended = (self._reach_tree,)

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publication number `first` leaves now for its broker; one at a time."""
        self._depart(first, int(brokers[0]), self._recorder.window(self._clock.now))

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now."""
        self._held.setdefault(broker, []).append(number)

    def release(self, broker: int) -> None:
        """Release what the broker has held back."""
        for number in self._held.pop(broker, []):
            self._depart(number, broker, self._window(number), released=True)

    def _window(self, number: int) -> int:
        return int(self._recorder.windows(self._published[number : number + 1])[0])

    def _depart(self, number: int, broker: int, window: int, released: bool = False) -> None:
        self._ledger.count_publication(window, PUBLISHED)
        flights = self.rule.flights(number, broker, window)
        if released:
            self._released[number] = len(flights)
        send: Callable[[Message], object] = self._serve_uplink if self._servers else self._climb
        traced = self._trace is not None and self._trace.traces(number)
        for flight in flights:
            self._active[flight], flight.traced = None, traced
            send(Message(flight, 0, -1, self._climbed, self._climb, self._drop, flight.size))

    def advance(self, until: float) -> None:
        """What left its root took the tree along; uplinks may change."""
        self.rule.trees_change()

    def next_time(self) -> float:
        """Never: the clock has all its events."""
        return math.inf

    def brokers_moved(self) -> None:
        """What climbs to its root keeps to the brokers that it set out over."""
        self.rule.brokers_moved()

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another."""
        return self._links.arrival(self._clock.now, here, there, number)

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Have the broker serve a control message ahead of publications."""
        self._servers[broker].accept(message, service, control=True)

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit."""
        self._when_idle = then
        self._watch()

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._when_rooted = then
        self._watch()

    def _watch(self) -> None:
        """Call waiting callbacks, after everything else of this instant, once their condition holds."""
        if self._when_idle is not None and not self._active:
            self._clock.call(self._clock.now, BARRIERS, self._when_idle)
            self._when_idle = None
        if self._when_rooted is not None and not self._released:
            self._clock.call(self._clock.now, BARRIERS, self._when_rooted)
            self._when_rooted = None

    def _rooted(self, flight: Flight) -> None:
        """The flight has left its root, or has been dropped before."""
        if flight.number in self._released:
            self._released[flight.number] -= 1
            if not self._released[flight.number]:
                del self._released[flight.number]
                self._watch()

    # -- up to the root

    def _reach_uplink(self, message: Message) -> None:
        flight: Flight = message.carries
        if self._servers and not self._serve_uplink(message):
            return
        if self._trace is not None and flight.traced:
            here, there = flight.uplink[message.position - 1 : message.position + 1]
            self._trace.add(message.sent, message.arrived, flight.number, here, there, UPLINK, False)
        if not self._servers:
            self._climb(message)

    def _serve_uplink(self, message: Message) -> bool:
        """Pass the flight to the broker; returns whether it was accepted."""
        flight: Flight = message.carries
        broker = flight.uplink[message.position]
        return self._servers[broker].accept(message, self._seconds(flight, broker, message.position, 0))

    def _drop(self, message: Message) -> None:
        """A broker drops the message, since its queue is full."""
        flight: Flight = message.carries
        if flight.tree is not None and message.handled == self._descend:
            flight.arrival[message.position] = NAN  # it may have waited: another copy may be the first yet
        self._lose(message, "queue_full")

    def _lose(self, message: Message, cause: str) -> None:
        """A message gets no further: the flight on its way up, one copy of it below the root."""
        flight: Flight = message.carries
        if flight.tree is None:
            self._ledger.count_publication(flight.window, DROPPED)
            self.rule.miss_root(flight, LOST[cause])
            self._rooted(flight)
            self._finish(flight, message.position)
            return
        if cause == "link":
            flight.lost_on_links = (*flight.lost_on_links, message.position)
        else:
            flight.refused = (*flight.refused, message.position)
        self._one_less(message)

    def _transmit(self, transmission: Transmission, message: Message, here: int, there: int) -> None:
        """Send a message over a link that may be busy, have a full buffer, or lose it."""
        if not transmission.fits(here, there, message.size):
            self._lose(message, "queue_full")
        elif not transmission.send(message, here, there, message.carries.identity):
            self._lose(message, "link")

    def _seconds(self, flight: Flight, broker: int, position: int, stage: int) -> float:
        """The service time of a flight at this stage (s)."""
        return self._service(flight.identity, broker, stage, self._effort(flight, broker, position, stage))

    def _climb(self, message: Message) -> None:
        """The broker at this place of the uplink has handled the flight: on to the next, or down from the root."""
        flight: Flight = message.carries
        position = message.position + 1
        if position == len(flight.uplink):
            self._leave_root(flight, message)
            return
        here = flight.uplink[position - 1]
        message.position = position
        message.callbacks = self._climbed
        message.sent = self._clock.now
        if self._transmission is not None:
            self._transmit(self._transmission, message, here, flight.uplink[position])
            return
        message.arrived = self._links.arrival(message.sent, here, flight.uplink[position], flight.identity)
        self._clock.at(message.arrived, ARRIVALS, message)

    # -- below the root

    def _leave_root(self, flight: Flight, message: Message) -> None:
        self.rule.leave_root(flight, self._clock.now)
        self._rooted(flight)
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
        """Send copies to the next hops of a position; the message that brought the flight is used again for the first of them."""
        if self._deliveries is not None:
            self._hand_over(self._deliveries, flight, position, now)
        if self._flood is not None:
            onward: Sequence[int] = self._flood.send_on(flight, position)
        else:  # down a tree, a broker sends copies to its children
            onward = range(flight.child_bounds[position], flight.child_bounds[position + 1])
        if not onward:
            self._one_less(message)
            return
        flight.pending += len(onward) - 1
        brokers, links, at = flight.brokers, self._links, self._clock.at
        here, identity = brokers[position], flight.identity
        times = links.times(here) if links.fixed else None
        first = onward[0]
        for there in onward:
            if there == first:
                message.position, message.source, message.callbacks = there, position, self._descended
            else:
                message = Message(flight, there, position, self._descended, self._descend, self._drop, flight.size)
            message.sent = now
            if self._transmission is not None:
                self._transmit(self._transmission, message, here, brokers[there])
                continue
            message.arrived = time = (
                now + times[brokers[there]] if times else links.arrival(now, here, brokers[there], identity)
            )
            at(time, ARRIVALS, message)

    def _hand_over(self, deliveries: DeliveryBuffer, flight: Flight, position: int, now: float) -> None:
        """The broker at this position has served the flight, and passes it on to its users; of content, the rule says to whom."""
        if flight.audience is None or not flight.due_users[position]:
            return
        broker = flight.brokers[position]
        deliveries.add(now, flight.arrival[position], flight.rooted, flight.number, broker, flight.audience)
        if deliveries.full:
            self.rule.finished.record()  # with what the best-effort channel has taken
            deliveries.advance(now)

    def _one_less(self, message: Message) -> None:
        """The message carries its flight no further."""
        flight: Flight = message.carries
        flight.pending -= 1
        if not flight.pending:
            self._finish(flight, len(flight.uplink) - 1)

    def _finish(self, flight: Flight, uplinks_sent: int) -> None:
        """No message carries the flight any more."""
        del self._active[flight]
        if self._when_idle is not None:
            self._watch()
        self.rule.over(flight, uplinks_sent)

    # -- the end

    def _end_window(self) -> float | None:
        """A window ends now; when the next one does, before the end."""
        self._look(self._clock.now)
        return self._windows.next if self._windows.next < math.inf else None

    def _look(self, now: float) -> None:
        self._windows.look(np.array([server.look(now) for server in self._servers]).T)

    def close(self) -> StationRecord:
        """Count what is on its way at the end: on links or in service (in the clock's heap), or at brokers."""
        for broker, numbers in sorted(self._held.items()):
            for number in numbers:
                window = self._window(number)
                self._ledger.count_publication(window, PUBLISHED)
                for flight in self.rule.flights(number, broker, window):
                    self._end_climbing(flight, 0)
        if self._servers:
            self._look(self._recorder.horizon)
        waiting = [message for server in self._servers for message in server.close(self._recorder.horizon)]
        on_the_clock = [event for _, _, _, event in self._clock.pending() if isinstance(event, Message)]
        travelling: dict[Flight, list[tuple[int, int]]] = {flight: [] for flight in self._active}
        for message in on_the_clock + waiting:
            if isinstance(message.carries, Flight):
                travelling[message.carries].extend((place, message.source) for place in self._places(message))
        for flight, hops in travelling.items():
            if flight.tree is None:
                for place, _ in hops:  # of the one message that carries it
                    self._end_climbing(flight, place)
            else:
                positions, sources = [place for place, _ in hops], [source for _, source in hops]
                self.rule.over(flight, len(flight.uplink) - 1, self.rule.ahead(flight, positions, sources))
        self.rule.finished.record()
        return station_record(self._servers, self._windows)

    def _end_climbing(self, flight: Flight, uplinks_sent: int) -> None:
        self._ledger.count_publication(flight.window, CLIMBING)
        self.rule.miss_root(flight, IN_FLIGHT)
        self.rule.over(flight, uplinks_sent)

    def _places(self, message: Message) -> Sequence[int]:
        """Where a message is at the end, or is heading: a place on the uplink, or positions on the tree. Duplicates are nowhere."""
        return () if message.handled == self._one_less else (message.position,)
