"""The loop of the compiled engine: what `sim.brokers.data.events.EventEngine` does on trees, to the same bits.

Every hop is an event, as there, and where brokers take time so is the end of every service; events of one time come in the order in
which they were scheduled. A publication is counted as it goes: nothing is kept of it once no message carries it.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_exponential, keyed_normal
from sim.brokers.data.compiled.calendar import pop, schedule, soonest
from sim.brokers.data.compiled.floods import begin_flood, cell_of, end_flood
from sim.brokers.data.compiled.servers import accept, full, served
from sim.brokers.data.compiled.state import (
    ACCEPTED,
    ARRIVED,
    CHECK,
    CONTROL_SERVED,
    DEPTH,
    DONE,
    DOWN,
    EMPTY_DELAYS,
    EMPTY_LEFT,
    FLOODED,
    GROW,
    IDLE,
    NONE,
    REFUSED,
    REPEATED,
    REQUEST,
    ROOTED_ALL,
    SERVED,
    UP,
    Item,
    Items,
    entry_at,
    flight_at,
    integer_at,
    integers,
    left_at,
    message_at,
    pending_at,
    position_at,
    real_at,
    slot_at,
    tally_at,
    version_at,
    window_at,
)
from sim.brokers.statistics import record_kernels as rk


@kernel
def _take(state: Item) -> int:
    """A free message, which there is."""
    number = state.free_message
    state.free_message = message_at(state.messages, number).next
    state.free_messages -= 1
    return int(number)


@kernel
def _free(state: Item, number: int) -> None:
    """The message carries nothing any more."""
    message = message_at(state.messages, number)
    message.kind, message.next = NONE, state.free_message
    state.free_message = number
    state.free_messages += 1


@kernel
def _end(state: Item, number: int) -> None:
    """The message carries its flight no further, which is over when no other does."""
    carried = message_at(state.messages, number).flight
    flight = flight_at(state.flights, carried)
    _free(state, number)
    flight.messages -= 1
    if flight.messages == 0:
        if flight.version != NONE:
            version_at(state.versions, flight.version).carried -= 1
            if state.floods:
                end_flood(state, flight)
        integer_at(state.finished, flight.period).value += 1
        flight.messages = state.free_flight
        state.free_flight = carried
        state.free_flights += 1
        state.in_transit -= 1


@kernel
def _send(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> None:
    """Send a message, which carries a publication, from broker to broker; `hop` is the position that has the hop's time and link."""
    if state.jitter == 0.0:
        schedule(state, number, state.now + hop.hop)
        return
    sigma, last = state.jitter, real_at(state.last_arrival, hop.link)
    draw = keyed_normal(state.jitter_key, publication, here * state.brokers + there)
    time = state.now + hop.hop * math.exp(sigma * draw - sigma * sigma / 2)
    last.value = max(time, last.value)
    schedule(state, number, last.value)


@kernel
def _service(state: Item, publication: int, broker: int, stage: int) -> float:
    """The seconds that a broker needs for a publication at this stage of its way."""
    mean = real_at(state.service, broker).value
    if state.exponential:
        return float(mean * keyed_exponential(state.service_key, publication, broker << 16 | stage))
    return float(mean)


@kernel
def _add(state: Item, window: int, row: int, value: float) -> None:
    """Add to an exact sum of a window."""
    rk.add_exactly(integers(state.sums + 24 * (window * rk.SUMS + row), 3), value)


@kernel
def _deliver(state: Item, flight: Item, position: int, depth: int, arrived: float) -> None:
    """The broker at this position has served the publication, which arrived there at a time (s) by so many hops below the root."""
    place, now, number = position_at(state.positions, position), state.now, int(flight.window)
    users, window = int(place.users), window_at(state.windows, number)
    if users == 0:
        return
    delay, tree_delay = now - flight.published, now - flight.rooted
    tally_at(state.tallies, position).delivered += 1
    window.delivered_brokers += 1
    window.delivered_users += users
    window.tree_hops += depth
    _add(state, number, rk.USER_NOTIFICATION_DELAY, delay * users)
    _add(state, number, rk.USER_TREE_DELAY, tree_delay * users)
    _add(state, number, rk.NOTIFICATION_DELAY, delay)
    _add(state, number, rk.TREE_DELAY, tree_delay)
    if now > arrived:
        _add(state, number, rk.LAST_SERVICE, now - arrived)
    keys = integers(state.keys, state.delay_slots)
    counts = integers(state.counts, 2 * state.delay_slots).reshape(-1, 2)
    state.delay_keys += rk.count_delay(keys, counts, number * rk.BINS + rk.delay_bin(delay), 1, users)
    direct = real_at(state.hop_delay, flight.origin * state.brokers + place.broker).value
    if direct > 0.0:
        window.stretched += 1
        _add(state, number, rk.STRETCH, (arrived - flight.published) / direct)
    if window.measured:
        integer_at(state.per_broker, int(place.broker) * 4 + rk.BROKER_DELIVERED).value += 1
        largest = real_at(state.maxima, 0)
        largest.value = max(largest.value, delay)


