"""The cells of the compiled engine: the state of a publication at each place, for floods and for copies of content."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import integers, small_integers
from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.records import (
    cell_at,
    count_pairs,
    integer_at,
    position_at,
    slot_at,
    small_at,
    version_at,
)
from sim.brokers.data.compiled.state import (
    ACCEPTED,
    ARRIVED,
    CAUSES_THERE,
    DEPTH,
    HOP_LIMIT,
    LOST_THERE,
    NONE,
    TRAVELLING,
)
from sim.brokers.data.rule_kernels import flood_front, reach
from sim.content.matching_kernels import count_holding


@kernel
def _order(size: int) -> int:
    """The exponent of the smallest power of two that is at least the size."""
    order = 0
    while 1 << order < size:
        order += 1
    return order


@kernel
def cell_of(state: Item, flight: Item, place: int) -> Item:
    """The cell of a place."""
    return cell_at(state.cells, flight.hops + place - version_at(state.versions, flight.version).first)


@inlined
def lost_there(cause: int) -> int:
    """The bit in a cell for copies that were lost there with a cause."""
    return LOST_THERE << cause - CAUSES_THERE[0]


@kernel
def _take_cells(state: Item, flight: Item, size: int) -> None:
    """Allocate cells for a flight that has left its root, the first place of its version; there are enough."""
    order = _order(size)
    free = integer_at(state.free_cells, order)
    if free.value == NONE:
        first = state.cells_used
        state.cells_used += 1 << order
    else:
        first = free.value
        free.value = cell_at(state.cells, first).sender
    for number in range(first, first + size):
        cell = cell_at(state.cells, number)
        cell.sender, cell.state, cell.arrived, cell.served = NONE, 0, np.nan, np.nan
    flight.hops = first


@kernel
def give_cells_back(state: Item, first: int, size: int) -> None:
    """Free the cells of a flight."""
    free = integer_at(state.free_cells, _order(size))
    cell_at(state.cells, first).sender = free.value
    free.value = first


# -- of content


@kernel
def _waiting(state: Item, flight: Item) -> NDArray[np.int32]:
    """The subscriptions that wait at the flight's topic."""
    topic = slot_at(state.slots, flight.slot).topic
    first, end = integer_at(state.waiting_from, topic).value, integer_at(state.waiting_from, topic + 1).value
    return small_integers(state.waiting + 4 * first, end - first)


