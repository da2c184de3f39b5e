"""Guarantees for floods and for content, in the event engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.content import Copy
from sim.brokers.data.flights import Flight
from sim.brokers.data.guaranteed import GuaranteedCarrier
from sim.brokers.data.kept import KeptCopy
from sim.brokers.data.rerouted import ReroutingCarrier
from sim.brokers.data.rules import FloodRule, Rule
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.service import NO_EFFORT, Effort
from sim.brokers.statistics.recorder import Recorder


class FloodingCarrier(ReroutingCarrier):
    """Floods, with a guarantee for every hop: a broker keeps a copy for each neighbour until that has acknowledged it.

    The first copy that a broker serves, from whichever neighbour, is sent on; all others are duplicates, of which users get none.
    On an overlay that heals, only the way to the root has detours: a flood itself goes over the links as of when it left the root.
    """

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: Rule) -> None:
        super().__init__(fabric, recorder, rule)
        assert isinstance(rule, FloodRule)
        self._floods = rule

    def _go_round(self, kept: KeptCopy) -> None:
        self._send_as_before(kept)

    def _hand_on(self, flight: Flight, position: int) -> None:
        if self._deliveries is not None:
            self._hand_over(self._deliveries, flight, position, self._clock.now)
        here = flight.brokers[position]
        for neighbour in self._floods.send_on(flight, position):
            kept = self._keep(flight, neighbour, here, flight.brokers[neighbour], below=True)
            kept.source = position
            self._send_copy(kept)

    def _serve(self, kept: KeptCopy, arrived: float) -> None:
        self._floods.arrive(kept.flight, kept.position, kept.source)
        kept.first = True
        super()._serve(kept, arrived)

    def _knows(self, kept: KeptCopy) -> bool:
        if not kept.below:
            return super()._knows(kept)
        served = kept.flight.served[kept.position]
        return served == served  # not NaN

    def _first_effort(self, kept: KeptCopy, stage: int) -> Effort:
        if not kept.below:
            return super()._first_effort(kept, stage)
        flight, place = kept.flight, kept.position
        assert flight.tree is not None
        goes_on = flight.depth[kept.source] + 1 < flight.tree.hop_limit
        copies = len(flight.tree.neighbours[place]) - 1 if goes_on else 0
        return Effort(0, copies, int(flight.due_users[place]), flight.size) if self._weighs else NO_EFFORT

    def _users(self, kept: KeptCopy) -> int:
        return super()._users(kept) if kept.first or not kept.below else 0

    def _users_again(self, kept: KeptCopy) -> int:
        return 0

    def _ahead(self, flight: Flight, ahead: Sequence[KeptCopy]) -> NDArray[np.bool_]:
        coming = [kept for kept in ahead if not self._knows(kept)]
        if not coming:
            return np.zeros(len(flight.brokers), np.bool_)
        return self.rule.ahead(flight, [kept.position for kept in coming], [kept.source for kept in coming])


class ContentCarrier(GuaranteedCarrier):
    """Copies of content, each with a guarantee for every hop."""

    def _users(self, kept: KeptCopy) -> int:
        copy = kept.flight
        assert isinstance(copy, Copy)
        here = kept.below or (kept.final and bool(copy.brokers))
        return len(copy.concerned.get(kept.broker, ())) if here else 0