# -- up to the root


@kernel
def _depart(state: Item) -> None:
    """The next publication leaves for its root."""
    pending = pending_at(state.pending, state.next_pending)
    state.next_pending += 1
    state.now = pending.time
    carried = state.free_flight
    flight, uplink = flight_at(state.flights, carried), position_at(state.positions, pending.uplink)
    state.free_flight = flight.messages
    state.free_flights -= 1
    state.in_transit += 1
    flight.published, flight.rooted, flight.messages = pending.published, np.nan, 1
    flight.size, flight.number, flight.window = pending.size, pending.number, pending.window
    flight.origin, flight.slot, flight.version = uplink.broker, pending.slot, NONE
    flight.period, flight.hops, flight.released, flight.refused = pending.period, uplink.depth, pending.released, 0
    window_at(state.windows, pending.window).published += 1
    number = _take(state)
    message = message_at(state.messages, number)
    message.flight, message.position, message.kind = carried, pending.uplink, UP
    _arrive_uplink(state, number)


@kernel
def _arrive_uplink(state: Item, number: int) -> None:
    """The message has come to the broker at its position."""
    if not state.takes_time:
        _climb(state, number)
        return
    message = message_at(state.messages, number)
    flight, broker = flight_at(state.flights, message.flight), position_at(state.positions, message.position).broker
    if not accept(state, broker, number, _service(state, flight.number, int(broker), 0)):
        _miss_root(state, flight)
        _end(state, number)


@kernel
def _miss_root(state: Item, flight: Item) -> None:
    """The flight is dropped on its way up, and what it carries is due now, and lost."""
    slot, window = slot_at(state.slots, flight.slot), window_at(state.windows, flight.window)
    window.dropped += 1
    window.due_brokers += slot.brokers
    window.due_users += slot.users
    window.refused_brokers += slot.brokers
    window.refused_users += slot.users
    version_at(state.versions, slot.version).flights += 1
    _rooted(state, flight)


@kernel
def _rooted(state: Item, flight: Item) -> None:
    """The flight has left its root, or has been dropped before."""
    state.unrooted -= flight.released
    flight.released = 0


@kernel
def _climb(state: Item, number: int) -> None:
    """The broker at the message's position on the uplink has handled it."""
    message = message_at(state.messages, number)
    here, flight = position_at(state.positions, message.position), flight_at(state.flights, message.flight)
    if here.first == NONE:
        _leave_root(state, number)
        return
    window, tally = window_at(state.windows, flight.window), tally_at(state.tallies, message.position)
    window.uplinks += 1
    window.uplink_bytes += flight.size
    if window.measured:
        tally.messages += 1
        tally.bytes += flight.size
    message.position = here.first
    there = position_at(state.positions, here.first).broker
    _send(state, number, flight.number, int(here.broker), there, here)


@kernel
def _leave_root(state: Item, number: int) -> None:
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    flight.version, flight.rooted = slot_at(state.slots, flight.slot).version, state.now
    version, window = version_at(state.versions, flight.version), window_at(state.windows, flight.window)
    window.rooted += 1
    window.uplink_hops += flight.hops
    window.due_brokers += version.brokers
    window.due_users += version.users
    window.joining_brokers += version.brokers_joining
    window.joining_users += version.users_joining
    version.flights += 1
    version.carried += 1
    if version.offloads:
        left = left_at(state.left, state.left_root)
        state.left_root += 1
        left.number, left.version, left.window = flight.number, flight.version, flight.window
        left.published, left.rooted = flight.published, state.now
    _rooted(state, flight)
    if version.size == 0:
        _end(state, number)
        return
    _deliver(state, flight, version.first, 0, state.now)
    message.kind, message.position = DOWN, version.first
    if state.floods:
        begin_flood(state, flight)
        _flood(state, number, version.first, flight)
    else:
        _forward(state, number, flight)


