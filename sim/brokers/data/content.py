"""The data planes of content: a publication goes to all its predicates' topics, as a copy each, and brokers match what arrives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.content_subscriptions import ContentSubscriptions
from sim.brokers.data.events import MessagePlane
from sim.brokers.data.flights import Flight
from sim.brokers.fabric.clock import ARRIVALS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.statistics.ledger import CLIMBING, DUE, IN_FLIGHT, LOST, PUBLISHED
from sim.brokers.statistics.record_kernels import fold_tree
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications

_JOINING, _QUEUE_FULL, _IN_FLIGHT = 1, 2, 3  # the better, the higher
_OUTCOMES = {_JOINING: LOST["joining"], _QUEUE_FULL: LOST["queue_full"], _IN_FLIGHT: IN_FLIGHT}


class Copy(Flight):
    """A publication on its way to those who wait for it at one of its predicates.

    `concerned`: for each broker with a user whom it concerned when it left the root, those of them to whom it is due there.
    `increments` (brokers): the counters that each moves for it. `fate` (tree positions): lost there or above, or on its way there at
    the end; `elsewhere` what it is for brokers that are not on the tree. `uplinks_sent`: hops that it took to the root.
    """

    __slots__ = ("bundle", "concerned", "elsewhere", "fate", "increments", "uplinks_sent")

    bundle: Bundle
    concerned: dict[int, list[int]]
    elsewhere: int
    increments: NDArray[np.int64]
    fate: bytearray
    uplinks_sent: int


class Bundle:
    """All copies of a publication; `climbing` of them have not left their roots, `travelling` are still on their way.

    `due`: the broker at which the publication is due to each user, ever since the first copy that concerns the user left its root.
    """

    __slots__ = ("climbing", "copies", "due", "travelling")

    def __init__(self, copies: int) -> None:
        self.copies: list[Copy] = []
        self.climbing = self.travelling = copies
        self.due: dict[int, int] = {}


class ContentPlane(MessagePlane):
    """Carries copies as if they were publications, and puts together what they bring.

    `host()` is the live broker of each user; `loads` tells whether matching takes brokers time.
    """

    def __init__(
        self,
        fabric: Fabric,
        recorder: Recorder,
        subscriptions: Subscriptions,
        publications: Publications,
        content: ContentSubscriptions,
        host: Callable[[], NDArray[np.int32]],
        loads: bool,
    ) -> None:
        super().__init__(fabric, recorder, subscriptions, publications)
        self._content, self._host, self._loads = content, host, loads
        self._concerned = np.zeros(len(fabric.node_of), np.bool_)  # scratch

    def _depart(self, number: int, broker: int, window: int) -> None:
        publications, fields = self._publications, self._content.fields
        published, size = float(publications.time[number]), int(publications.size[number])
        self._ledger.count_publication(window, PUBLISHED)
        bundle = Bundle(fields)
        for field, topic in enumerate(self._content.topics(number)):
            path = self._overlay.uplink(topic, int(self._node_of[broker]))
            copy = Copy(number, topic, broker, published, size, window, self._broker_of[path])
            copy.identity = number * fields + field
            copy.bundle = bundle
            copy.concerned, copy.elsewhere = {}, _JOINING
            bundle.copies.append(copy)
        for copy in bundle.copies[:]:
            self._set_out(copy)

    def _rooted(self, flight: Flight) -> None:
        assert isinstance(flight, Copy)
        flight.bundle.climbing -= 1
        if not flight.bundle.climbing:
            super()._rooted(flight)

    def _seconds(self, flight: Flight, broker: int, stage: int) -> float:
        """Brokers match where a copy may be for their users: at the root and below."""
        assert isinstance(flight, Copy)
        increments = 0
        if self._loads and stage > 0:
            increments = int(flight.increments[broker])
        elif self._loads and broker == flight.uplink[-1]:
            increments = int(self._increments(flight)[broker])
        return self._service(flight.identity, broker, stage, increments)

    def _increments(self, copy: Copy) -> NDArray[np.int64]:
        return self._content.increments(copy.number, copy.topic, self._host(), len(self._node_of))

    def _become_due(self, flight: Flight) -> None:
        assert isinstance(flight, Copy)
        flight.fate = bytearray(len(flight.broker_array))
        if self._loads:
            flight.increments = self._increments(flight)
        self._concern(flight)

    def _miss_root(self, flight: Flight, outcome: int) -> None:
        assert isinstance(flight, Copy)
        flight.elsewhere = _IN_FLIGHT if outcome == IN_FLIGHT else _QUEUE_FULL
        self._concern(flight)

    def _concern(self, flight: Copy) -> None:
        """The publication becomes due to those whom none of its copies has concerned before."""
        bundle, window, host = flight.bundle, flight.window, self._host()
        brokers = set(bundle.due.values())
        users = 0
        for user in self._content.concerned(flight.number, flight.topic):
            broker = int(host[user])
            here = flight.concerned.setdefault(broker, [])
            if user not in bundle.due:
                bundle.due[user] = broker
                users += 1
            if bundle.due[user] == broker:
                here.append(user)
        self._ledger.count(window, DUE, len(set(bundle.due.values())) - len(brokers), users)

    def _lose(self, flight: Flight, position: int, cause: str) -> None:
        assert isinstance(flight, Copy)
        self._mark(flight, position, _QUEUE_FULL)

    def _mark(self, copy: Copy, position: int, fate: int) -> None:
        """A position and all below it."""
        assert copy.tree is not None
        bounds, below = copy.tree.child_bounds, [position]
        while below:
            at = below.pop()
            copy.fate[at] = fate
            below.extend(range(bounds[at], bounds[at + 1]))

    def _still_due(self, flight: Flight, messages: list[Message]) -> tuple[int, int]:
        """Marks where the copy is on its way to; what is due there is counted with what the other copies bring."""
        assert isinstance(flight, Copy)
        for message in messages:
            self._mark(flight, message.position, _IN_FLIGHT)
        return 0, 0

    def _enter(self, flight: Flight, uplinks_sent: int) -> None:
        """No message carries the copy any more; when none carries any of the others, the publication is over."""
        assert isinstance(flight, Copy)
        flight.uplinks_sent = uplinks_sent
        flight.bundle.travelling -= 1
        if not flight.bundle.travelling:
            self._conclude(flight.bundle)

    def _conclude(self, bundle: Bundle) -> None:
        """Enter what became of a publication: to whom which copy brought it first, and what is lost or on its way."""
        recorder, window, copies = self._recorder, bundle.copies[0].window, bundle.copies
        arrived = sorted(row for number, copy in enumerate(copies) for row in self._arrivals(number, copy))
        brokers: set[int] = set()
        users: set[int] = set()
        for _, number, position in arrived:
            copy = copies[number]
            broker = copy.brokers[position]
            new = [user for user in copy.concerned[broker] if user not in users]
            if new:
                copy.fresh[position], copy.further[position] = len(new), broker in brokers
                brokers.add(broker)
                users.update(new)
                if recorder.receipts is not None:
                    recorder.receipts.receive(copy.topic, np.array(new), np.ones(len(new), np.int64))
        recorder.counted["duplicates"][window] += len(arrived) - len(brokers)
        self._miss(bundle, brokers, users)
        for copy in copies:
            self.finished.add(copy, copy.uplinks_sent)
        bundle.copies = []  # they know their bundle, and would have to be collected together

    def _arrivals(self, number: int, copy: Copy) -> list[tuple[float, int, int]]:
        """Where a copy was matched that concerns somebody there: when, its number, and the position; false positives are counted."""
        size = len(copy.served)
        copy.fresh, copy.further = np.zeros(size, np.int32), np.zeros(size, np.bool_)
        came = ~np.isnan(np.array(copy.served)) & (copy.due_users[:size] > 0)
        for broker in copy.concerned:
            self._concerned[broker] = True
        concerned = came & self._concerned[copy.broker_array[:size]]
        for broker in copy.concerned:
            self._concerned[broker] = False
        self._recorder.counted["false_positive_messages"][copy.window] += int(np.count_nonzero(came)) - int(
            np.count_nonzero(concerned)
        )
        return [(copy.served[position], number, position) for position in np.flatnonzero(concerned).tolist()]

    def _miss(self, bundle: Bundle, brokers: set[int], users: set[int]) -> None:
        """Count what is due to others than these brokers and users: as the best that is true of the copies that would bring it."""
        best: dict[int, int] = {}  # user → fate
        for copy in bundle.copies:
            for broker, concerned in copy.concerned.items():
                missing = [user for user in concerned if user not in users]
                if missing:
                    fate = copy.fate[copy.brokers.index(broker)] if broker in copy.brokers else copy.elsewhere
                    best.update((user, max(fate, best.get(user, 0))) for user in missing)
        at_brokers: dict[int, int] = {}
        for user, fate in best.items():
            broker = bundle.due[user]
            at_brokers[broker] = max(fate, at_brokers.get(broker, 0))
        window = bundle.copies[0].window
        fates = list(best.values())
        missed = [fate for broker, fate in at_brokers.items() if broker not in brokers]
        for fate, outcome in _OUTCOMES.items():
            self._ledger.count(window, outcome, missed.count(fate), fates.count(fate))

    def strand(self, number: int, broker: int) -> None:
        """The publication has been held back by its broker to the end: all copies count as on their way to the root."""
        (window,) = self._recorder.windows(self._publications.time[number : number + 1]).tolist()
        topics, host = self._content.topics(number), self._host()
        users = list({user for topic in topics for user in self._content.concerned(number, topic)})
        self._ledger.count_publication(window, PUBLISHED)
        self._ledger.count_publication(window, CLIMBING, len(topics))
        for row in (DUE, IN_FLIGHT):
            self._ledger.count(window, row, len(set(host[users].tolist())), len(users))


class FoldedContentPlane(ContentPlane):
    """Makes no event of a hop, but of a copy's arrival at its root and of its last one below: exact where nothing contends."""

    def __init__(self, fabric: Fabric, *others: Any) -> None:
        super().__init__(fabric, *others)
        self._times = fabric.links.fixed
        self._at_root = (self._reach_root,)
        self._arrived = (self._reach_all,)

    def _climb(self, message: Message) -> None:
        """The copy sets out; its message is as far as the root once it has taken all hops."""
        copy: Copy = message.carries
        time = self._clock.now
        for here, there in pairwise(copy.uplink):
            time += self._times[here][there]
        message.sent, message.position, message.callbacks = self._clock.now, len(copy.uplink) - 1, self._at_root
        if message.position:
            self._clock.at(time, ARRIVALS, message)
        else:
            self._reach_root(message)

    def _reach_root(self, message: Message) -> None:
        self._leave_root(message.carries, message)

    def _forward(self, flight: Flight, position: int, now: float, message: Message) -> None:
        """Down from the root, all the way."""
        assert flight.tree is not None
        recorder = self._recorder
        arrival, sent, last = fold_tree(
            now, flight.broker_array, flight.tree.parents, self._links.hop_delay, recorder.horizon
        )
        flight.arrival = flight.served = arrival.tolist()
        flight.sent = bytearray(sent)
        message.callbacks = self._arrived
        if len(flight.brokers) > 1:
            self._clock.at(last, ARRIVALS, message)
        else:
            self._reach_all(message)

    def _reach_all(self, message: Message) -> None:
        self._settle(message.carries)

    def close(self, held: list[Message]) -> None:
        """Count what is on the way at the end, where it is then."""
        for *_, event in self._clock.pending():
            if isinstance(event, Message) and isinstance(event.carries, Copy) and event.carries.tree is None:
                event.position = self._hops_sent(event)
        super().close(held)

    def _hops_sent(self, message: Message) -> int:
        """The hops to the root that a copy takes before the end."""
        time, hops, uplink = message.sent, 0, message.carries.uplink
        while time < self._recorder.horizon:
            time += self._times[uplink[hops]][uplink[hops + 1]]
            hops += 1
        return hops

    def _still_due(self, flight: Flight, messages: list[Message]) -> tuple[int, int]:
        assert isinstance(flight, Copy)
        flight.fate = bytearray(np.where(np.isnan(flight.arrival), _IN_FLIGHT, 0).astype(np.uint8))
        return 0, 0
