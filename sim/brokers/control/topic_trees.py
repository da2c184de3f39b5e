"""The tree of the busiest topic: at the end of a run, and around faults, for pictures of it."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Columns
from sim.brokers.fabric.clock import FAILURES
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.users.subscriptions import Subscriptions
from sim.brokers.users.users import HostedUsers
from sim.workloads.format.workload import Workload

MOST_STATES = 24
"""The most states of a tree that a run keeps."""
NODES = 1000
"""The most nodes of each, those nearest to its root."""


class BusiestTree:
    """The tree of the topic with the most publications (lowest id on ties) among those that have a tree.

    Where trees are rooted at the publisher's broker: the tree of the broker whose users published most on the topic. Users without a
    broker count at the one that crashed. Looking at it changes nothing.
    """

    def __init__(self, fabric: Fabric, workload: Workload, users: HostedUsers, subscriptions: Subscriptions) -> None:
        self._fabric, self._workload, self._users, self._subscriptions = fabric, workload, users, subscriptions

    def topic(self) -> int:
        """The busiest topic among those that have a tree now."""
        served = self._subscriptions.brokers_served > 0
        return int(np.argmax(np.where(served, self._workload.published() + 1, 0)))

    def columns(self, topic: int) -> Columns:
        """The present tree of a topic, from the root down, as columns of a table."""
        workload, fabric = self._workload, self._fabric
        publishers = workload.publications.publisher[workload.on_topic(topic)]
        host = self._users.host[publishers[publishers >= 0]]
        source = int(np.bincount(np.maximum(host, ~host), minlength=1).argmax())
        root = int(fabric.overlay.uplink(topic, int(fabric.node_of[source]))[-1])
        tree = fabric.overlay.tree(topic, root)
        brokers, positions = fabric.broker_of[tree.nodes], fabric.overlay.positions
        return {
            "topic": np.full(len(tree), topic),
            "topic_name": [workload.topics.names[topic].as_py()] * len(tree),
            "node": tree.nodes,
            "position": [None] * len(tree) if positions is None else positions[tree.nodes],
            "broker": brokers,
            "parent": np.where(tree.parents < 0, -1, tree.nodes[tree.parents]),
            "subscribes": self._subscriptions.served_at(topic, brokers) > 0,
        }


class TreeSteps:
    """The tree of one topic, the busiest at the first look, before each change by a fault, one window later, and at the end.

    The last look is the end; of more than there is room for, the first are kept.
    """

    def __init__(self, fabric: Fabric, tree: BusiestTree, window: float) -> None:
        self._clock, self._tree, self._window = fabric.clock, tree, window
        self._topic: int | None = None
        self._seen: dict[float, Columns] = {}
        self._due: set[float] = set()

    def changing(self) -> None:
        """Something is about to fail, or to work again."""
        self._look()
        later = self._clock.now + self._window
        if later not in self._due and len(self._seen) < MOST_STATES - 1:
            self._due.add(later)
            self._clock.call(later, FAILURES, self._look)

    def _look(self) -> None:
        if self._clock.now not in self._seen and len(self._seen) < MOST_STATES - 1:
            self._seen[self._clock.now] = self._now()

    def _now(self) -> Columns:
        if self._topic is None:
            self._topic = self._tree.topic()
        return {name: column[:NODES] for name, column in self._tree.columns(self._topic).items()}

    def table(self) -> Columns:
        """All states, with the `time` of each, as columns of a table."""
        seen = {**self._seen, self._clock.now: self._now()}
        times = np.repeat(list(seen), [len(one["node"]) for one in seen.values()])
        names = ("topic", "topic_name", "node", "broker", "parent", "subscribes")
        columns = {name: np.concatenate([np.asarray(one[name]) for one in seen.values()]) for name in names}
        return {"time": times, **columns}
