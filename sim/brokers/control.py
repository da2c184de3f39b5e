"""Joins and leaves of brokers on topic trees: counted only, or sent as messages that change the tree when the answer is back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim.brokers.broker import Server
from sim.brokers.clock import ARRIVALS, Clock
from sim.brokers.links import Links
from sim.brokers.messages import Message
from sim.brokers.recorder import Recorder
from sim.overlay.geometry import Dissemination


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

    `instantly`: the tree changes at once; otherwise every hop to the root and back is a message, which brokers that take time serve
    ahead of publications. `requests`: a change counts as two messages, the request and the answer, or else as one per hop.
    """

    def __init__(
        self,
        clock: Clock,
        overlay: Dissemination,
        node_of: NDArray[np.int32],
        broker_of: NDArray[np.int32],
        links: Links,
        servers: list[Server],
        service: Callable[[int, int, int], float],
        recorder: Recorder,
        instantly: bool,
        requests: bool,
    ) -> None:
        self._clock, self._overlay, self._recorder = clock, overlay, recorder
        self._node_of, self._broker_of = node_of, broker_of
        self._links, self._servers, self._service = links, servers, service
        self._instantly, self._requests = instantly, requests
        self._number = 0
        self._arrived = (self._reach,)
        self.bootstrapping = True

    def transition(self, topic: int, broker: int, change: int) -> None:
        """The broker begins (+1) or ceases (-1) to want the topic."""
        node = int(self._node_of[broker])
        path = self._overlay.control_path(topic, node)
        messages = 2 if self._requests else len(path) - 1
        if self.bootstrapping:
            self._recorder.bootstrap_messages += messages
        else:
            window = self._recorder.window(self._clock.now)
            self._recorder.subscription_changes[window] += 1
            if not self._instantly:
                self._number += 1
                root = len(self._overlay.uplink(topic, node)) - 1
                request = Request(self._number, topic, node, change, self._broker_of[path].tolist(), root)
                self._send(Message(request, 0, broker, self._arrived, self._handled))
                return
            self._recorder.subscription_overhead[window] += messages
        self._enact(topic, node, change)

    def _enact(self, topic: int, node: int, change: int) -> None:
        if change > 0:
            self._overlay.join(topic, node)
        else:
            self._overlay.leave(topic, node)

    def _send(self, message: Message) -> None:
        request: Request = message.carries
        here, now = request.path[message.position], self._clock.now
        last = message.position == len(request.path) - 1  # the answer is back (or the broker is the root itself)
        messages = (message.position == 0) + (message.position == request.root) if self._requests else int(not last)
        self._recorder.subscription_overhead[self._recorder.window(now)] += messages
        if last:
            self._enact(request.topic, request.node, request.change)
            return
        message.position += 1
        message.callbacks = self._arrived
        there = request.path[message.position]
        self._clock.at(self._links.arrival(now, here, there, -request.number), ARRIVALS, message)

    def _reach(self, message: Message) -> None:
        request: Request = message.carries
        if self._servers:
            broker = request.path[message.position]
            self._servers[broker].accept(
                message, self._service(-request.number, broker, message.position), control=True
            )
        else:
            self._send(message)

    def _handled(self, message: Message) -> None:
        self._send(message)
