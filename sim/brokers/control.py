"""Joins and leaves of brokers on topic trees: counted only, or sent as messages that change the tree when the answer is back."""

from __future__ import annotations

from collections.abc import Callable

from sim.brokers.clock import CONTROL_ARRIVALS
from sim.brokers.fabric import Fabric
from sim.brokers.messages import Message


class Request:
    """A join (+1) or leave (-1) on its way to the root and back; `path` holds brokers, the root at position `root`."""

    __slots__ = ("change", "node", "number", "path", "root", "topic")

    def __init__(self, number: int, topic: int, node: int, change: int, path: list[int], root: int) -> None:
        self.number = number
        self.topic = topic
        self.node = node
        self.change = change
        self.path = path
        self.root = root


class TreeControl:
    """Carries the transitions of brokers' subscriptions into the overlay.

    Trees change at once; or else every hop to the root and back is a message, which brokers that take time serve ahead of
    publications. `requests`: a message counts once, such as a request and its answer, or else once per hop.
    `settle()` is called before a tree changes because an answer is back. Links that follow interests are adjusted once everything that
    happens at one instant has happened.
    """

    def __init__(self, fabric: Fabric, requests: bool, settle: Callable[[], None]) -> None:
        self._fabric, self._recorder, self._requests, self._settle = fabric, fabric.recorder, requests, settle
        self._number = 0
        self._arrived = (self._reach,)
        self.bootstrapping = True

    def transition(self, topic: int, broker: int, change: int) -> None:
        """The broker begins (+1) or ceases (-1) to want the topic."""
        fabric = self._fabric
        node = int(fabric.node_of[broker])
        count = fabric.overlay.control_requests if self._requests else fabric.overlay.control_hops
        messages = count(topic, node)
        if self.bootstrapping:
            self._recorder.bootstrap_messages += messages
        else:
            window = self._recorder.window(fabric.clock.now)
            self._recorder.subscription_changes[window] += 1
            if not fabric.joins_instantly:
                self._number += 1
                path = fabric.broker_of[fabric.overlay.control_path(topic, node)]
                root = len(fabric.overlay.uplink(topic, node)) - 1
                request = Request(self._number, topic, node, change, path.tolist(), root)
                self._send(Message(request, 0, -1, self._arrived, self._handled))
                return
            self._recorder.subscription_overhead[window] += messages
        self._enact(topic, node, change)

    def adjust(self) -> None:
        """All transitions of this instant are made: count what links cost that follow interests."""
        messages = self._fabric.overlay.adjust()
        if self.bootstrapping:
            self._recorder.bootstrap_messages += messages
        else:
            self._recorder.subscription_overhead[self._recorder.window(self._fabric.clock.now)] += messages

    def _enact(self, topic: int, node: int, change: int) -> None:
        if change > 0:
            self._fabric.overlay.join(topic, node)
        else:
            self._fabric.overlay.leave(topic, node)

    def _send(self, message: Message) -> None:
        request: Request = message.carries
        here, now = request.path[message.position], self._fabric.clock.now
        last = message.position == len(request.path) - 1  # the answer is back (or the broker is the root itself)
        messages = (message.position == 0) + (message.position == request.root) if self._requests else int(not last)
        self._recorder.subscription_overhead[self._recorder.window(now)] += messages
        if last:
            self._settle()
            self._enact(request.topic, request.node, request.change)
            return
        message.position += 1
        message.callbacks = self._arrived
        there = request.path[message.position]
        self._fabric.clock.at(self._fabric.links.arrival(now, here, there, -request.number), CONTROL_ARRIVALS, message)

    def _reach(self, message: Message) -> None:
        request: Request = message.carries
        if self._fabric.servers:
            broker = request.path[message.position]
            service = self._fabric.service(-request.number, broker, message.position)
            self._fabric.servers[broker].accept(message, service, control=True)
        else:
            self._send(message)

    def _handled(self, message: Message) -> None:
        self._send(message)
