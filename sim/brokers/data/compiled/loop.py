"""The loop of the compiled engine, with results identical to `sim.brokers.data.events.EventEngine`.

Every hop is an event, as there, and if brokers take time so is the end of every service; simultaneous events are in the order in
which they were scheduled. Publications are counted on their way: nothing of one is kept once no message carries it.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Item, Items
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.calendar import pop, soonest
from sim.brokers.data.compiled.floods import arrive_flooded, judge_flooded
from sim.brokers.data.compiled.hops import free_message, take_message
from sim.brokers.data.compiled.lines import come_in
from sim.brokers.data.compiled.outages import stops
from sim.brokers.data.compiled.records import (
    entry_at,
    flight_at,
    integer_at,
    message_at,
    pending_at,
    position_at,
    slot_at,
    version_at,
    window_at,
)
from sim.brokers.data.compiled.servers import accept, gets_room, lacks_room, next_dropped, served
from sim.brokers.data.compiled.state import (
    CHECK,
    CHOOSE,
    COMING,
    CONTROL_SERVED,
    DONE,
    DOWN,
    EMPTY_DELAYS,
    EMPTY_HOPS,
    EMPTY_NOTES,
    FLOODED,
    GONE,
    GROW,
    IDLE,
    LOOK,
    MOST_NOTES,
    NONE,
    ON_ITS_WAY,
    OPEN_WINDOW,
    REPEATED,
    REQUEST,
    ROOTED_ALL,
    SERVED,
    UP,
)
from sim.brokers.data.compiled.ways import arrive_tree, arrive_uplink, climb, depart, drop_waiting, go_down


@inlined
def stale(state: Item, number: int, period: int) -> bool:
    """Whether the slot of a topic and root is out of date, which stops the loop to update it."""
    slot = slot_at(state.slots, number)
    if slot.checked == state.epoch and version_at(state.versions, slot.version).period == period:
        return False
    state.stopped_at, state.stopped_period = number, period
    return True


@inlined
def undecided(state: Item, slot: int, number: int, origin: int, time: float) -> bool:
    """Whether members of groups have to be chosen for a publication that leaves its root now, which stops the loop for it."""
    if state.chosen != NONE or version_at(state.versions, slot_at(state.slots, slot).version).groups == 0:
        return False
    state.stopped_at, state.stopped_number, state.stopped_origin, state.stopped_time = slot, number, origin, time
    return True


@inlined
def leaves_at_once(state: Item, uplink: int) -> bool:
    """Whether a publication that comes to the broker at the start of an uplink leaves its root at that moment."""
    return bool(not state.takes_time and position_at(state.positions, uplink).first == NONE)


@inlined
def _asks(state: Item, position: int, size: int, at_broker: bool) -> bool:
    """Whether a publication at this position of an uplink needs an up-to-date slot: it leaves its root, or may be lost."""
    if state.outage:
        return True
    place = position_at(state.positions, position)
    if at_broker or not state.takes_time:
        return bool(place.first == NONE or state.limited)
    if state.weighs and place.first == NONE:
        return True
    return lacks_room(state, place.broker, size) and not gets_room(state, size)


@inlined
def has_to_drop(state: Item, broker: int, size: int) -> bool:
    """Whether the broker has to make room for a publication of `size` bytes that arrives now."""
    return bool(state.makes_room and state.takes_time) and lacks_room(state, broker, size) and gets_room(state, size)


@kernel
def _make_room(state: Item, broker: int, now: float) -> bool:
    """Drop a publication that waits at the broker; false if its slot has to be updated first."""
    number = next_dropped(state, broker)
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    if message.kind == UP and stale(state, flight.slot, flight.period):
        return False
    state.now = now
    drop_waiting(state, broker, number)
    return True


@inlined
def _comes(state: Item, number: int, position: int) -> bool:
    """Whether no outage stops a message that arrives at the broker at a position."""
    return bool(stops(state, number, position_at(state.positions, position).broker) == ON_ITS_WAY)


@inlined
def _step(state: Item) -> int:
    """Process the message on top of the heap, or return why that is not possible."""
    message = message_at(state.messages, entry_at(state.heap, 0).message)
    kind, position = message.kind, message.position
    if kind in (UP, DOWN, FLOODED, REPEATED):
        broker = position_at(state.positions, position).broker
        number = entry_at(state.heap, 0).message
        if (
            has_to_drop(state, broker, flight_at(state.flights, message.flight).size)
            and stops(state, number, broker) == ON_ITS_WAY
        ):
            if kind == FLOODED:
                judge_flooded(state, message)
            return DONE if _make_room(state, broker, entry_at(state.heap, 0).time) else CHECK
    if kind == UP or kind == SERVED + UP:
        flight = flight_at(state.flights, message.flight)
        if _asks(state, position, flight.size, kind != UP) and stale(state, flight.slot, flight.period):
            return CHECK
        number = entry_at(state.heap, 0).message
        at_root = state.shared and position_at(state.positions, position).first == NONE
        leaves = at_root and (kind != UP or (not state.takes_time and _comes(state, number, position)))
        if leaves and undecided(state, flight.slot, flight.number, flight.origin, entry_at(state.heap, 0).time):
            return CHOOSE
    state.now = entry_at(state.heap, 0).time
    number = pop(state)
    if kind >= COMING:
        come_in(state, number)
    elif kind == UP:
        arrive_uplink(state, number)
    elif kind == DOWN:
        arrive_tree(state, number)
    elif kind in (FLOODED, REPEATED):
        arrive_flooded(state, number)
    elif kind == SERVED + REQUEST:
        served(state, position, number)
        state.controls -= 1
        state.stopped_at = message.flight
        free_message(state, number)
        return CONTROL_SERVED
    elif kind == GONE:
        free_message(state, number)
    else:
        served(state, position_at(state.positions, position).broker, number)  # of a link, the one that it leads to
        if kind == SERVED + UP:
            climb(state, number)
        else:
            go_down(state, number)
    return DONE


@kernel
def lacks_rows(state: Item, window: int) -> bool:
    """Whether the traffic of a measured window lacks rows."""
    return bool(window_at(state.windows, window).measured and integer_at(state.first_row, window).value < 0)


@kernel
def next_time(states: Items) -> float:
    """When the loop's next event is due (s); infinite: never."""
    state = states[0]
    time = soonest(state)
    if state.next_pending < state.pending_end:
        return min(time, float(pending_at(state.pending, state.next_pending).time))
    return time


