"""Content: a publication is sent to the topics of all its predicates, a copy each, and brokers match arriving copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.carrier import Carrier
from sim.brokers.data.content_subscriptions import ContentSubscriptions
from sim.brokers.data.due import DueByContent
from sim.brokers.data.flights import Flight
from sim.brokers.data.rule_kernels import fold_tree
from sim.brokers.data.rules import Rule
from sim.brokers.fabric.clock import ARRIVALS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.service import Effort
from sim.brokers.statistics.ledger import DUE, IN_FLIGHT, LOST, LOST_COPIES
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.subscriptions import Subscriptions
from sim.workloads.format.workload import Publications

# fates of a copy at a position, and of all copies of a publication, in ascending order of preference
_OFF_TREE = 1
_OUTCOMES = *(LOST[cause] for cause in reversed(LOST_COPIES)), IN_FLIGHT
_FATES = {outcome: fate for fate, outcome in enumerate(_OUTCOMES, _OFF_TREE + 1)}


class Copy(Flight):
    """A copy of a publication in transit to the subscriptions of one of its predicates.

    `concerned`: for each broker with a user whom it concerned when it left the root, the users to whom it is due there.
    `increments` (brokers): the counter increments of each for it. `fate` (tree positions): what became of it where it was not
    delivered; `elsewhere` the same for brokers that are not on the tree. `uplinks_sent`: the hops that it took towards the root.
    """

    __slots__ = ("bundle", "concerned", "elsewhere", "fate", "increments", "uplinks_sent")

    bundle: Bundle
    concerned: dict[int, list[int]]
    elsewhere: int
    increments: NDArray[np.int64]
    fate: NDArray[np.int8]
    uplinks_sent: int


class Bundle:
    """All copies of a publication; `travelling` of them are in transit.

    `due`: the broker at which the publication is due to each user, fixed when the first copy that concerns the user left its root.
    """

    __slots__ = ("copies", "due", "travelling")

    def __init__(self) -> None:
        self.copies: list[Copy] = []
        self.travelling = 0
        self.due: dict[int, int] = {}


class ContentRule(Rule):
    """The rule of content: publications have several flights each, whose outcomes are combined once all are over.

    `host()` is the live broker of each user; `loads` is whether matching takes brokers time.
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
        self.content, self.host, self._due, self._loads = content, host, DueByContent(content, host), loads
        self._concerned = np.zeros(len(fabric.node_of), np.bool_)  # scratch
        self._begun: dict[
            Bundle, float
        ] = {}  # departure times (s) of publications whose copies may be in transit, ascending

    def flights(self, number: int, broker: int, window: int) -> list[Copy]:
        """A copy for each predicate of the publication."""
        publications, fields = self._publications, self.content.fields
        published, size = float(publications.time[number]), int(publications.size[number])
        bundle = Bundle()
        for field, topic in enumerate(self.content.topics(number)):
            copy = Copy(number, topic, broker, published, size, window, self._uplinks.of(topic, broker))
            copy.identity = number * fields + field
            copy.bundle, copy.concerned, copy.elsewhere = bundle, {}, _OFF_TREE
            bundle.copies.append(copy)
        bundle.travelling = len(bundle.copies)
        self._begun[bundle] = max(published, self._fabric.clock.now)
        return list(bundle.copies)

    def effort(self, flight: Flight, broker: int, position: int, stage: int) -> Effort:
        """As for trees; in addition, brokers match copies that may be for their users, at the root and below."""
        assert isinstance(flight, Copy)
        effort = super().effort(flight, broker, position, stage)
        if not self._loads or (stage == 0 and broker != flight.uplink[-1]):
            return effort
        increments = (self._increments(flight) if stage == 0 else flight.increments)[broker]
        return effort._replace(increments=int(increments))

    def _users(self, flight: Flight, position: int) -> int:
        assert isinstance(flight, Copy)
        return len(flight.concerned.get(flight.brokers[position], ()))

    def _users_at_root(self, flight: Flight, root: int) -> int:
        users = self.content.concerned(flight.number, flight.topic)
        return int(np.count_nonzero(self.host()[users] == root))

    def _increments(self, copy: Copy) -> NDArray[np.int64]:
        return self.content.increments(copy.number, copy.topic, self.host(), len(self._fabric.node_of))

    def _become_due(self, flight: Flight) -> None:
        assert isinstance(flight, Copy)
        flight.due_users = self._subscriptions.served_at(flight.topic, flight.broker_array)
        flight.fate = np.zeros(len(flight.broker_array), np.int8)
        if self._loads:
            flight.increments = self._increments(flight)
        self._concern(flight)

    def _become_due_short_of_root(self, flight: Flight, outcome: int) -> None:
        """The publication becomes due to users whom no other copy has concerned."""
        assert isinstance(flight, Copy)
        flight.elsewhere = _FATES[outcome]
        self._concern(flight)

    def _concern(self, copy: Copy) -> None:
        copy.concerned, brokers, users = self._due.concerned(copy.number, copy.topic, copy.bundle.due)
        self._ledger.count(copy.window, DUE, brokers, users)

    def over(self, flight: Flight, uplinks_sent: int, ahead: NDArray[np.bool_] | None = None) -> None:
        """Record what became of the copy; when no other is in transit, the publication is over."""
        assert isinstance(flight, Copy)
        flight.uplinks_sent = uplinks_sent
        for cause in reversed(LOST_COPIES):
            if cause in flight.lost:
                flight.fate[self._lost(flight, flight.lost[cause], ahead)] = _FATES[LOST[cause]]
        if ahead is not None:
            flight.fate[ahead] = _FATES[IN_FLIGHT]
        flight.bundle.travelling -= 1
        if not flight.bundle.travelling:
            self._conclude(flight.bundle)

    def _conclude(self, bundle: Bundle) -> None:
        """Count the outcome of a publication: first copies delivered, and pairs lost or in flight."""
        recorder, window, copies = self._recorder, bundle.copies[0].window, bundle.copies
        arrived = sorted(row for number, copy in enumerate(copies) for row in self._arrivals(number, copy))
        brokers: set[int] = set()
        users: set[int] = set()
        for _, number, position in arrived:
            copy = copies[number]
            broker = copy.brokers[position]
            new = [user for user in copy.concerned[broker] if user not in users]
            if new:
                copy.new_users[position], copy.duplicate_at_broker[position] = len(new), broker in brokers
                brokers.add(broker)
                users.update(new)
                self._receive(copy, position, new)
        recorder.counted["duplicates"][window] += len(arrived) - len(brokers)
        self._miss(bundle, brokers, users)
        for copy in copies:
            self.finished.add(copy, copy.uplinks_sent)
        bundle.copies = []  # breaks the reference cycle of copies and bundle
        del self._begun[bundle]
        if recorder.deliveries is not None and recorder.deliveries.full:
            recorder.deliveries.advance(next(iter(self._begun.values()), self._fabric.clock.now))

    def _receive(self, copy: Copy, position: int, users: list[int]) -> None:
        """The broker at this position has matched a copy for these of its users, who have received no other."""
        recorder, those = self._recorder, np.array(users)
        if recorder.deliveries is not None:
            broker = copy.brokers[position]
            audience = Audience(copy.topic, 0, those, np.full(len(users), broker, np.int32))
            times = copy.served[position], copy.arrival[position], copy.rooted
            recorder.deliveries.add(*times, copy.number, broker, audience)
        elif recorder.receipts is not None:
            recorder.receipts.receive(copy.topic, those, np.ones(len(users), np.int64))

    def _arrivals(self, number: int, copy: Copy) -> list[tuple[float, int, int]]:
        """The arrivals of copies that concern a user at the broker (time, copy, position); false positives are counted."""
        size = len(copy.served)
        copy.new_users, copy.duplicate_at_broker = np.zeros(size, np.int32), np.zeros(size, np.bool_)
        came = ~np.isnan(np.array(copy.served)) & (copy.due_users[:size] > 0)
        for broker in copy.concerned:
            self._concerned[broker] = True
        concerned = came & self._concerned[copy.broker_array[:size]]
        for broker in copy.concerned:
            self._concerned[broker] = False
        unconcerned = int(np.count_nonzero(came)) - int(np.count_nonzero(concerned))
        self._recorder.counted["false_positive_messages"][copy.window] += unconcerned
        return [(copy.served[position], number, position) for position in np.flatnonzero(concerned).tolist()]

    def _miss(self, bundle: Bundle, brokers: set[int], users: set[int]) -> None:
        """Count pairs not delivered, with the best outcome among the copies that would have delivered them."""
        best: dict[int, int] = {}  # user → fate
        for copy in bundle.copies:
            for broker, concerned in copy.concerned.items():
                missing = [user for user in concerned if user not in users]
                if missing:
                    on_tree = broker in copy.brokers
                    fate = int(copy.fate[copy.brokers.index(broker)]) if on_tree else copy.elsewhere
                    best.update((user, max(fate, best.get(user, 0))) for user in missing)
        at_brokers: dict[int, int] = {}
        for user, fate in best.items():
            broker = bundle.due[user]
            at_brokers[broker] = max(fate, at_brokers.get(broker, 0))
        window = bundle.copies[0].window
        fates = list(best.values())
        missed = [fate for broker, fate in at_brokers.items() if broker not in brokers]
        for outcome, fate in ((self._recorder.statistics.off_tree, _OFF_TREE), *_FATES.items()):
            self._ledger.count(window, outcome, missed.count(fate), fates.count(fate))


