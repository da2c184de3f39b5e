"""Rules for copies of publications at a broker: to whom they are due, the next hops, and what is lost when one is dropped.

Rules know nothing about time; engines call them when a copy departs, leaves its root, or ends its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.due import Due, DueByTopic
from sim.brokers.data.finished import Finished
from sim.brokers.data.flights import Flight
from sim.brokers.data.routes import Uplinks
from sim.brokers.data.rule_kernels import flood_front, reach
from sim.brokers.data.shared_ways import SharedWays
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.service import NO_EFFORT, Effort
from sim.brokers.statistics.hops import FLOOD, TREE
from sim.brokers.statistics.ledger import CLIMBING, DROPPED, DUE, IN_FLIGHT, LOST, LOST_COPIES, PUBLISHED, ROOTED
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.users.sharing import NOBODY_CHOSEN
from sim.brokers.users.subscriptions import Subscriptions
from sim.overlay.geometry import NO_HOP_LIMIT, TopicTree
from sim.workloads.format.workload import Publications

NAN = float("nan")


class Rule(ABC):
    """The rule of trees: a broker forwards what it has served to its children, and every copy is the first one."""

    kind = TREE
    """The kind of a hop below the root, in the trace."""

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        self._fabric, self._overlay, self._recorder, self._ledger = fabric, fabric.overlay, recorder, recorder.ledger
        self._publications, self._subscriptions = publications, subscriptions
        self._uplinks, self._weighs = Uplinks(fabric), fabric.service.setting.weighs
        self._placed: dict[tuple[int, int], tuple[TopicTree, NDArray[np.int32], list[int]]] = {}  # by topic and root
        self.finished = Finished(recorder)

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        self._uplinks.brokers_moved()
        self._placed.clear()

    def trees_change(self) -> None:
        """Trees or subscriptions are about to change."""
        self._uplinks.trees_change()

    # -- from the publisher to the root

    def uplink(self, topic: int, broker: int) -> list[int]:
        """The brokers on the present way from a broker to the root, both included."""
        return self._uplinks.of(topic, broker).brokers

    def window(self, number: int) -> int:
        """The window in which a publication is published."""
        return int(self._recorder.windows(self._publications.time[number : number + 1])[0])

    def qos(self, flight: Flight) -> int:
        """The quality of service with which its publication was published; -1: not known."""
        return self._publications.qos.item(flight.number)

    def publish(self, number: int, broker: int, window: int) -> Sequence[Flight]:
        """Count a publication of a window; returns the flights that depart from the broker."""
        self._ledger.count_publication(window, PUBLISHED)
        return self.flights(number, broker, window)

    @abstractmethod
    def flights(self, number: int, broker: int, window: int) -> Sequence[Flight]:
        """The flights that depart from the broker for a publication."""

    def effort(self, flight: Flight, broker: int, position: int, stage: int) -> Effort:
        """The work of the broker at a position for a flight; stage 0: on its way up, 1: a first copy below the root, 2: a duplicate.

        At the root it depends on the tree and the subscriptions as they are when the flight arrives there.
        """
        if not self._weighs:
            return NO_EFFORT
        if stage > 1:
            return Effort(size=flight.size)
        if stage == 1:
            return Effort(0, self._copies(flight, position), self._users(flight, position), flight.size)
        if position < len(flight.uplink) - 1:
            return Effort(copies=1, size=flight.size)
        tree = self._overlay.tree(flight.topic, int(self._fabric.node_of[broker]))
        return (
            Effort(0, *self._work_of_root(flight, broker, tree), flight.size) if len(tree) else Effort(size=flight.size)
        )

    def _work_of_root(self, flight: Flight, root: int, tree: TopicTree) -> tuple[int, int]:
        """How many copies the root sends on, and to how many of its users."""
        return self._copies_of_root(tree), self._users_at_root(flight, root)

    def _copies(self, flight: Flight, position: int) -> int:
        """How many copies the broker at a position below the root sends on."""
        return flight.child_bounds[position + 1] - flight.child_bounds[position]

    def _copies_of_root(self, tree: TopicTree) -> int:
        return tree.child_bounds[1] - tree.child_bounds[0]

    def _users(self, flight: Flight, position: int) -> int:
        """How many of its users the broker at a position below the root sends a copy to."""
        return int(flight.due_users[position])

    def _users_at_root(self, flight: Flight, root: int) -> int:
        return self._subscriptions.served_at(flight.topic, np.array([root], np.int32)).item()

    def miss_root(self, flight: Flight, outcome: int) -> None:
        """The flight does not reach its root: its publication becomes due now, with this outcome (a row of the ledger)."""
        self._ledger.count_publication(flight.window, CLIMBING if outcome == IN_FLIGHT else DROPPED)
        self._become_due_short_of_root(flight, outcome)

    @abstractmethod
    def _become_due_short_of_root(self, flight: Flight, outcome: int) -> None:
        """Count the due pairs, all with the same outcome."""

    def overtake(self, flight: Flight, uplinks_sent: int) -> None:
        """The run ends while the flight is on its way to its root, after `hops` hops."""
        self.miss_root(flight, IN_FLIGHT)
        self.over(flight, uplinks_sent)

    def never_set_out(self, number: int, broker: int) -> None:
        """The run ends while its broker holds the publication back."""
        for flight in self.publish(number, broker, self.window(number)):
            self.overtake(flight, 0)

    def leave_root(self, flight: Flight, now: float) -> None:
        """The publication becomes due now, along the present tree."""
        flight.rooted = now
        flight.tree, flight.broker_array, flight.brokers = tree, *_ = self._place(flight, flight.uplink[-1])
        self._ledger.count_publication(flight.window, ROOTED)
        self._become_due(flight)
        if flight.brokers:
            flight.child_bounds, flight.depth = tree.child_bounds, tree.depth
            flight.arrival = [NAN] * len(flight.brokers)
            flight.arrival[0] = now
            flight.served = flight.arrival.copy() if self._fabric.servers else flight.arrival

    def _place(self, flight: Flight, root: int) -> tuple[TopicTree, NDArray[np.int32], list[int]]:
        """The tree that the flight takes from its root, and its brokers."""
        tree = self._overlay.tree(flight.topic, int(self._fabric.node_of[root]))
        placed = self._placed.get((flight.topic, root))
        if placed is None or placed[0] is not tree:
            brokers = self._fabric.broker_of[tree.nodes]
            self._placed[flight.topic, root] = placed = tree, brokers, brokers.tolist()
        return placed

    @abstractmethod
    def _become_due(self, flight: Flight) -> None:
        """Count the due pairs, on the tree and elsewhere."""

    # -- below the root

    def ahead(self, flight: Flight, positions: Sequence[int], sources: Sequence[int] = ()) -> NDArray[np.bool_]:
        """The tree positions (k) that copies on their way to these positions, or held there, may still be delivered at.

        `sources` are the positions from which they were sent; without it, all copies ever sent are meant.
        """
        hops_left = np.full(len(flight.brokers), -1, np.int64)
        hops_left[list(positions)] = len(flight.brokers)
        return self._reach(flight, hops_left)

    def _reach(self, flight: Flight, hops_left: NDArray[np.int64]) -> NDArray[np.bool_]:
        assert flight.tree is not None
        return reach(*flight.tree.next_hops, ~np.isnan(np.array(flight.served)), hops_left)

    @abstractmethod
    def over(self, flight: Flight, uplinks_sent: int, ahead: NDArray[np.bool_] | None = None) -> None:
        """No copy is in transit any more, or the run has ended: then `ahead` are the positions in flight, if it has left its root.

        `uplinks_sent` are the hops that it took towards its root.
        """

    def _lost(self, flight: Flight, missing: Sequence[int], ahead: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """The tree positions (k) that no copy will reach, as the copies to the positions `missing` were lost."""
        lost = self.ahead(flight, missing)
        return lost if ahead is None else lost & ~ahead


class TopicRule(Rule):
    """The rule of topics: each publication is one flight down the topic's tree."""

    def __init__(
        self, fabric: Fabric, recorder: Recorder, subscriptions: Subscriptions, publications: Publications
    ) -> None:
        super().__init__(fabric, recorder, subscriptions, publications)
        self._due = DueByTopic(recorder, subscriptions)
        self._shared, self._ways = subscriptions.shared, SharedWays(fabric, self._due)
        self._dues: dict[tuple[int, int], tuple[NDArray[np.int32], int, Due]] = {}  # by topic and root
        # whether trees may miss due brokers
        overlay = fabric.overlay
        parted = fabric.outages is not None and (overlay.floods or not overlay.single_root)
        self._in_part = not fabric.joins_instantly or overlay.period is not None or parted

    def flights(self, number: int, broker: int, window: int) -> list[Flight]:
        """The one flight of a publication."""
        publications = self._publications
        topic, size = publications.topic.item(number), publications.size.item(number)
        published = publications.time.item(number)
        return [Flight(number, topic, broker, published, size, window, self._uplinks.of(topic, broker))]

    def brokers_moved(self) -> None:
        """Brokers stand on other nodes from now on."""
        super().brokers_moved()
        self._ways.brokers_moved()

    def _work_of_root(self, flight: Flight, root: int, tree: TopicTree) -> tuple[int, int]:
        """As for all trees; for each group that shares the topic one copy, as if its chosen member were here."""
        if self._shared is None or flight.topic not in self._shared:
            return super()._work_of_root(flight, root, tree)
        way = self._ways.of(flight.topic, root, NOBODY_CHOSEN)
        return self._copies_of_root(way.tree), int(way.due.on_tree[0]) + way.due.groups

    def _place(self, flight: Flight, root: int) -> tuple[TopicTree, NDArray[np.int32], list[int]]:
        """As for all trees; of one with shared subscriptions, the part that leads to those who get the publication."""
        topic, shared = flight.topic, self._shared
        if shared is None or topic not in shared:
            return super()._place(flight, root)
        tree, brokers, listed, due = self._ways.of(
            topic, root, shared.choose(topic, flight.number, flight.publisher, flight.rooted)
        )
        self._dues[topic, root] = brokers, self._due.subscriptions.version.item(topic), due
        return tree, brokers, listed

    def _become_due(self, flight: Flight) -> None:
        key, version = (flight.topic, flight.uplink[-1]), self._due.subscriptions.version.item(flight.topic)
        known = self._dues.get(key)
        if known is None or known[0] is not flight.broker_array or known[1] != version:
            due = self._due.leaving_root(flight.topic, flight.broker_array)
            self._dues[key] = known = flight.broker_array, version, due
        due = known[2]
        flight.due_users, flight.audience = due.on_tree, due.audience
        if len(due.offloaded.brokers):
            flight.offloaded = due.offloaded
            self.finished.offload(flight)
        self._ledger.count(flight.window, DUE, due.brokers, due.users)
        if due.absent:
            self._ledger.count(flight.window, LOST["disconnected"], 0, due.absent)
        if self._in_part:
            reached, users = int(np.count_nonzero(due.on_tree)), int(due.on_tree.sum())
            row = self._recorder.statistics.off_tree
            self._ledger.count(flight.window, row, due.brokers - reached, due.users - due.absent - users)

    def _become_due_short_of_root(self, flight: Flight, outcome: int) -> None:
        """The publication becomes due to all who want the topic now."""
        due: Due = self._due.short_of_root(flight.topic)
        flight.audience = due.audience
        for row in (DUE, outcome):
            self._ledger.count(flight.window, row, due.brokers, due.users)

    def over(self, flight: Flight, uplinks_sent: int, ahead: NDArray[np.bool_] | None = None) -> None:
        """Count what is lost or in flight, and record the rest."""
        counted = np.zeros(len(flight.brokers), np.bool_)
        if ahead is not None:
            self._count(flight, IN_FLIGHT, ahead)
            counted |= ahead
        for cause, positions in self._missed(flight, counted):
            self._count(flight, LOST[cause], positions & ~counted)
            counted |= positions
        self.finished.add(flight, uplinks_sent)

    def _missed(self, flight: Flight, counted: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield the causes of losses, each with the tree positions (k) that are missed and not yet `counted`."""
        for cause in LOST_COPIES:
            if cause in flight.lost:
                yield cause, self.ahead(flight, flight.lost[cause])
            if cause in flight.missed:
                yield cause, np.bincount(flight.missed[cause], minlength=len(counted)) > 0

    def _count(self, flight: Flight, outcome: int, positions: NDArray[np.bool_]) -> None:
        due = flight.due_users[positions]
        self._ledger.count(flight.window, outcome, int(np.count_nonzero(due)), int(due.sum()))


class FloodRule(TopicRule):
    """The rule of floods: brokers send the first copy on to all neighbours in the topic but the one that it came from.

    A broker has to serve later copies too before it can discard them. If it refuses a copy, another may still reach it: what is due
    there is lost once none is in transit. What is due beyond it is lost with it, as far as the copy with the fewest hops that was
    sent there could have gone.
    """

    kind = FLOOD

    def leave_root(self, flight: Flight, now: float) -> None:
        """As on a tree; the senders are recorded too, as every link of the topic may carry a copy."""
        super().leave_root(flight, now)
        flight.senders = [-1] * len(flight.brokers)
        flight.depth = np.zeros(len(flight.brokers), np.int32)
        flight.copies = array("i")

    def _copies(self, flight: Flight, position: int) -> int:
        assert flight.tree is not None
        return len(flight.tree.neighbours[position]) - 1 if flight.depth[position] < flight.tree.hop_limit else 0

    def _copies_of_root(self, tree: TopicTree) -> int:
        return len(tree.neighbours[0])

    def send_on(self, flight: Flight, position: int) -> Sequence[int]:
        """All neighbours but the sender; none if the copy has reached the hop limit."""
        assert flight.tree is not None
        if flight.depth[position] >= flight.tree.hop_limit:
            return ()
        sender = flight.senders[position]
        onward = [neighbour for neighbour in flight.tree.neighbours[position] if neighbour != sender]
        for neighbour in onward:
            flight.copies.extend((position, neighbour))
        return onward

    def arrive(self, flight: Flight, position: int, source: int) -> None:
        """The first copy has come to a position from another; if it is refused there, a later one may become the first."""
        flight.senders[position] = source
        flight.depth[position] = flight.depth[source] + 1

    def ahead(self, flight: Flight, positions: Sequence[int], sources: Sequence[int] = ()) -> NDArray[np.bool_]:
        """As on a tree, within the hop limit; a first copy that waits at its position counts with the hops that it has taken."""
        assert flight.tree is not None
        hops_left, there = np.full(len(flight.brokers), -1, np.int64), list(positions)
        if sources:
            waits, hops = ~np.isnan(np.array(flight.arrival)[there]), flight.depth[list(sources)] + 1
            np.maximum.at(hops_left, there, flight.tree.hop_limit - np.where(waits, flight.depth[there], hops))
        else:
            hops_left[there] = self._front(flight)[0][there]
        return self._reach(flight, hops_left)

    def _front(self, flight: Flight) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What `flood_front` finds of a flight."""
        assert flight.tree is not None
        served = ~np.isnan(np.array(flight.served))
        return flood_front(*flight.tree.next_hops, served, flight.depth, flight.tree.hop_limit)

    def _missed(self, flight: Flight, counted: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """As on a tree, then the positions beyond, which copies could not reach within the hop limit."""
        yield from super()._missed(flight, counted)
        if flight.tree is not None and flight.tree.hop_limit < NO_HOP_LIMIT:
            beyond = self._front(flight)[1] | counted
            beyond[[position for positions in flight.lost.values() for position in positions]] = True
            yield "hop_limit", self._reach(flight, np.where(beyond, len(beyond), -1))