@kernel
def count_concerned(state: Item, flight: Item, broker: int) -> int:
    """The number of a broker's users with a matching subscription that waits at the flight's topic."""
    waiting, count = _waiting(state, flight), 0
    owners = np.empty(waiting.size, np.int32)
    values = state.values + 4 * state.fields * (flight.number // state.fields)
    for subscription in waiting:
        owner = small_at(state.owner, subscription).value
        if small_at(state.host, owner).value != broker:
            continue
        first, end = integer_at(state.asked_from, subscription), integer_at(state.asked_from, subscription + 1)
        holds = True
        for k in range(first.value, end.value):
            field = small_at(state.asked_field, k).value
            holds = holds and small_at(values, field).value == small_at(state.asked_value, k).value
        if holds:
            owners[count] = owner
            count += 1
    return np.unique(owners[:count]).size


@kernel
def count_increments(state: Item, flight: Item) -> NDArray[np.int64]:
    """The counter increments of each broker to match the flight, as `ContentSubscriptions.increments` has them."""
    waiting = _waiting(state, flight)
    where, counts = np.empty(waiting.size, np.int32), np.zeros(state.brokers, np.int64)
    for i in range(waiting.size):
        where[i] = small_at(state.host, small_at(state.owner, waiting[i]).value).value
    values = small_integers(state.values + 4 * state.fields * (flight.number // state.fields), state.fields)
    asked_from = integers(state.asked_from, state.conjunctions + 1)
    field, value = (
        small_integers(state.asked_field, state.predicates),
        small_integers(state.asked_value, state.predicates),
    )
    count_holding(values, waiting, asked_from, field, value, where, counts)
    return counts


@kernel
def begin_copy(state: Item, flight: Item) -> None:
    """Allocate cells for a copy of content that has left its root, if any broker is on its tree."""
    version = version_at(state.versions, flight.version)
    if version.size == 0:
        return
    _take_cells(state, flight, version.size)
    if state.matches:
        counts = count_increments(state, flight)
        for place in range(version.size):
            broker = position_at(state.positions, version.first + place).broker
            cell_at(state.cells, flight.hops + place).sender = counts[broker]


# -- flooded


class Flooded(NamedTuple):
    """A flood: the links of each place lead to `onward[first[place]:first[place + 1]]`.

    For each place: its state, whether it has been served, and the hops of the first copy to it.
    """

    first: NDArray[np.int32]
    onward: NDArray[np.int32]
    states: NDArray[np.int32]
    served: NDArray[np.bool_]
    depth: NDArray[np.int32]


@kernel
def begin_flood(state: Item, flight: Item) -> None:
    """Allocate cells for a flight that is flooded from its root."""
    _take_cells(state, flight, version_at(state.versions, flight.version).size)
    cell_at(state.cells, flight.hops).state = ARRIVED | ACCEPTED


@kernel
def _flooded_by(state: Item, flight: Item) -> Flooded:
    """The links over which a flight is flooded, and its state at all places."""
    version = version_at(state.versions, flight.version)
    size, links = version.size, position_at(state.positions, version.first).first
    first, states = np.zeros(size + 1, np.int32), np.empty(size, np.int32)
    for place in range(size):
        first[place + 1] = first[place] + position_at(state.positions, version.first + place).children
        states[place] = cell_at(state.cells, flight.hops + place).state
    onward = np.empty(first[size], np.int32)
    for link in range(onward.size):
        onward[link] = position_at(state.positions, links + link).first - version.first
    return Flooded(first, onward, states, states & ACCEPTED > 0, states // DEPTH)


@kernel
def _reach_from(flooded: Flooded, there: NDArray[np.bool_], hops_left: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The unserved places that copies may still reach from places, given their hops left."""
    return reach(flooded.first, flooded.onward, flooded.served, np.where(there, hops_left, -1))


@kernel
def _users(state: Item, flight: Item, places: NDArray[np.bool_]) -> tuple[int, int]:
    """The number of brokers and users due at these places."""
    first, brokers, users = version_at(state.versions, flight.version).first, 0, 0
    for place in np.flatnonzero(places):
        due = position_at(state.positions, first + place).users
        brokers += int(due > 0)
        users += due
    return brokers, users


@kernel
def _count_lost(state: Item, flight: Item, cause: int, places: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Count what is due at these places as lost with a cause; returns them."""
    brokers, users = _users(state, flight, places)
    count_pairs(state, flight.window, cause, brokers, users)
    return places


@kernel
def _count_missed(state: Item, flight: Item, flooded: Flooded, ahead: NDArray[np.bool_]) -> None:
    """Count what no copy reaches, except the places `ahead` of some, by the first cause that is true."""
    limit = version_at(state.versions, flight.version).hop_limit
    left, withheld = flood_front(flooded.first, flooded.onward, flooded.served, flooded.depth, limit)
    counted, beyond = ahead.copy(), withheld | ahead
    for cause in CAUSES_THERE:
        there = flooded.states & lost_there(cause) > 0
        if there.any():
            counted |= _count_lost(state, flight, cause, _reach_from(flooded, there, left) & ~counted)
            beyond |= there
    beyond |= counted
    limited = reach(flooded.first, flooded.onward, flooded.served, np.where(beyond, beyond.size, -1)) & ~counted
    _count_lost(state, flight, HOP_LIMIT, limited)


@kernel
def end_flood(state: Item, flight: Item) -> None:
    """End a flood without copies in transit: count what none reached because some were dropped or lost, and free the cells."""
    version = version_at(state.versions, flight.version)
    if version.size == 0:
        return
    if flight.missed:
        _count_missed(state, flight, _flooded_by(state, flight), np.zeros(version.size, np.bool_))
    give_cells_back(state, flight.hops, version.size)


@kernel
def overtake_flood(state: Item, flight: Item) -> tuple[int, int]:
    """End a flood with copies in transit at the end of the run: count what is lost; returns the brokers and users in flight."""
    flooded, limit = _flooded_by(state, flight), version_at(state.versions, flight.version).hop_limit
    ahead = _reach_from(flooded, flooded.states & TRAVELLING > 0, limit - flooded.depth.astype(np.int64))
    _count_missed(state, flight, flooded, ahead)
    return _users(state, flight, ahead)