# -- below the root


@kernel
def _arrive_tree(state: Item, number: int) -> None:
    """The message has come to the broker at its position."""
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    if not state.takes_time:
        _deliver(state, flight, message.position, position_at(state.positions, message.position).depth, state.now)
        _forward(state, number, flight)
        return
    place = position_at(state.positions, message.position)
    if not accept(state, place.broker, number, _service(state, flight.number, int(place.broker), 1)):
        window = window_at(state.windows, flight.window)
        window.refused_brokers += place.below_brokers
        window.refused_users += place.below_users
        _end(state, number)


@kernel
def _forward(state: Item, number: int, flight: Item) -> None:
    """Send copies to the children of a message's position; the message is used again for the first of them."""
    message = message_at(state.messages, number)
    here, carried = position_at(state.positions, message.position), message.flight
    if here.children == 0:
        _end(state, number)
        return
    flight.messages += here.children - 1
    window, size, internal = window_at(state.windows, flight.window), flight.size, 0
    for position in range(here.first, here.first + here.children):
        if position > here.first:
            number = _take(state)
        message, child = message_at(state.messages, number), position_at(state.positions, position)
        message.flight, message.kind, message.position = carried, DOWN, position
        internal += int(child.users > 0)
        if window.measured:
            tally = tally_at(state.tallies, position)
            tally.messages += 1
            tally.bytes += size
        _send(state, number, flight.number, int(here.broker), child.broker, child)
    external = here.children - internal
    window.internal += internal
    window.internal_bytes += internal * size
    window.external += external
    window.external_bytes += external * size


@kernel
def _descend(state: Item, number: int) -> None:
    """The broker at the message's position has served it."""
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    if message.kind == DOWN:
        depth = position_at(state.positions, message.position).depth
        _deliver(state, flight, message.position, depth, message.arrived)
        _forward(state, number, flight)
    elif message.kind == FLOODED:
        _spread(state, number, message.arrived)
    else:
        _end(state, number)


# -- flooded


@kernel
def _arrive_flooded(state: Item, number: int) -> None:
    """A copy has come over the link that is the message's position: the first one, or a duplicate."""
    message = message_at(state.messages, number)
    flight, link = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    cell = cell_of(state, flight, link.first)
    first = not cell.state & ARRIVED
    if state.takes_time:
        sender = int(position_at(state.positions, link.children).broker)
        service = _service(state, flight.number, int(link.broker), 1 if first else 2 + sender)
        message.kind = FLOODED if first else REPEATED
        if not accept(state, link.broker, number, service):
            cell.state |= REFUSED
            flight.refused = 1
            _end(state, number)
            return
    if first:
        depth = cell_of(state, flight, link.children).state // DEPTH + 1
        cell.sender, cell.state = link.children, cell.state | ARRIVED | depth * DEPTH
    else:
        window_at(state.windows, flight.window).duplicates += 1
    if state.takes_time:
        return
    if first:
        _spread(state, number, state.now)
    else:
        _end(state, number)


