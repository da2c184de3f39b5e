"""Healing: brokers check each other periodically, and the overlay routes around crashes, cut links and planned absences."""

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
from sim.overlay.cuts import no_cuts
from sim.overlay.healing import Healing, Repair


@dataclass(frozen=True)
class HealingSetting:
    """How often brokers check each other (s), and how long (s) it takes from noticing a crash or a cut until routes avoid it."""

    period: float
    convergence: float = 0.0


class HealingControl:
    """Routes around brokers that are down and links that are cut, from the first round of checks after that on, plus convergence.

    Rounds are at multiples of the period. Only those after a crash or a cut are events; their messages are counted afterwards, each
    round's with the brokers and links as they were before its instant. A broker that restarts rejoins at once, and a link that is
    mended is used at once. Repairs take no time. With an infinite period there are no rounds, but brokers leave and join as planned.
    """

    def __init__(
        self, fabric: Fabric, recorder: Recorder, trees: TreeControl, engine: Engine, setting: HealingSetting
    ) -> None:
        assert isinstance(fabric.overlay, Healing)
        self._fabric, self._overlay, self._recorder = fabric, fabric.overlay, recorder
        self._trees, self._engine, self._setting = trees, engine, setting
        brokers, outages = len(fabric.node_of), fabric.outages
        self._outages = outages
        self._down = np.zeros(brokers, np.bool_) if outages is None else outages.down
        self._bypassed = np.zeros(brokers, np.bool_) if outages is None else outages.bypassed
        self._absent = np.zeros(brokers, np.bool_) if outages is None else outages.absent
        self._unhealed = np.zeros(
            brokers, np.bool_
        )  # those that, since their last crash, could not be routed around once
        self._noticed: frozenset[int] = frozenset()  # cuts that last
        # the links that the overlay routes around, between brokers and between nodes
        self._avoided = self._cuts = no_cuts(brokers)
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

    # -- crashes and restarts, cuts and mends

    def crash(self, broker: int) -> None:
        """The broker crashes."""
        self._unhealed[broker] = False

    def faults(self, at_once: bool = False) -> None:
        """Something fails or works again, which is used at once; the next round notices the rest; `at_once`: one of this instant."""
        self.look()
        self._route_around(self._bypassed)
        now, period = self._fabric.clock.now, self._setting.period
        if period == math.inf or self._round_at < math.inf:
            return
        if not ((self._down & ~self._bypassed).any() or self._lasting() - self._noticed):
            return
        number = max(math.floor(now / period) - 1, 1)
        while number * period < now or (number * period == now and not at_once):
            number += 1
        self._round_at = number * period
        self._fabric.clock.call(self._round_at, CONTROL, self._round)

    def _round(self) -> None:
        self._round_at = math.inf
        noticed = self._down & ~self._bypassed, self._lasting()
        if self._setting.convergence:
            time = self._fabric.clock.now + self._setting.convergence
            self._fabric.clock.call(time, CONTROL, partial(self._heal, *noticed))
        else:
            self._heal(*noticed)

    def _lasting(self) -> frozenset[int]:
        return frozenset() if self._outages is None else self._outages.lasting()

    def _heal(self, brokers: NDArray[np.bool_], cuts: frozenset[int]) -> None:
        """Route around the brokers and cuts that were noticed, and last still or again."""
        self._noticed |= cuts
        self._route_around(self._bypassed | brokers)

    def brokers_moved(self) -> None:
        """Brokers may stand on other nodes: links that are avoided are between these now."""
        if self._noticed:
            self._route_around(self._bypassed)

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
        """Let the overlay route around absent brokers, those of the `noticed` that are down, and noticed cuts, and through all others.

        Brokers that are routed around leave all trees. Returns None where nothing changes.
        """
        brokers, outages = self._absent | (noticed & self._down), self._outages
        if self._noticed:
            self._noticed &= self._lasting()
        same = np.array_equal(brokers, self._bypassed)
        if same and not self._noticed and not self._cuts.any():
            return None
        if self.busy():  # a node may have two brokers now
            self._late |= noticed
            return None
        avoided = self._avoided if outages is None else outages.of(self._noticed)
        cuts = avoided.moved(self._fabric.node_of)
        if same and cuts.same(self._cuts):
            return None
        now, trees = self._fabric.clock.now, self._trees
        if brokers.all():  # nobody is there to do anything
            avoided, cuts = self._avoided, self._cuts
        trees.before_change()
        repair = self._overlay.heal(self._at_nodes(brokers), self._at_nodes(self._absent), cuts)
        self._avoided = avoided
        if outages is not None:
            outages.avoid(avoided, cuts)
        around = repair.around[self._fabric.node_of]
        if not trees.bootstrapping:
            self._recorder.count(counter, now, repair.messages)
        unhealed = brokers & ~around & ~self._absent
        self._recorder.count("unhealed_crashes", now, int(np.count_nonzero(unhealed & ~self._unhealed)))
        self._unhealed |= unhealed
        changed = not (np.array_equal(around, self._bypassed) and cuts.same(self._cuts))
        fallen = np.flatnonzero(around & ~self._bypassed).tolist()
        self._bypassed[:], self._cuts = around, cuts
        for broker in fallen:
            trees.forget(broker)
        self._engine.brokers_moved()
        self.look()
        if changed:
            trees.courier.routes_changed(fallen)
        return repair
