"""Guarantees on an overlay that heals: what is sent again takes the present routes around a broker that is routed around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.detours import MOST_ROUNDS, Detours, Diversion
from sim.brokers.data.flights import Flight
from sim.brokers.data.guaranteed import GuaranteedCarrier
from sim.brokers.data.kept import CLIENT, KeptCopy
from sim.brokers.data.rules import Rule
from sim.brokers.fabric.fabric import Fabric
from sim.brokers.fabric.service import NO_EFFORT, Effort
from sim.brokers.statistics.recorder import Recorder


class ReroutingCarrier(GuaranteedCarrier):
    """Carries flights on trees, with a guarantee for every hop and detours around brokers that are routed around.

    When a sender would send a copy to such a broker again, it hands over what is due at it and below to the next brokers on the
    present routes. For those that no route leads to, it keeps it, and looks again whenever it would send it.
    """

    def __init__(self, fabric: Fabric, recorder: Recorder, rule: Rule) -> None:
        super().__init__(fabric, recorder, rule)
        self._detours, self._weighs = Detours(fabric), fabric.service.setting.weighs

    def _send_again(self, kept: KeptCopy) -> None:
        around = kept.sender != CLIENT and (kept.waits or self._detours.needed(kept.sender, kept.broker))
        if not around or kept.handled or self._gives_up(kept):
            super()._send_again(kept)
        elif kept.below:
            self._go_round(kept)
        else:
            self._climb_round(kept)

    # -- to the root

    def _climb_round(self, kept: KeptCopy) -> None:
        """The sender sends the flight towards the present root, or is that itself."""
        flight, sender = kept.flight, kept.sender
        onward = self.rule.uplink(flight.topic, sender)[1:]
        if onward and onward[0] == kept.broker:
            self._send_as_before(kept)
            return
        self._turned.setdefault(flight, kept.position)
        flight.uplink = [*flight.uplink[: kept.position], *onward]
        if not onward:
            self._leave(flight)
            self._give_up(kept)
            return
        new = self._keep(flight, kept.position, sender, onward[0], below=False)
        new.rounds = _next(kept)
        self._give_up(kept)
        self._send_copy(new)

    def _ascend(self, kept: KeptCopy) -> None:
        if kept.final or not kept.rounds:
            super()._ascend(kept)
            return
        flight, onward = kept.flight, kept.position + 1
        new = self._keep(flight, onward, kept.broker, flight.uplink[onward], below=False)
        new.rounds = kept.rounds
        self._send_copy(new)

    # -- below it

    def _go_round(self, kept: KeptCopy) -> None:
        """The sender sends what is due at the broker and below along the present routes."""
        flight, places = kept.flight, self._places_below(kept)
        if not places:  # nobody wants it there any more
            self._send_as_before(kept)
            return
        brokers = [flight.brokers[place] for place in places]
        branch = self._detours.branch(flight.topic, kept.sender, brokers)
        if branch is None or (kept.waits and branch.waits_still):
            kept.attempts += 1
            self._set_timer(kept)
            return
        if kept.branch is None:
            self._cut_off(flight, kept.position)
        above = int(flight.depth[kept.position] if kept.branch is None else kept.branch.depth[kept.position]) - 1
        diversion = Diversion(branch, dict(zip(brokers, places, strict=True)), flight.due_users, above)
        new = [self._divert(flight, diversion, child, kept.sender, _next(kept)) for child in diversion.children(0)]
        self._give_up(kept)
        for each in new:
            if each.waits:
                each.attempts += 1
                self._set_timer(each)
            else:
                self._send_copy(each)

    def _places_below(self, kept: KeptCopy) -> list[int]:
        """The tree positions where the flight is due at the broker or below."""
        if kept.branch is not None:
            return kept.branch.places_below(kept.position)
        flight, found, todo = kept.flight, [], [kept.position]
        for place in todo:
            todo.extend(range(flight.child_bounds[place], flight.child_bounds[place + 1]))
            found.extend([place] if flight.due_users[place] else [])
        return found

    def _cut_off(self, flight: Flight, position: int) -> None:
        """No copy is sent over the edges of the flight's tree below a position."""
        assert flight.tree is not None
        parents, todo = flight.tree.parents.copy(), [position]
        for place in todo:
            children = range(flight.child_bounds[place], flight.child_bounds[place + 1])
            parents[children] = -1
            todo.extend(children)
        flight.tree, flight.depth = replace(flight.tree, parents=parents), flight.depth.copy()

    def _divert(self, flight: Flight, branch: Diversion, position: int, sender: int, rounds: int) -> KeptCopy:
        new = self._keep(flight, position, sender, branch.brokers[position], below=True)
        new.branch, new.rounds, new.waits = branch, rounds, branch.waits[position]
        return new

    def _give_up(self, kept: KeptCopy) -> None:
        """The sender keeps it no longer, as it has taken another way: what still comes to the broker is a duplicate."""
        kept.handled = True
        self._end(kept, "rerouted")

    def _serve(self, kept: KeptCopy, arrived: float) -> None:
        branch, flight = kept.branch, kept.flight
        if branch is None:
            super()._serve(kept, arrived)
            return
        place = branch.places[kept.position]
        if place >= 0:
            flight.arrival[place], flight.served[place] = arrived, self._clock.now
            flight.depth[place] = branch.depth[kept.position]
            if self._deliveries is not None:
                self._hand_over(self._deliveries, flight, place, self._clock.now)
        for child in branch.children(kept.position):
            self._send_copy(self._divert(flight, branch, child, kept.broker, kept.rounds))

    def _first_effort(self, kept: KeptCopy, stage: int) -> Effort:
        branch = kept.branch
        if branch is None:
            return super()._first_effort(kept, stage)
        copies = len(branch.children(kept.position))
        return Effort(0, copies, branch.users[kept.position], kept.flight.size) if self._weighs else NO_EFFORT

    def _relays(self, kept: KeptCopy) -> bool:
        return super()._relays(kept) if kept.branch is None else not kept.branch.users[kept.position]

    def _users(self, kept: KeptCopy) -> int:
        if kept.done == "rerouted":
            return 0
        return super()._users(kept) if kept.branch is None else kept.branch.users[kept.position]

    # -- what becomes of it

    def _miss(self, kept: KeptCopy, cause: str) -> None:
        if kept.branch is None:
            super()._miss(kept, cause)
        else:
            kept.flight.miss(cause, kept.branch.places_below(kept.position))

    def _ahead(self, flight: Flight, ahead: Sequence[KeptCopy]) -> NDArray[np.bool_]:
        found = super()._ahead(flight, [kept for kept in ahead if kept.branch is None])
        for kept in ahead:
            if kept.branch is not None:
                found[kept.branch.places_below(kept.position)] = True
        return found


def _next(kept: KeptCopy) -> int:
    """The number of the detour that follows."""
    return min(kept.rounds + 1, MOST_ROUNDS)
