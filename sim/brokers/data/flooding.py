"""The plane of messages where topics are flooded: a broker sends the first copy on to all neighbours in the topic but its sender."""

from __future__ import annotations

from array import array
from math import isnan

import numpy as np

from sim.brokers.data.events import MessagePlane
from sim.brokers.data.flights import Flight
from sim.brokers.fabric.clock import ARRIVALS
from sim.brokers.fabric.messages import Message
from sim.brokers.statistics.ledger import LOST


class FloodPlane(MessagePlane):
    """Carries publications up to the root, and from there over all links of the topic.

    The first copy to arrive at a broker is the delivery. A broker has to serve later ones too before it can throw them away; the time
    that they take is drawn for each on its own. A broker that refuses a copy may still be reached by another: what is due there is
    lost once none is on its way any more.
    """

    def _forward(self, flight: Flight, position: int, now: float, message: Message) -> None:
        """Send the publication to all neighbours of a position; the message that brought it goes on to the first of them."""
        if position == 0:
            flight.senders = [-1] * len(flight.brokers)
            flight.depth = np.zeros(len(flight.brokers), np.int32)
            flight.copies = array("i")
        assert flight.tree is not None
        sender, here = flight.senders[position], flight.brokers[position]
        onward = [neighbour for neighbour in flight.tree.neighbours[position] if neighbour != sender]
        flight.pending += len(onward)
        for number, neighbour in enumerate(onward):
            if number:
                message = Message(flight, neighbour, position, self._descended, self._descend)
            else:
                message.position, message.source, message.callbacks = neighbour, position, self._descended
            flight.copies.extend((position, neighbour))
            message.sent = now
            message.arrived = self._links.arrival(now, here, flight.brokers[neighbour], flight.identity)
            self._clock.at(message.arrived, ARRIVALS, message)
        self._settle(flight)

    def _reach_tree(self, message: Message) -> None:
        flight: Flight = message.carries
        position, source, now = message.position, message.source, message.arrived
        broker, first = flight.brokers[position], isnan(flight.arrival[position])
        if self._servers:
            message.handled = self._descend if first else self._discard
            stage = 1 if first else 2 + flight.brokers[source]
            if not self._servers[broker].accept(message, self._seconds(flight, broker, stage)):
                self._settle(flight)
                return
        if first:
            flight.arrival[position] = now
            flight.senders[position] = source
            flight.depth[position] = flight.depth[source] + 1
        else:
            self._recorder.counted["duplicates"][flight.window] += 1
        if self._trace is not None:
            hop = (flight.number, flight.brokers[source], broker)
            self._trace.append((message.sent, now, *hop, "flood", bool(flight.due_users[position])))
        if not self._servers:
            if first:
                self._forward(flight, position, now, message)
            else:
                self._settle(flight)

    def _discard(self, message: Message) -> None:
        """The broker at this position has served a copy that was not the first."""
        self._settle(message.carries)

    def _finish(self, flight: Flight) -> None:
        self._lose_all_but(flight, set())
        super()._finish(flight)

    def _lose_all_but(self, flight: Flight, ahead: set[int]) -> tuple[int, int]:
        """Count what is due where nothing was delivered: as lost where no copy can be any more, else it is returned."""
        brokers = users = 0
        for position in np.flatnonzero(np.isnan(flight.served) & (flight.due_users > 0)).tolist():
            due = int(flight.due_users[position])
            if position in ahead:
                brokers, users = brokers + 1, users + due
            else:
                self._ledger.count(flight.window, LOST["queue_full"], 1, due)
        return brokers, users

    def _still_due(self, flight: Flight, messages: list[Message]) -> tuple[int, int]:
        """Brokers and users that copies on their way may still get to, through others that none has arrived at."""
        assert flight.tree is not None
        neighbours = flight.tree.neighbours
        front = [message.position for message in messages]
        ahead = set(np.flatnonzero(np.isnan(flight.served) & ~np.isnan(flight.arrival)).tolist())  # not served yet
        for position in ahead:
            front.extend(neighbours[position])
        while front:
            position = front.pop()
            if isnan(flight.arrival[position]) and position not in ahead:
                ahead.add(position)
                front.extend(neighbours[position])
        return self._lose_all_but(flight, ahead)
