"""The data plane for networks in which nothing contends: a publication's whole path is computed at once.

Hop times are added in the order of its path, in compiled code, to the same bits as if every hop had been an event.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.due import Due, DueByTopic
from sim.brokers.data.routes import Uplinks
from sim.brokers.data.rule_kernels import fold_tree
from sim.brokers.fabric.clock import BARRIERS
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.messages import Message
from sim.brokers.fabric.station_record import StationRecord
from sim.brokers.fabric.station_windows import StationWindows
from sim.brokers.fabric.stations import station_record
from sim.brokers.statistics.deliveries import Arrivals, DuePlaces
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.records import Folds, starts
from sim.brokers.users.subscriptions import Subscriptions
from sim.overlay.geometry import EMPTY_TREE, TopicTree
from sim.workloads.format.workload import Publications

_BATCH = 4096  # publications that are folded at once
_POSITIONS = 1 << 18  # of their trees, likewise
_ARRIVALS = 1 << 20  # at these, by any of them, likewise

_Due = tuple[
    float, int, int, NDArray[np.int32]
]  # (time at which a publication leaves its root, its number, topic and uplink)


class FoldedEngine:
    """Carries each publication in one step, along the tree as it stands when the publication leaves its root.

    `subscriptions` are the live ones of the network. Exact where brokers take no time and links have no jitter, since no message
    can then affect when another one arrives.
    """

    together = 1 << 16
    follows = True

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        self._fabric, self._recorder = fabric, recorder
        self._due, self._publications = DueByTopic(recorder, subscriptions), publications
        self._uplinks = Uplinks(fabric, timed=True)
        self._climbing: list[_Due] = []  # a heap
        self._rooted = _Rooted()
        self._held: dict[int, list[int]] = {}  # by broker: publications that it holds back
        self._departed: dict[int, float] = {}  # when publications that were held back left; infinite: never
        self._released_until = 0.0  # when the last publication leaves its root
        self._last_departed = 0.0  # when the last publication left its broker; later ones leave no earlier
        satisfaction = recorder.satisfaction
        self._period_of = None if satisfaction is None else satisfaction.period_of
        self._latest = np.zeros(1)  # the last arrival of folded publications

    def publish(self, first: int, brokers: NDArray[np.int32]) -> None:
        """Publications number `first` and following leave for these brokers, before anything else happens."""
        last = first + len(brokers)
        times = self._publications.time[first:last].tolist()
        topics = self._publications.topic[first:last].tolist()
        following = self._following()
        for number, time, topic, broker in zip(range(first, last), times, topics, brokers.tolist(), strict=True):
            self._climb(number, time, topic, broker, following)
        self._leave_roots(following)

    def hold(self, number: int, broker: int) -> None:
        """Hold back a publication that arrives at the broker now."""
        self._held.setdefault(broker, []).append(number)

    def recall(self, broker: int) -> list[int]:
        """Forget what the broker has held back."""
        return self._held.pop(broker, [])

    def release(self, broker: int) -> None:
        """Release what the broker has held back."""
        clock = self._fabric.clock
        for number in self._held.pop(broker, []):
            self._departed[number] = clock.now
            rooted = self._climb(number, clock.now, int(self._publications.topic[number]), broker, self._following())
            self._released_until = max(self._released_until, rooted)

    def _following(self) -> float:
        """When the next event that may change something is due (s), or the end."""
        return min(self._fabric.clock.peek(), self._recorder.horizon)

    def _climb(self, number: int, time: float, topic: int, broker: int, following: float) -> float:
        """A publication departs at this time; returns when it leaves its root. No tree changes before the `following` event."""
        uplink, _, times = self._uplinks.of(topic, broker)
        self._last_departed = time
        for hop in times:
            time += hop
        if times or time < following:
            heappush(self._climbing, (time, number, topic, uplink))
        else:
            self._leave_root(time, number, topic, uplink)
        return time

    def advance(self, until: float) -> None:
        """Fold the publications that leave their roots before `until`, with the present trees, and subscriptions as of then."""
        self._leave_roots(until)
        self._uplinks.trees_change()

    def _leave_roots(self, until: float) -> None:
        climbing = self._climbing
        while climbing and climbing[0][0] < until:
            self._leave_root(*heappop(climbing))

    def next_time(self) -> float:
        """When the next publication leaves its root (s)."""
        return self._climbing[0][0] if self._climbing else math.inf

    def fail(self, broker: int) -> list[Message]:
        """Unused, as publications are not folded where something may fail."""
        raise AssertionError("nothing fails where publications are folded")

    def restart(self, broker: int) -> None:
        """Never."""

    def keeps(self, broker: int) -> bool:
        """Never."""
        return False

    def outages_changed(self) -> None:
        """Never."""

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        self._uplinks.brokers_moved()
        self._rooted.trees.clear()

    def control_arrival(self, here: int, there: int, number: int) -> float:
        """When a control message that leaves a broker now arrives at another."""
        return self._fabric.links.arrival(self._fabric.clock.now, here, there, number)

    def serve_control(self, broker: int, message: Message, service: float) -> None:
        """Unused, as brokers take no time."""
        raise AssertionError("brokers take no time")

    def when_idle(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when no publication is in transit; until then nothing is published or changes."""
        self._fold()
        latest, fabric = float(self._latest[0]), self._fabric
        for time, _, topic, uplink in self._climbing:
            tree = fabric.overlay.tree(topic, int(fabric.node_of[uplink[-1]]))
            hops, brokers = fabric.links.hops.record, fabric.broker_of[tree.nodes]
            last = fold_tree(time, brokers, tree.parents, hops, np.inf)[1] if len(tree) else time
            latest = max(latest, last)
        self._at_the_end_of(latest, then)

    def when_rooted(self, then: Callable[[], None]) -> None:
        """Call `then()` once, when everything released has left its root."""
        self._at_the_end_of(self._released_until, then)

    def stop_waiting(self) -> None:
        """Nothing to do: nothing fails on this plane."""

    def _at_the_end_of(self, time: float, then: Callable[[], None]) -> None:
        """Call `then()` at this time (or now if it is past), after all publications that leave their roots at that instant."""

        def act() -> None:
            self._leave_roots(math.nextafter(clock.now, math.inf))
            then()

        clock = self._fabric.clock
        clock.call(max(time, clock.now), BARRIERS, act)

    def _leave_root(self, time: float, number: int, topic: int, uplink: NDArray[np.int32]) -> None:
        rooted, fabric = self._rooted, self._fabric
        self._due.subscriptions.catch_up(time)
        root = fabric.node_of.item(uplink.item(-1))
        tree = fabric.overlay.tree(topic, root)
        version = self._due.subscriptions.version.item(topic)
        period = 0 if self._period_of is None else self._period_of.item(number)
        key = topic, root, period
        held = rooted.trees.get(key)
        if held is None or held[0] is not tree or held[1] != version:
            held = tree, version, self._take(tree, topic, period)
            rooted.trees[key] = held
        self._enter(number, uplink, time, held[2])

    def _take(self, tree: TopicTree, topic: int, period: int) -> int:
        """Keep a tree and the due brokers and users as they are now, for publications of a period; returns its number."""
        brokers = self._fabric.broker_of.take(tree.nodes)
        return self._rooted.take(tree, brokers, self._due.leaving_root(topic, brokers), period)

    def _enter(self, number: int, uplink: NDArray[np.int32], time: float, tree: int) -> None:
        rooted = self._rooted
        rooted.number.append(number)
        rooted.uplinks.append(uplink)
        rooted.time.append(time)
        rooted.tree.append(tree)
        rooted.arrivals += rooted.sizes[tree]
        if len(rooted.number) >= _BATCH or rooted.positions >= _POSITIONS or rooted.arrivals >= _ARRIVALS:
            self._fold()

    def _fold(self) -> None:
        rooted, recorder = self._rooted, self._recorder
        if rooted.number:
            number = np.array(rooted.number)
            published, window = self._publications.time[number], recorder.windows(self._publications.time[number])
            size, topic = self._publications.size[number].astype(np.int64), self._publications.topic[number]
            departed = self._departures(number, published)
            folds = rooted.folds(recorder, published, departed, size, window, topic)
            reached = np.zeros(rooted.positions, np.int64)
            recorder.fold(folds, reached, self._latest)
            if recorder.deliveries is not None:
                places = DuePlaces(folds.tree, folds.tree_from, folds.brokers, folds.due_users)
                arrivals = Arrivals(folds.arrivals, folds.arrival_from)
                audiences = [due.audience for due in rooted.dues]
                recorder.deliveries.arrive(number, folds.rooted, places, arrivals, audiences)
            if recorder.channel is not None and any(len(due.offloaded.brokers) for due in rooted.dues):
                root = np.array([uplink[-1] for uplink in rooted.uplinks])
                columns = number, folds.tree, published, folds.rooted, window, root, size, topic
                recorder.offload(columns, [due.offloaded for due in rooted.dues], [due.audience for due in rooted.dues])
            if recorder.audiences is not None:
                rooted.arrive(recorder, reached)
            if recorder.satisfaction is not None:
                recorder.satisfaction.record_periods(number)
            if recorder.deliveries is not None and recorder.deliveries.full:
                recorder.deliveries.advance(min(self._last_departed, self.next_time()))
        self._rooted = _Rooted()

    def _departures(self, number: NDArray[np.int64], published: NDArray[np.float64]) -> NDArray[np.float64]:
        """When publications left their brokers: when they were published, unless they were held back."""
        if not self._departed:
            return published
        return np.array(
            [self._departed.pop(n, time) for n, time in zip(number.tolist(), published.tolist(), strict=True)]
        )

    def _miss_root(self, time: float, number: int, topic: int, uplink: NDArray[np.int32]) -> None:
        """The publication does not reach its root before the end: it becomes due now, and is in flight."""
        period = 0 if self._period_of is None else int(self._period_of[number])
        tree = self._rooted.take(EMPTY_TREE, EMPTY_TREE.nodes, self._due.short_of_root(topic), period)
        self._enter(number, uplink, time, tree)

    def close(self) -> StationRecord:
        """Fold what has left its root before the end, and count what has not; brokers take no time."""
        self.advance(self._recorder.horizon)
        for broker, numbers in sorted(self._held.items()):
            for number in numbers:
                self._departed[number] = math.inf
                here = np.array([broker], np.int32)
                self._miss_root(math.inf, number, int(self._publications.topic[number]), here)
        for climbing in self._climbing:
            self._miss_root(*climbing)
        self._fold()
        return station_record([], StationWindows(self._recorder.edges, self._recorder.measured))


