"""The data plane that does everything: every hop of every message is one event in SimPy's heap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim.brokers.data.finished import Finished
from sim.brokers.data.flights import Flight
from sim.brokers.fabric.clock import ARRIVALS, BARRIERS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.statistics.ledger import CLIMBING, DROPPED, DUE, IN_FLIGHT, LOST, PUBLISHED, ROOTED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import SplitSubscriptions, Subscriptions
from sim.workloads.format.workload import Publications

NAN = float("nan")


class MessagePlane:
    """Carries publications up to the root and down the tree, hop by hop.

    `subscriptions` are the live ones of the network.
    """

    folds = False

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        self._publications = publications
        self._clock, self._overlay, self._recorder = fabric.clock, fabric.overlay, recorder
        self._subscriptions, self._node_of, self._broker_of = subscriptions, fabric.node_of, fabric.broker_of
        self._links, self._servers, self._service = fabric.links, fabric.servers, fabric.service
        # trees need not reach all that are due
        self._in_part = not fabric.joins_instantly or fabric.overlay.period is not None
        self._ledger, self._trace = self._recorder.ledger, self._recorder.trace
        self.finished = Finished(recorder)
        self._active: dict[Flight, None] = {}
        self._released: set[int] = set()  # publications that were held back and have not left their roots yet
        self._when_arrived: Callable[[], None] | None = None
        self._when_rooted: Callable[[], None] | None = None
        self._climbed = (self._reach_uplink,)
        self._descended = (self._reach_tree,)

    def publish(self, first: int, brokers: list[int]) -> None:
        """Publication number `first` leaves now for its broker; one at a time."""
        (publisher,) = brokers
        self._depart(first, publisher, self._recorder.window(self._clock.now))

    def release(self, number: int, broker: int) -> None:
        """A publication that its broker has held back since it was published leaves now."""
        self._released.add(number)
        (window,) = self._recorder.windows(self._publications.time[number : number + 1]).tolist()
        self._depart(number, broker, window)

    def _depart(self, number: int, broker: int, window: int) -> None:
        publications = self._publications
        topic, size = int(publications.topic[number]), int(publications.size[number])
        path = self._overlay.uplink(topic, int(self._node_of[broker]))
        published = float(publications.time[number])
        flight = Flight(number, topic, broker, published, size, window, self._broker_of[path])
        self._ledger.count_publication(window, PUBLISHED)
        self._set_out(flight)

    def _set_out(self, flight: Flight) -> None:
        """A flight leaves its broker now."""
        self._active[flight] = None
        message = Message(flight, 0, -1, self._climbed, self._climb)
        if self._servers:
            self._serve_uplink(message)
        else:
            self._climb(message)

    def settle(self) -> None:
        """Nothing to do: what left its root took the tree along."""

    def remap(self) -> None:
        """Nothing to do: what climbs to its root keeps to the brokers that it set out over."""

    def when_arrived(self, then: Callable[[], None]) -> None:
        """Have `then()` called once, when nothing that was published is on its way."""
        self._when_arrived = then
        self._watch()

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Have `then()` called once, when all that was released has left its root."""
        self._when_rooted = then
        self._watch()

    def _watch(self) -> None:
        """Tell those who wait, after everything else of this instant, once what they wait for has happened."""
        if self._when_arrived is not None and not self._active:
            self._clock.call(self._clock.now, BARRIERS, self._when_arrived)
            self._when_arrived = None
        if self._when_rooted is not None and not self._released:
            self._clock.call(self._clock.now, BARRIERS, self._when_rooted)
            self._when_rooted = None

    def _gone(self, flight: Flight) -> None:
        """No message carries the publication any more."""
        del self._active[flight]
        if self._when_arrived is not None:
            self._watch()

    def _rooted(self, flight: Flight) -> None:
        """The publication has left its root, or has been dropped before."""
        if self._released:
            self._released.discard(flight.number)
            self._watch()

    # -- up to the root

    def _reach_uplink(self, message: Message) -> None:
        flight: Flight = message.carries
        position = message.position
        if self._servers and not self._serve_uplink(message):
            return
        if self._trace is not None:
            hop = (flight.number, flight.uplink[position - 1], flight.uplink[position])
            self._trace.append((message.sent, message.arrived, *hop, "uplink", False))
        if not self._servers:
            self._climb(message)

    def _serve_uplink(self, message: Message) -> bool:
        """Have the broker take the publication; False where its queue is full and the publication is dropped."""
        flight: Flight = message.carries
        broker = flight.uplink[message.position]
        if self._servers[broker].accept(message, self._seconds(flight, broker, 0)):
            return True
        self._ledger.count_publication(flight.window, DROPPED)
        self._miss_root(flight, LOST["queue_full"])
        self._rooted(flight)
        self._gone(flight)
        self._enter(flight, message.position)
        return False

    def _seconds(self, flight: Flight, broker: int, stage: int) -> float:
        """What the broker needs at this stage of a flight's way."""
        return self._service(flight.identity, broker, stage, 0)

    def _climb(self, message: Message) -> None:
        """The broker at this place of the uplink has handled the publication: on to the next, or down from the root."""
        flight: Flight = message.carries
        position = message.position + 1
        if position == len(flight.uplink):
            self._leave_root(flight, message)
            return
        here = flight.uplink[position - 1]
        message.position = position
        message.callbacks = self._climbed
        message.sent = self._clock.now
        message.arrived = self._links.arrival(message.sent, here, flight.uplink[position], flight.identity)
        self._clock.at(message.arrived, ARRIVALS, message)

    # -- down the tree

    def _leave_root(self, flight: Flight, message: Message) -> None:
        """The publication becomes due, to all that subscribe now, along the tree as it stands now."""
        flight.rooted = self._clock.now
        tree = self._overlay.tree(flight.topic, int(self._node_of[flight.uplink[-1]]))
        flight.tree = tree
        flight.broker_array = self._broker_of[tree.nodes]
        flight.due_users = self._subscriptions.served[flight.topic][flight.broker_array]
        self._ledger.count_publication(flight.window, ROOTED)
        self._become_due(flight)
        self._rooted(flight)
        size = len(tree)
        if size == 0:
            self._finish(flight)
            return
        flight.brokers = flight.broker_array.tolist()
        flight.child_bounds = tree.child_bounds
        flight.depth = tree.depth
        flight.arrival = [NAN] * size
        flight.sent = bytearray(size)
        flight.arrival[0] = flight.rooted
        flight.served = flight.arrival.copy() if self._servers else flight.arrival
        flight.pending = 1
        message.handled = self._descend
        self._forward(flight, 0, flight.rooted, message)

    def _become_due(self, flight: Flight) -> None:
        recorder, window, subscriptions = self._recorder, flight.window, self._subscriptions
        due = subscriptions.brokers_served[flight.topic]
        due_users = subscriptions.users_served[flight.topic]
        if isinstance(subscriptions, SplitSubscriptions) and due < subscriptions.brokers_wanting[flight.topic]:
            flight.offloaded = subscriptions.offloaded(flight.topic)
        if recorder.audiences is not None:
            flight.audience = recorder.audiences.audience(flight.topic, subscriptions.version[flight.topic])
        self._ledger.count(window, DUE, due, due_users)
        if self._in_part:
            reached, users = int(np.count_nonzero(flight.due_users)), int(flight.due_users.sum())
            self._ledger.count(window, LOST["joining"], due - reached, due_users - users)

    def _miss_root(self, flight: Flight, outcome: int) -> None:
        """The publication will not get to its root: it becomes due now, with this outcome."""
        recorder, topic, window = self._recorder, flight.topic, flight.window
        brokers, users = self._subscriptions.brokers_wanting[topic], self._subscriptions.users_wanting[topic]
        if recorder.audiences is not None:
            flight.audience = recorder.audiences.audience(topic, self._subscriptions.version[topic])
        self._ledger.count(window, DUE, brokers, users)
        self._ledger.count(window, outcome, brokers, users)

    def _reach_tree(self, message: Message) -> None:
        flight: Flight = message.carries
        position, now = message.position, message.arrived
        if self._servers:
            broker = flight.brokers[position]
            if not self._servers[broker].accept(message, self._seconds(flight, broker, 1)):
                self._lose(flight, position, "queue_full")
                self._settle(flight)
                return
        arrival = flight.arrival
        if arrival[position] == arrival[position]:
            self._recorder.counted["duplicates"][flight.window] += 1
        else:
            arrival[position] = now
        if self._trace is not None:
            hop = (flight.number, flight.brokers[message.source], flight.brokers[position])
            self._trace.append((message.sent, now, *hop, "tree", bool(flight.due_users[position])))
        if not self._servers:
            self._forward(flight, position, now, message)

    def _descend(self, message: Message) -> None:
        """The broker at this position has served the publication, and so delivered it."""
        flight: Flight = message.carries
        flight.served[message.position] = now = self._clock.now
        self._forward(flight, message.position, now, message)

    def _forward(self, flight: Flight, position: int, now: float, message: Message) -> None:
        """Send the publication to all children of a position; the message that brought it goes on to the first of them."""
        bounds = flight.child_bounds
        first, end = bounds[position], bounds[position + 1]
        if first == end:
            self._settle(flight)
            return
        flight.pending += end - first - 1
        brokers, sent, links, at = flight.brokers, flight.sent, self._links, self._clock.at
        here, number = brokers[position], flight.identity
        times = links.fixed[here] if links.fixed else None
        for child in range(first, end):
            if child > first:
                message = Message(flight, child, position, self._descended, self._descend)
            else:
                message.position, message.source, message.callbacks = child, position, self._descended
            sent[child] = 1
            message.sent = now
            message.arrived = time = (
                now + times[brokers[child]] if times else links.arrival(now, here, brokers[child], number)
            )
            at(time, ARRIVALS, message)

    def _settle(self, flight: Flight) -> None:
        """One message less carries the publication."""
        flight.pending -= 1
        if not flight.pending:
            self._finish(flight)

    def _finish(self, flight: Flight) -> None:
        self._gone(flight)
        self._enter(flight, len(flight.uplink) - 1)

    def _enter(self, flight: Flight, uplinks_sent: int) -> None:
        """Enter a flight that no message carries any more, or that the end of the run overtook."""
        self.finished.add(flight, uplinks_sent)

    def _due_below(self, flight: Flight, position: int) -> tuple[int, int]:
        """Brokers and users due at a position or below it."""
        tree = flight.tree
        assert tree is not None
        below, brokers, users = [position], 0, 0
        while below:
            at = below.pop()
            n = int(flight.due_users[at])
            brokers += n > 0
            users += n
            below.extend(range(tree.child_bounds[at], tree.child_bounds[at + 1]))
        return brokers, users

    def _lose(self, flight: Flight, position: int, cause: str) -> None:
        self._ledger.count(flight.window, LOST[cause], *self._due_below(flight, position))

    # -- the end

    def strand(self, number: int, broker: int) -> None:
        """The publication has been held back by its broker to the end: it counts as on its way to the root."""
        publications, recorder = self._publications, self._recorder
        published, size = float(publications.time[number]), int(publications.size[number])
        (window,) = recorder.windows(publications.time[number : number + 1]).tolist()
        here = np.array([broker], np.int32)
        self._ledger.count_publication(window, PUBLISHED)
        self._ledger.count_publication(window, CLIMBING)
        flight = Flight(number, int(publications.topic[number]), broker, published, size, window, here)
        self._miss_root(flight, IN_FLIGHT)
        self.finished.add(flight, 0)

    def close(self, held: list[Message]) -> None:
        """Count what is on the way at the end: on links (in the clock's heap) or held by brokers."""
        on_links = [event for _, _, _, event in self._clock.pending() if isinstance(event, Message)]
        travelling: dict[Flight, list[Message]] = {flight: [] for flight in self._active}
        for message in on_links + held:
            if isinstance(message.carries, Flight):
                travelling[message.carries].append(message)
        for flight, messages in travelling.items():
            if flight.tree is None:
                for message in messages:  # the one that carries it
                    self._ledger.count_publication(flight.window, CLIMBING)
                    self._miss_root(flight, IN_FLIGHT)
                    self._enter(flight, message.position)
            else:
                self._ledger.count(flight.window, IN_FLIGHT, *self._still_due(flight, messages))
                self._enter(flight, len(flight.uplink) - 1)
        self.finished.record()

    def _still_due(self, flight: Flight, messages: list[Message]) -> tuple[int, int]:
        """Brokers and users that a publication is on its way to, by messages on links and those that brokers hold."""
        below = [self._due_below(flight, message.position) for message in messages]
        return sum(brokers for brokers, _ in below), sum(users for _, users in below)