@inlined
def _wants(state: Item) -> int:
    """The reason to stop because room is lacking, if any."""
    if state.free_messages < state.most_children or state.free_flights == 0:
        return GROW
    if state.limited and state.free_waits < state.most_children:
        return GROW
    if 2 * (state.delay_keys + 1) > state.delay_slots:
        return EMPTY_DELAYS
    full = state.hands_over and state.handed == state.handed_room
    if full or state.notes_room - state.noted < MOST_NOTES or (state.noted > 0 and state.heeds):
        return EMPTY_NOTES
    if state.hops == state.hops_room and state.traces:
        return EMPTY_HOPS
    if state.cells_room - state.cells_used < state.most_cells:
        return GROW
    return DONE


@kernel
def process(states: Items, until: float, at_once: bool, idle: bool, rooted: bool) -> int:
    """Process all events before `until` (s), and at that time if `at_once`; returns why it stopped.

    `idle`: stop when no publication is in transit; `rooted`: when everything released has left its root.
    """
    state = states[0]
    while True:
        if rooted and state.unrooted == 0:  # before other changes, as a message lost on its way up is freed by them
            return ROOTED_ALL
        if idle and state.in_transit == 0 and state.next_pending == state.pending_end:
            return IDLE
        code = _wants(state)
        if code != DONE:
            return code
        time = soonest(state)
        if time >= state.look_at and until >= state.look_at and next_time(states) >= state.look_at:
            return LOOK
        if state.next_pending < state.pending_end:
            pending = pending_at(state.pending, state.next_pending)
            if pending.time <= time:
                if pending.time > until:
                    return DONE
                broker = position_at(state.positions, pending.uplink).broker
                if has_to_drop(state, broker, pending.size) and not pending.lost:
                    if not _make_room(state, broker, pending.time):
                        return CHECK
                    continue
                if lacks_rows(state, pending.window):
                    state.stopped_at = pending.window
                    return OPEN_WINDOW
                asks = pending.lost or _asks(state, pending.uplink, pending.size, False)
                if asks and stale(state, pending.slot, pending.period):
                    return CHECK
                at_root = state.shared and not pending.lost and leaves_at_once(state, pending.uplink)
                if at_root and undecided(state, pending.slot, pending.number, broker, pending.time):
                    return CHOOSE
                depart(state)
                continue
        if time > until or (time == until and not at_once) or time == np.inf:
            return DONE
        code = _step(state)
        if code != DONE:
            return code


@kernel
def accept_control(states: Items, number: int, broker: int, service: float, now: float) -> None:
    """Let the broker serve a control message that arrives now (s) and needs `service` seconds; there is a free message."""
    state = states[0]
    state.now = now
    state.controls += 1
    taken = take_message(state)
    message = message_at(state.messages, taken)
    message.kind, message.flight, message.position = REQUEST, number, broker
    accept(state, broker, taken, service)
