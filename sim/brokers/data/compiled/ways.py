"""The way of a publication in the compiled engine: up to its root, and from there down the tree."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.data.compiled.calendar import nothing_else_now
from sim.brokers.data.compiled.cells import (
    begin_copy,
    begin_flood,
    cell_of,
    count_concerned,
    count_increments,
    lost_there,
)
from sim.brokers.data.compiled.floods import flood_on, refuse_flooded, spread
from sim.brokers.data.compiled.hops import (
    count_received,
    count_sent,
    deliver,
    end_message,
    first_row_of,
    note,
    send_message,
    take_message,
    trace_hop,
)
from sim.brokers.data.compiled.outages import stops
from sim.brokers.data.compiled.records import (
    count_pairs,
    flight_at,
    message_at,
    pending_at,
    position_at,
    slot_at,
    tally_at,
    version_at,
    window_at,
)
from sim.brokers.data.compiled.servers import accept, drop_from_queue, service_time
from sim.brokers.data.compiled.state import (
    CRASHED,
    DEPTH,
    DISCONNECTED,
    DOWN,
    FLOODED,
    FULL,
    LEFT_ROOT,
    NONE,
    ON_ITS_WAY,
    SERVED,
    UP,
)
from sim.brokers.statistics.hops import TREE, UPLINK
from sim.brokers.statistics.ledger import DUE


@kernel
def _is_traced(state: Item, number: int) -> bool:
    """Whether the flight's publication is traced, as in `sim.brokers.statistics.hops.HopTrace`."""
    publication = number // state.fields if state.content else number
    return bool(state.traced_share >= 1.0 or keyed_uniform(state.trace_key, publication, 0) < state.traced_share)


@inlined
def begin_flight(state: Item) -> int:
    """Take a free flight for the next publication, which is published now; returns its number."""
    pending = pending_at(state.pending, state.next_pending)
    state.next_pending += 1
    state.now = pending.time
    carried = state.free_flight
    flight, uplink = flight_at(state.flights, carried), position_at(state.positions, pending.uplink)
    state.free_flight = flight.messages
    state.free_flights -= 1
    state.in_transit += 1
    flight.published, flight.rooted, flight.last, flight.messages = pending.published, np.nan, -1.0, 1
    flight.size, flight.number, flight.window = pending.size, pending.number, pending.window
    flight.origin, flight.slot, flight.version = uplink.broker, pending.slot, NONE
    flight.period, flight.hops, flight.released, flight.missed = pending.period, uplink.depth, pending.released, 0
    flight.traced = int(state.traces and _is_traced(state, flight.number))
    window_at(state.windows, pending.window).published += 1
    return int(carried)


@inlined
def depart(state: Item) -> None:
    """The next publication leaves for its root."""
    pending = pending_at(state.pending, state.next_pending)
    carried = begin_flight(state)
    flight = flight_at(state.flights, carried)
    number = take_message(state)
    message = message_at(state.messages, number)
    message.flight, message.position, message.kind = carried, pending.uplink, UP
    if pending.lost:
        _miss_root(state, number, flight, CRASHED)
        end_message(state, number)
    else:
        _reach_uplink(state, number)


@inlined
def arrive_uplink(state: Item, number: int) -> None:
    """The message has arrived at the broker at its position, over a hop."""
    outcome = stops(state, number, position_at(state.positions, message_at(state.messages, number).position).broker)
    if outcome != ON_ITS_WAY:
        _miss_root(state, number, flight_at(state.flights, message_at(state.messages, number).flight), outcome)
        end_message(state, number)
    else:
        _reach_uplink(state, number)


@inlined
def _reach_uplink(state: Item, number: int) -> None:
    """The message is at the broker at its position."""
    message = message_at(state.messages, number)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    came = place.depth < flight.hops  # over a hop; otherwise it starts here
    if not state.takes_time:
        if came:
            trace_hop(state, number, flight, place.broker, UPLINK, False)
        climb(state, number)
        return
    service = service_time(state, flight.number, int(place.broker), 0, uplink_effort(state, flight, place))
    if not accept(state, place.broker, number, service):
        _miss_root(state, number, flight, FULL)
        end_message(state, number)
    elif came:
        trace_hop(state, number, flight, place.broker, UPLINK, False)


