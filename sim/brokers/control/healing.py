"""Healing: brokers check each other periodically, and the overlay routes around those that are down, and planned absences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.brokers.control.trees import TreeControl
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.overlay.healing import Healing, Repair


@dataclass(frozen=True)
class HealingSetting:
    """How often brokers check each other (s), and how long (s) it takes from noticing a crash until routes avoid the broker."""

    period: float
    convergence: float = 0.0


class HealingControl:
    """Routes around brokers that are down, from the first round of checks after a crash on, plus the time of convergence.

    Rounds are at multiples of the period. Only those after a crash are events; their messages are counted afterwards, each round's
    with the brokers and links as they were before its instant. A broker that restarts rejoins at once. Repairs take no time. With an
    infinite period there are no rounds, but brokers leave and join as planned.
    """

    def __init__(
        self, fabric: Fabric, recorder: Recorder, trees: TreeControl, engine: Engine, setting: HealingSetting
    ) -> None:
        assert isinstance(fabric.overlay, Healing)
        self._fabric, self._overlay, self._recorder = fabric, fabric.overlay, recorder
        self._trees, self._engine, self._setting = trees, engine, setting
        brokers, outages = len(fabric.node_of), fabric.outages
        self._down = np.zeros(brokers, np.bool_) if outages is None else outages.down
        self._bypassed = np.zeros(brokers, np.bool_) if outages is None else outages.bypassed
        self._absent = np.zeros(brokers, np.bool_) if outages is None else outages.absent
        self._unhealed = np.zeros(
            brokers, np.bool_
        )  # those that, since their last crash, could not be routed around once
        self._round_at = math.inf  # the round that is an event
        self._rounds = 0  # that have been counted
        self._messages = 0  # of a round, as things are
        trees.links_changed = self.look
        self.busy: Callable[[], bool] = lambda: False  # whether brokers are moving to other nodes
        self._late = np.zeros(brokers, np.bool_)  # noticed meanwhile

    def look(self) -> None:
        """Brokers, links or routes have changed: from the next round on, messages are counted by them."""
        if not self._trees.bootstrapping:
            self._count_rounds(self._fabric.clock.now)
            self.start()

    def start(self) -> None:
        """The run begins, with brokers, links or routes as they are now."""
        self._messages = self._overlay.maintenance(self._at_nodes(self._down | self._absent))

    def close(self) -> None:
        """Count the remaining rounds."""
        self._count_rounds(math.nextafter(self._recorder.horizon, 0.0))

    def _count_rounds(self, until: float) -> None:
        """Count the messages of rounds up to a time (s)."""
        period, first = self._setting.period, self._rounds + 1
        last = int(until // period) + 1
        while last * period > until:
            last -= 1
        if last < first:
            return
        self._rounds = last
        windows = self._recorder.windows(np.arange(first, last + 1, dtype=np.float64) * period)
        for window, rounds in zip(*(found.tolist() for found in np.unique(windows, return_counts=True)), strict=True):
            self._recorder.count("stabilisation_messages", self._recorder.edges[window], rounds * self._messages)

    def _at_nodes(self, brokers: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return brokers[self._fabric.broker_of]

    # -- crashes and restarts

    def crash(self, broker: int) -> None:
        """The broker crashes."""
        self._unhealed[broker] = False

    def faults(self, at_once: bool = False) -> None:
        """Brokers have gone down or come up: these rejoin, and the next round notices those; `at_once`: a round of this instant."""
        self.look()
        self._route_around(self._bypassed)
        now, period = self._fabric.clock.now, self._setting.period
        if period == math.inf or self._round_at < math.inf or not (self._down & ~self._bypassed).any():
            return
        number = max(math.floor(now / period) - 1, 1)
        while number * period < now or (number * period == now and not at_once):
            number += 1
        self._round_at = number * period
        self._fabric.clock.call(self._round_at, CONTROL, self._round)

    def _round(self) -> None:
        self._round_at = math.inf
        noticed = self._down & ~self._bypassed
        if self._setting.convergence:
            time = self._fabric.clock.now + self._setting.convergence
            self._fabric.clock.call(time, CONTROL, partial(self._heal, noticed))
        else:
            self._heal(noticed)

    def _heal(self, noticed: NDArray[np.bool_]) -> None:
        """Route around the brokers that were noticed, and are down still or again."""
        self._route_around(self._bypassed | noticed)

    def go_on(self) -> None:
        """Brokers are no longer moving to other nodes: catch up."""
        late, self._late = self._late, np.zeros_like(self._late)
        self._route_around(self._bypassed | late)

    def members_changed(self) -> int:
        """Brokers have joined or are about to leave, as planned; returns how many topics have another root.

        Each takes a message with what the former root knows, and its answer, beside the messages of the overlay.
        """
        repair = self._route_around(self._bypassed, "membership_messages")
        if repair is None or self._trees.bootstrapping:
            return 0
        now, count = self._fabric.clock.now, self._recorder.count
        count("moved_topics", now, repair.topics)
        count("moved_trees", now, repair.trees)
        count("membership_messages", now, 2 * repair.topics)
        return repair.topics

    def _route_around(self, noticed: NDArray[np.bool_], counter: str = "healing_messages") -> Repair | None:
        """Let the overlay route around absent brokers and those of the `noticed` that are down, and through all others.

        Brokers that are routed around leave all trees. Returns None where nothing changes.
        """
        brokers = self._absent | (noticed & self._down)
        if not np.array_equal(brokers, self._bypassed) and self.busy():
            self._late |= noticed
            return None
        if np.array_equal(brokers, self._bypassed):
            return None
        now, trees = self._fabric.clock.now, self._trees
        trees.before_change()
        repair = self._overlay.heal(self._at_nodes(brokers), self._at_nodes(self._absent))
        around = repair.around[self._fabric.node_of]
        if not trees.bootstrapping:
            self._recorder.count(counter, now, repair.messages)
        unhealed = brokers & ~around & ~self._absent
        self._recorder.count("unhealed_crashes", now, int(np.count_nonzero(unhealed & ~self._unhealed)))
        self._unhealed |= unhealed
        fallen = np.flatnonzero(around & ~self._bypassed).tolist()
        self._bypassed[:] = around
        for broker in fallen:
            trees.forget(broker)
        self._engine.brokers_moved()
        self.look()
        for broker in fallen:
            trees.courier.send_again(broker)
        return repair