@kernel
def _spread(state: Item, number: int, arrived: float) -> None:
    """The broker to which the message's link leads has served the first copy."""
    message = message_at(state.messages, number)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position).first
    cell = cell_of(state, flight, place)
    cell.state |= ACCEPTED
    _deliver(state, flight, place, cell.state // DEPTH, arrived)
    _flood(state, number, place, flight)


@kernel
def _flood(state: Item, number: int, place: int, flight: Item) -> None:
    """Send copies from a place to all neighbours but the one that the first came from; the message is used again for the first."""
    here, sender = position_at(state.positions, place), cell_of(state, flight, place).sender
    window, size, carried = (
        window_at(state.windows, flight.window),
        flight.size,
        message_at(state.messages, number).flight,
    )
    sent, taken = 0, number
    for position in range(here.first, here.first + here.children):
        link = position_at(state.positions, position)
        if link.first == sender:
            continue
        if sent > 0:
            taken = _take(state)
        sent += 1
        message = message_at(state.messages, taken)
        message.flight, message.kind, message.position = carried, FLOODED, position
        if link.users > 0:
            window.internal += 1
            window.internal_bytes += size
        else:
            window.external += 1
            window.external_bytes += size
        if window.measured:
            tally = tally_at(state.tallies, position)
            tally.messages += 1
            tally.bytes += size
        _send(state, taken, flight.number, int(here.broker), link.broker, link)
    flight.messages += sent - 1
    if sent == 0:
        flight.messages += 1
        _end(state, number)


# -- the loop


@kernel
def _stale(state: Item, number: int, period: int) -> bool:
    """Whether it is not known what stands for a topic and a root now; the loop is stopped to learn it."""
    slot = slot_at(state.slots, number)
    if slot.checked == state.epoch and version_at(state.versions, slot.version).period == period:
        return False
    state.stopped_at, state.stopped_period = number, period
    return True


@kernel
def _asks(state: Item, position: int, at_broker: bool) -> bool:
    """Whether a publication at this position of an uplink needs to know what stands now: it leaves its root, or is dropped."""
    place = position_at(state.positions, position)
    if at_broker or not state.takes_time:
        return bool(place.first == NONE)
    return full(state, place.broker)


@kernel
def _step(state: Item) -> int:
    """Process the message on top of the heap, or return why that cannot be."""
    message = message_at(state.messages, entry_at(state.heap, 0).message)
    kind, position = message.kind, message.position
    if kind == UP or kind == SERVED + UP:
        flight = flight_at(state.flights, message.flight)
        if _asks(state, position, kind != UP) and _stale(state, flight.slot, flight.period):
            return CHECK
    state.now = entry_at(state.heap, 0).time
    number = pop(state)
    if kind == UP:
        _arrive_uplink(state, number)
    elif kind == DOWN:
        _arrive_tree(state, number)
    elif kind == FLOODED:
        _arrive_flooded(state, number)
    elif kind == SERVED + REQUEST:
        served(state, position)
        state.controls -= 1
        state.stopped_at = message.flight
        _free(state, number)
        return CONTROL_SERVED
    else:
        served(state, position_at(state.positions, position).broker)  # of a link, the one that it leads to
        if kind == SERVED + UP:
            _climb(state, number)
        else:
            _descend(state, number)
    return DONE


@kernel
def process(states: Items, until: float, at_once: bool, idle: bool, rooted: bool) -> int:
    """Process what happens before `until` (s), and at that time where `at_once`; returns why it stopped.

    `idle`: stop when no publication is in transit; `rooted`: when everything that was released has left its root.
    """
    state = states[0]
    while True:
        if idle and state.in_transit == 0 and state.next_pending == state.pending_end:
            return IDLE
        if rooted and state.unrooted == 0:
            return ROOTED_ALL
        if state.free_messages < state.most_children or state.free_flights == 0:
            return GROW
        if 2 * (state.delay_keys + 1) > state.delay_slots:
            return EMPTY_DELAYS
        if state.left_root == state.left_room:
            return EMPTY_LEFT
        if state.cells_room - state.cells_used < state.most_cells:
            return GROW
        time = soonest(state)
        if state.next_pending < state.pending_end:
            pending = pending_at(state.pending, state.next_pending)
            if pending.time <= time:
                if pending.time > until:
                    return DONE
                if _asks(state, pending.uplink, False) and _stale(state, pending.slot, pending.period):
                    return CHECK
                _depart(state)
                continue
        if time > until or (time == until and not at_once) or time == np.inf:
            return DONE
        code = _step(state)
        if code != DONE:
            return code


@kernel
def next_time(states: Items) -> float:
    """When the loop has something to do (s); infinite: never."""
    state = states[0]
    time = soonest(state)
    if state.next_pending < state.pending_end:
        return min(time, float(pending_at(state.pending, state.next_pending).time))
    return time


@kernel
def accept_control(states: Items, number: int, broker: int, service: float, now: float) -> None:
    """Have the broker serve a control message that arrives now (s), and needs `service` seconds; there is a free message."""
    state = states[0]
    state.now = now
    state.controls += 1
    taken = _take(state)
    message = message_at(state.messages, taken)
    message.kind, message.flight, message.position = REQUEST, number, broker
    accept(state, broker, taken, service)