@inlined
def uplink_effort(state: Item, flight: Item, place: Item) -> tuple[int, int, int, int]:
    """The effort of the broker at a position of the uplink for the flight; at the root, as of the flight's arrival there."""
    size = int(flight.size)
    if place.first != NONE:
        return 0, 1, 0, size
    increments = int(count_increments(state, flight)[place.broker]) if state.matches else 0
    if state.weighs:
        version = version_at(state.versions, slot_at(state.slots, flight.slot).version)
        if version.size:
            root = position_at(state.positions, version.first)
            users = count_concerned(state, flight, root.broker) if state.content else int(root.users)
            return increments, int(root.children), users + int(version.groups), size
    return increments, 0, 0, size


@kernel
def _miss_root(state: Item, number: int, flight: Item, outcome: int) -> None:
    """The message is lost with its flight on the way up, as `outcome` says."""
    flight.hops -= position_at(state.positions, message_at(state.messages, number).position).depth
    if state.content:
        note(state, flight, outcome)
    end_short_of_root(state, flight, outcome)


@kernel
def end_short_of_root(state: Item, flight: Item, outcome: int) -> None:
    """What the flight carries is due now, and lost."""
    slot, window = slot_at(state.slots, flight.slot), flight.window
    window_at(state.windows, window).dropped += 1
    count_pairs(state, window, DUE, slot.brokers, slot.users)
    count_pairs(state, window, outcome, slot.brokers, slot.users)
    version_at(state.versions, slot.version).flights += 1
    rooted(state, flight)


@inlined
def rooted(state: Item, flight: Item) -> None:
    """The flight has left its root, or has been dropped before."""
    state.unrooted -= flight.released
    flight.released = 0


@inlined
def climb(state: Item, number: int) -> None:
    """The broker at the message's position on the uplink has handled it."""
    message = message_at(state.messages, number)
    here, flight = position_at(state.positions, message.position), flight_at(state.flights, message.flight)
    if here.first == NONE:
        _leave_root(state, number)
        return
    window, tally = window_at(state.windows, flight.window), tally_at(state.tallies, message.position)
    there = position_at(state.positions, here.first)
    window.uplinks += 1
    window.uplink_bytes += flight.size
    if window.measured:
        tally.messages += 1
        tally.bytes += flight.size
        first = first_row_of(state, flight.window)
        count_sent(state, first + here.broker, flight.size, 1)
        count_received(state, first + there.broker, flight.size, there.first != NONE)
    message.position = here.first
    outcome = send_message(state, number, flight.number, int(here.broker), there.broker, here)
    if outcome != ON_ITS_WAY:
        _miss_root(state, number, flight, outcome)
        end_message(state, number)


@inlined
def become_due(state: Item, flight: Item) -> None:
    """The flight leaves its root and becomes due, along the tree of its slot's version."""
    flight.version, flight.rooted = slot_at(state.slots, flight.slot).version, state.now
    if state.chosen != NONE:
        flight.version, state.chosen = state.chosen, NONE
    version, window = version_at(state.versions, flight.version), window_at(state.windows, flight.window)
    window.rooted += 1
    window.uplink_hops += flight.hops
    count_pairs(state, flight.window, DUE, version.brokers, version.users)
    count_pairs(state, flight.window, state.off_tree, version.brokers_off_tree, version.users_off_tree)
    count_pairs(state, flight.window, DISCONNECTED, 0, version.users_absent)
    version.flights += 1
    version.carried += 1
    rooted(state, flight)
    if state.content:
        begin_copy(state, flight)
    if version.offloads or state.content:
        note(state, flight, LEFT_ROOT)


@inlined
def _leave_root(state: Item, number: int) -> None:
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    awaited = flight.released  # whether something may wait for it to leave its root
    become_due(state, flight)
    version = version_at(state.versions, flight.version)
    if version.size == 0:
        end_message(state, number)
        return
    deliver(state, flight, version.first, 0, state.now)
    message.kind, message.position = DOWN, version.first
    if state.floods:
        begin_flood(state, flight)
        flood_on(state, number, version.first, flight)
    else:
        _forward(state, number, flight, not awaited and _goes_straight_on(state))


@kernel
def drop_waiting(state: Item, broker: int, number: int) -> None:
    """The broker drops a publication that waits, to make room for another."""
    drop_from_queue(state, broker, number)
    lose_held(state, number, FULL)
    end_message(state, number)