class FoldedCarrier(Carrier):
    """Makes events only for a copy's arrival at its root and its last arrival below: exact where nothing contends."""

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: ContentRule) -> None:
        super().__init__(fabric, recorder, rule)
        self._times = fabric.links.times
        self._at_root = (self._reach_root,)
        self._arrived = (self._one_less,)

    def _climb(self, message: Message) -> None:
        """The copy departs; its message is at the root after the time of all hops."""
        copy: Flight = message.carries
        time = self._clock.now
        for here, there in pairwise(copy.uplink):
            time += self._times(here)[there]
        message.sent, message.position, message.callbacks = self._clock.now, len(copy.uplink) - 1, self._at_root
        if message.position:
            self._clock.at(time, ARRIVALS, message)
        else:
            self._reach_root(message)

    def _reach_root(self, message: Message) -> None:
        self._leave_root(message.carries, message)

    def _forward(self, flight: Flight, position: int, now: float, message: Message) -> None:
        """Carry the flight from the root down the whole tree."""
        assert flight.tree is not None
        arrival, last = fold_tree(
            now, flight.broker_array, flight.tree.parents, self._links.hops.record, self._recorder.horizon
        )
        flight.arrival = flight.served = arrival.tolist()
        message.callbacks = self._arrived
        if len(flight.brokers) > 1:
            self._clock.at(last, ARRIVALS, message)
        else:
            self._one_less(message)

    def _places(self, message: Message) -> Sequence[int]:
        """The hops towards the root that the copy takes before the end; below it, all positions that it has not reached."""
        if message.carries.tree is not None:
            return range(len(message.carries.brokers))
        time, hops, uplink = message.sent, 0, message.carries.uplink
        while time < self._recorder.horizon:
            time += self._times(uplink[hops])[uplink[hops + 1]]
            hops += 1
        return (hops,)
