"""Detours of the compiled engine around brokers that are routed around, as in `sim.brokers.data.rerouted`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.arena import Arena
from sim.brokers.data.compiled.calendar import pop
from sim.brokers.data.compiled.guaranteed import lacks_room_for, send_again
from sim.brokers.data.compiled.hops import free_message
from sim.brokers.data.compiled.kept import REROUTED, keep, leave, look, send_copy, set_timer
from sim.brokers.data.compiled.memory import Memory
from sim.brokers.data.compiled.records import entry_at, flight_at, kept_at, position_at
from sim.brokers.data.compiled.state import DONE, DOWN, NONE, UP
from sim.brokers.data.detours import MOST_ROUNDS, Detours
from sim.brokers.fabric.fabric import Fabric

AS_BEFORE, LOOK_AGAIN = -1, -2
"""Values instead of the position at which another route starts: there is no other route, or no route at all."""


@kernel
def take_route(states: Items, number: int, position: int, waits: NDArray[np.bool_], by_timer: bool, now: float) -> int:
    """Send what is kept along the route that starts at a position, of a tree or an uplink; returns why it cannot yet.

    `waits` has for each child of a position of a tree whether there is no route to it. `by_timer`: it is that timer's turn, in the
    calendar; otherwise it is `now` (s).
    """
    state, kept = states[0], kept_at(states[0].kept, number)
    code = lacks_room_for(state)
    if code != DONE:
        return int(code)
    state.now = now
    if by_timer:
        state.now = entry_at(state.heap, 0).time
        free_message(state, pop(state))
        kept.timer = 0
    if position == AS_BEFORE:
        send_again(state, number)
        return DONE
    if position == LOOK_AGAIN:
        kept.attempts += 1
        set_timer(state, number)
        return DONE
    place, flight, rounds = position_at(state.positions, position), flight_at(state.flights, kept.flight), 0
    rounds = min(int(kept.rounds) + 1, MOST_ROUNDS)
    new = np.empty(place.children if kept.kind == DOWN else 1, np.int64)
    if kept.kind == DOWN:
        for child in range(new.size):
            there = place.first + child
            new[child] = keep(state, kept.flight, DOWN, there, there, kept.sender, rounds)
            kept_at(state.kept, new[child]).waits = waits[child]
    else:
        flight.slot = place.children
        if place.first == NONE:
            leave(state, kept.flight)
            new = new[:0]
        else:
            new[0] = keep(state, kept.flight, UP, place.first, position, kept.sender, rounds)
    kept.done, kept.handled = REROUTED, 1
    look(state, number)
    for each in new:
        if kept_at(state.kept, each).waits:
            kept_at(state.kept, each).attempts += 1
            set_timer(state, each)
        else:
            send_copy(state, each)
    return DONE


class Rerouting:
    """Finds the routes of what is kept for brokers that the overlay routes around."""

    def __init__(self, fabric: Fabric, arena: Arena, memory: Memory) -> None:
        self._detours, self._arena, self._memory = Detours(fabric), arena, memory

    def route(self, number: int) -> tuple[int, NDArray[np.bool_]]:
        """Where the route starts that something kept takes, and which of its next brokers wait: see `take_route`."""
        kept, positions = self._memory.arrays["kept"][number], self._arena.positions
        flight = self._memory.arrays["flights"][kept["flight"]]
        topic, sender = int(self._arena.slots["topic"][flight["slot"]]), int(kept["sender"])
        nowhere = np.empty(0, np.bool_)
        if kept["kind"] == UP:
            start = int(self._arena.uplinks(np.array([topic], np.int64), np.array([sender], np.int32))[0])
            onward = int(self._arena.positions["first"][start])
            same = onward != NONE and self._arena.positions["broker"][onward] == kept["broker"]
            return (AS_BEFORE if same else start), nowhere
        users, todo = dict[int, int](), [int(kept["position"])]
        for place in todo:
            broker, first, children, due = positions[place][["broker", "first", "children", "users"]].item()
            todo.extend(range(first, first + children))
            if due:
                users[broker] = due
        if not users:
            return AS_BEFORE, nowhere
        branch = self._detours.branch(topic, sender, list(users))
        if branch is None or (kept["waits"] and branch.waits_still):
            return LOOK_AGAIN, nowhere
        above = int(positions["depth"][kept["position"]]) - 1
        start = self._arena.divert(branch, users, above, int(kept["flight"]), flight)
        return start, branch.waits[branch.first_child[0] : branch.first_child[1]]