@kernel
def lose_held(state: Item, number: int, outcome: int) -> None:
    """A broker loses a publication that it holds."""
    message = message_at(state.messages, number)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    kind = message.kind % SERVED
    if kind == UP:
        _miss_root(state, number, flight, outcome)
    elif kind == DOWN:
        _miss_tree(state, flight, message.position, outcome)
    else:
        refuse_flooded(state, flight, place.first, kind == FLOODED, outcome)


# -- below the root


@kernel
def _miss_tree(state: Item, flight: Item, position: int, outcome: int) -> None:
    """The flight does not get to a broker on the tree, or is lost there: what is due at it and below is lost."""
    place = position_at(state.positions, position)
    if state.content:
        cell = cell_of(state, flight, position)
        cell.state |= lost_there(outcome)
        cell.arrived = np.nan
    count_pairs(state, flight.window, outcome, place.below_brokers, place.below_users)


@inlined
def arrive_tree(state: Item, number: int) -> None:
    """The message has arrived at the broker at its position."""
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    place = position_at(state.positions, message.position)
    outcome = stops(state, number, place.broker)
    if outcome != ON_ITS_WAY:
        _miss_tree(state, flight, message.position, outcome)
        end_message(state, number)
        return
    if not state.takes_time:
        trace_hop(state, number, flight, place.broker, TREE, place.users > 0)
        deliver(state, flight, message.position, place.depth, state.now)
        _forward(state, number, flight, False)
        return
    _reach_tree(state, number)


@kernel
def _reach_tree(state: Item, number: int) -> None:
    """The message is at the broker at its position, which takes time."""
    message = message_at(state.messages, number)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    increments = int(cell_of(state, flight, message.position).sender) if state.matches else 0
    users = cell_of(state, flight, message.position).state // DEPTH if state.content else place.users
    effort = increments, int(place.children), int(users), int(flight.size)
    if accept(state, place.broker, number, service_time(state, flight.number, int(place.broker), 1, effort)):
        trace_hop(state, number, flight, place.broker, TREE, place.users > 0)
        if state.content:
            cell_of(state, flight, message.position).arrived = state.now
    else:
        _miss_tree(state, flight, message.position, FULL)
        end_message(state, number)


@inlined
def _goes_straight_on(state: Item) -> bool:
    """Whether copies that are sent now arrive before anything else happens, if their hops take no time."""
    if not state.takes_time or state.limited or state.faulty or state.traces or state.content or state.makes_room:
        return False
    if state.jitter > 0.0 or state.noted > 0:
        return False
    if state.next_pending < state.pending_end and pending_at(state.pending, state.next_pending).time <= state.now:
        return False
    return nothing_else_now(state)


@inlined
def _forward(state: Item, number: int, flight: Item, at_once: bool) -> None:
    """Send copies to the children of a message's position; the message is reused for the first of them.

    `at_once`: those whose hops take no time arrive at once, without waiting in the calendar, to the same effect.
    """
    message = message_at(state.messages, number)
    here, carried = position_at(state.positions, message.position), message.flight
    if here.children == 0:
        end_message(state, number)
        return
    flight.messages += here.children - 1
    window, size, internal, first = window_at(state.windows, flight.window), flight.size, 0, 0
    if window.measured:
        first = first_row_of(state, flight.window)
        count_sent(state, first + here.broker, size, here.children)
    for position in range(here.first, here.first + here.children):
        if position > here.first:
            number = take_message(state)
        message, child = message_at(state.messages, number), position_at(state.positions, position)
        message.flight, message.kind, message.position = carried, DOWN, position
        internal += int(child.users > 0)
        if window.measured:
            tally = tally_at(state.tallies, position)
            tally.messages += 1
            tally.bytes += size
            count_received(state, first + child.broker, size, child.users == 0)
        if at_once and child.hop == 0.0:
            _reach_tree(state, number)
            continue
        outcome = send_message(state, number, flight.number, int(here.broker), child.broker, child)
        if outcome != ON_ITS_WAY:
            _miss_tree(state, flight, position, outcome)
            end_message(state, number)
    external = here.children - internal
    window.internal += internal
    window.internal_bytes += internal * size
    window.external += external
    window.external_bytes += external * size


@inlined
def go_down(state: Item, number: int) -> None:
    """The broker at the message's position has served it."""
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    if message.kind == DOWN:
        depth = position_at(state.positions, message.position).depth
        deliver(state, flight, message.position, depth, message.arrived)
        _forward(state, number, flight, _goes_straight_on(state))
    elif message.kind == FLOODED:
        spread(state, number, message.arrived)
    else:
        end_message(state, number)
