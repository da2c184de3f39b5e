"""Joins and leaves of brokers on topic trees: only counted, or sent as messages that change the tree when the answer is back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.brokers.control.courier import Courier
from sim.brokers.control.offloaded_topics import OffloadedTopics
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder

_Asker = tuple[int, int, int, int]
"""Who asks for what: topic, node, how often the topic has changed sides there, and how often the broker has crashed."""


class TreeControl:
    """Applies the transitions of brokers' subscriptions to the overlay.

    Trees change at once, or every hop to the root and back is a message, which brokers that take time serve ahead of publications.
    With `requests`, a request and its answer count once each, otherwise once per hop. `before_change()` is called before a tree
    changes because an answer is back. Links that follow interests are adjusted after all events of an instant. Where topics may be
    offloaded, `offloaded` tells which: a broker that begins or ceases to want a topic offloaded for it sends no request. One that
    is down asks nobody either: trees keep it as they had it, and it leaves them once it is up again, unless the overlay heals.
    `links_changed()` is called when links that follow interests have changed.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        courier: Courier,
        requests: bool,
        before_change: Callable[[], None],
        offloaded: OffloadedTopics | None = None,
    ) -> None:
        self._fabric, self._recorder, self.courier = fabric, recorder, courier
        self._requests, self.before_change, self.offloaded = requests, before_change, offloaded
        self._joined = None if offloaded is None else np.zeros_like(offloaded.kept)  # topics, nodes
        self._asked: dict[_Asker, int] = {}  # joins and leaves so far
        self._last: dict[_Asker, int] = {}  # the latest one that was answered
        self._outages = fabric.outages
        self._crashes = [0] * len(fabric.node_of)
        self._members: dict[int, set[int]] = {}  # topics by node, where brokers may fail
        self._pending = 0
        self._answered: Callable[[], None] | None = None
        self.links_changed: Callable[[], None] = lambda: None
        self.bootstrapping = True

    def transition(self, topic: int, broker: int, change: int) -> None:
        """The broker begins (+1) or ceases (-1) to want the topic."""
        fabric, recorder = self._fabric, self._recorder
        node = fabric.node_of.item(broker)
        if self._outages is not None and self._outages.down.item(broker):
            return
        if self.bootstrapping:
            recorder.bootstrap_messages += self._messages(topic, node)
            self.enact(topic, node, change)
            return
        recorder.count("broker_subscription_changes", fabric.clock.now)
        answered, moves = partial(self.enact, topic, node, change), 0
        if self.offloaded is not None:
            if not self.offloaded.kept[topic, broker]:
                return
            moves = int(self.offloaded.moves[topic, broker])
            answered = partial(self._unless_moved, topic, broker, moves, answered)
        if not fabric.joins_instantly:
            answered = partial(self._unless_crashed, broker, self._crashes[broker], answered)
            key = topic, node, moves, self._crashes[broker]
            number = self._asked[key] = self._asked.get(key, 0) + 1
            answered = partial(self._unless_overtaken, key, number, answered)
        self.ask(topic, node, "subscription_overhead", answered)

    def _unless_overtaken(self, key: _Asker, number: int, enact: Callable[[], None]) -> None:
        """Enact a request, unless a later one was answered before it: a broker with several servers does not keep the order.

        Joins and leaves alternate, so a request and the one that overtakes it cancel out.
        """
        last = self._last.get(key, 0)
        if number > last:
            self._last[key] = number
            if (number - last) % 2:
                enact()

    def _unless_moved(self, topic: int, broker: int, moves: int, enact: Callable[[], None]) -> None:
        """Enact a request, unless the topic was offloaded or taken back since, in which case the tree has followed already."""
        assert self.offloaded is not None
        if self.offloaded.moves[topic, broker] == moves:
            enact()

    def _unless_crashed(self, broker: int, crashes: int, enact: Callable[[], None]) -> None:
        """Enact what was asked for, unless the broker has crashed since."""
        if self._crashes[broker] == crashes:
            enact()

    def crash(self, broker: int) -> None:
        """The broker crashes: it no longer knows what it has asked for."""
        self._crashes[broker] += 1

    def restart(self, broker: int) -> None:
        """The broker is up again, and leaves all trees that it was on, at once."""
        node = int(self._fabric.node_of[broker])
        for topic in sorted(self._members.get(node, ())):
            self._recorder.count("fault_messages", self._fabric.clock.now, self._messages(topic, node))
            self.enact(topic, node, -1)

    def forget(self, broker: int) -> None:
        """The overlay routes around the broker, which is down, so that it has left all trees."""
        node = int(self._fabric.node_of[broker])
        self._members.pop(node, None)
        if self._joined is not None:
            self._joined[:, node] = False

    def follow(self, moved: NDArray[np.bool_], serving: NDArray[np.bool_]) -> None:
        """Follow topics that were offloaded or taken back (topics, brokers): trees change at once, without requests."""
        assert self._joined is not None
        node_of = self._fabric.node_of
        wrong = moved & (self._joined[:, node_of] != serving)
        for topic, broker in np.argwhere(wrong).tolist():
            self.enact(topic, int(node_of[broker]), 1 if serving[topic, broker] else -1)

    def ask(self, topic: int, node: int, counter: str, answered: Callable[[], None]) -> None:
        """Ask the root to let the node join or leave the topic's tree: `answered()` is called when its answer is back.

        The messages are counted as `counter` when they are sent.
        """
        fabric, recorder = self._fabric, self._recorder
        if fabric.joins_instantly:
            recorder.count(counter, fabric.clock.now, self._messages(topic, node))
            answered()
            return
        self._pending += 1
        self._send(topic, node, counter, answered)

    def _send(self, topic: int, node: int, counter: str, answered: Callable[[], None]) -> None:
        """Send a request to the root, and its answer back."""
        fabric, recorder = self._fabric, self._recorder
        path: list[int] = fabric.broker_of[fabric.overlay.control_path(topic, node)].tolist()
        root, last = len(fabric.overlay.uplink(topic, node)) - 1, len(path) - 1

        def passed(position: int) -> None:
            messages = (position == 0) + (position == root) if self._requests else int(position < last)
            recorder.count(counter, fabric.clock.now, messages)

        def again() -> None:
            if self._outages is not None and (self._outages.down | self._outages.absent).item(path[0]):
                arrived()  # of what it has asked for, a broker that has crashed or is leaving wants nothing any more
            else:
                self._send(topic, node, counter, answered)

        def arrived() -> None:
            self.before_change()
            answered()
            self._pending -= 1
            if not self._pending and self._answered is not None:
                done, self._answered = self._answered, None
                done()

        self.courier.send(path, passed, arrived, again=again)

    def all_answered(self, then: Callable[[], None]) -> None:
        """Call `then()` once no join or leave is in transit."""
        if self._pending:
            self._answered = then
        else:
            then()

    def changed(self) -> None:
        """End of the transitions of an instant: update links that follow immediately."""
        if self._fabric.overlay.period is None:
            self.adjust()

    def adjust(self) -> None:
        """Update links that follow interests, and count the messages."""
        messages = self._fabric.overlay.adjust()
        if self.bootstrapping:
            self._recorder.bootstrap_messages += messages
        else:
            self._recorder.count("reconfiguration_overhead", self._fabric.clock.now, messages)
        if messages:
            self.links_changed()

    def adjust_again(self) -> float | None:
        """Update links that follow periodically; returns when to do it next."""
        self.before_change()
        self.adjust()
        period = self._fabric.overlay.period
        return None if period is None else self._fabric.clock.now + period

    def enact(self, topic: int, node: int, change: int) -> None:
        """The node joins (+1) or leaves (-1) the topic's tree; where brokers may fail, unless that is so already."""
        if self._outages is not None:
            members = self._members.setdefault(node, set())
            if (topic in members) == (change > 0):
                return
            (members.add if change > 0 else members.discard)(topic)
        if change > 0:
            self._fabric.overlay.join(topic, node)
        else:
            self._fabric.overlay.leave(topic, node)
        if self._joined is not None:
            self._joined[topic, node] = change > 0

    def _messages(self, topic: int, node: int) -> int:
        count = self._fabric.overlay.control_requests if self._requests else self._fabric.overlay.control_hops
        return count(topic, node)
