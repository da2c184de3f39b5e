"""Healing: brokers check each other periodically, and the overlay routes around those that are found to be down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sim.brokers.control.trees import TreeControl
from sim.brokers.data.engine import Engine
from sim.brokers.fabric.clock import CONTROL
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.statistics.recorder import Recorder
from sim.overlay.healing import Healing


@dataclass(frozen=True)
class HealingSetting:
    """How often brokers check each other (s), and how long (s) it takes from noticing a crash until routes avoid the broker."""

    period: float
    convergence: float = 0.0


class HealingControl:
    """Routes around brokers that are down, from the first round of checks after a crash on, plus the time of convergence.

    Rounds are at multiples of the period. Only those after a crash are events; their messages are counted afterwards, each round's
    with the brokers and links as they were before its instant. A broker that restarts rejoins at once. Repairs take no time.
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
        self._unhealed = np.zeros(
            brokers, np.bool_
        )  # those that, since their last crash, could not be routed around once
        self._round_at = math.inf  # the round that is an event
        self._rounds = 0  # that have been counted
        self._messages = 0  # of a round, as things are
        trees.links_changed = self.look

    def look(self) -> None:
        """Brokers, links or routes have changed: from the next round on, messages are counted by them."""
        if not self._trees.bootstrapping:
            self._count_rounds(self._fabric.clock.now)
            self._messages = self._overlay.maintenance(self._at_nodes(self._down))

    def start(self) -> None:
        """The run begins."""
        self._messages = self._overlay.maintenance(self._at_nodes(self._down))

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
        if (self._bypassed & ~self._down).any():
            self.route_around(self._bypassed & self._down)
        now, period = self._fabric.clock.now, self._setting.period
        if self._round_at < math.inf or not (self._down & ~self._bypassed).any():
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
        self.route_around(self._bypassed | (noticed & self._down))

    def route_around(self, brokers: NDArray[np.bool_]) -> None:
        """Let the overlay route around these brokers (brokers), which leave all trees, and through all others."""
        if np.array_equal(brokers, self._bypassed):
            return
        now, trees = self._fabric.clock.now, self._trees
        trees.before_change()
        repair = self._overlay.heal(self._at_nodes(brokers))
        around = repair.around[self._fabric.node_of]
        self._recorder.count("healing_messages", now, repair.messages)
        unhealed = brokers & ~around
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