class _Rooted:
    """Publications that have left their roots and wait to be folded, and their trees."""

    def __init__(self) -> None:
        self.number = array("q")
        self.time = array("d")
        self.tree = array("q")
        self.uplinks: list[NDArray[np.int32]] = []
        self.positions = self.arrivals = 0
        self.sizes = array("q")  # of the trees
        # by topic, root and period: the version, and the number of its tree
        self.trees: dict[tuple[int, int, int], tuple[TopicTree, int, int]] = {}
        self._taken: list[tuple[NDArray[np.int32], TopicTree, Due]] = []
        self._periods = array("q")

    def take(self, tree: TopicTree, brokers: NDArray[np.int32], due: Due, period: int) -> int:
        """Keep a tree over these brokers, and to whom publications of a period are due on it; returns its number."""
        self._taken.append((brokers, tree, due))
        self._periods.append(period)
        self.sizes.append(len(tree))
        self.positions += len(tree)
        return len(self._taken) - 1

    @property
    def dues(self) -> list[Due]:
        """To whom publications are due on each tree."""
        return [due for _, _, due in self._taken]

    def arrive(self, recorder: Recorder, reached: NDArray[np.int64]) -> None:
        """Report to the audiences how many publications reached each position of the trees, of how many that became due."""
        first, published = 0, np.bincount(np.array(self.tree), minlength=len(self._taken)).tolist()
        for entry, (brokers, _, due) in enumerate(self._taken):
            times = reached[first : first + len(brokers)]
            if due.audience is not None:
                arrived = np.where(due.on_tree > 0, times, 0)
                recorder.arrive(due.audience, self._periods[entry], published[entry], brokers, arrived)
            first += len(brokers)

    def folds(
        self,
        recorder: Recorder,
        published: NDArray[np.float64],
        departed: NDArray[np.float64],
        size: NDArray[np.int64],
        window: NDArray[np.int64],
        topic: NDArray[np.int32],
    ) -> Folds:
        """The publications as arrays."""
        bounds, tree = starts([brokers for brokers, _, _ in self._taken]), np.array(self.tree)
        return Folds(
            np.concatenate(self.uplinks),
            starts(self.uplinks),
            np.concatenate([brokers for brokers, _, _ in self._taken]),
            np.concatenate([tree.parents for _, tree, _ in self._taken]),
            np.concatenate([tree.depth for _, tree, _ in self._taken]),
            np.concatenate([due.on_tree for due in self.dues]),
            bounds,
            np.array([(due.brokers, due.users) for due in self.dues]),
            tree,
            published,
            departed,
            np.array(self.time),
            size,
            window,
            topic,
            *recorder.arrivals(bounds, tree),
        )
