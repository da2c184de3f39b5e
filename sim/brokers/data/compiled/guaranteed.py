"""The loop of the compiled engine where there is a guarantee, with results identical to `sim.brokers.data.guaranteed`.

A loop of its own, so that the one without is neither slower nor takes longer to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.calendar import pop, soonest
from sim.brokers.data.compiled.hops import free_message
from sim.brokers.data.compiled.kept import (
    ACKNOWLEDGED,
    KEEPING,
    come,
    handle,
    keep,
    look,
    lose_copy,
    send_copy,
    set_timer,
    take_copy,
)
from sim.brokers.data.compiled.lines import come_in
from sim.brokers.data.compiled.loop import has_to_drop, lacks_rows, leaves_at_once, next_time, stale, undecided
from sim.brokers.data.compiled.outages import is_avoided, stops
from sim.brokers.data.compiled.records import (
    carried_at,
    count_pairs,
    entry_at,
    flight_at,
    kept_at,
    message_at,
    outage_at,
    pending_at,
    position_at,
)
from sim.brokers.data.compiled.servers import accept, drop_from_queue, next_dropped, served
from sim.brokers.data.compiled.state import (
    ANSWER,
    CHECK,
    CHOOSE,
    COMING,
    CONTROL_SERVED,
    CRASHED,
    DETOUR,
    DONE,
    DOWN,
    EMPTY_DELAYS,
    EMPTY_HOPS,
    EMPTY_NOTES,
    EXPIRED,
    FULL,
    GONE,
    GROW,
    IDLE,
    LOOK,
    MOST_NOTES,
    NONE,
    ON_ITS_WAY,
    OPEN_WINDOW,
    REQUEST,
    ROOTED_ALL,
    SERVED,
    TIMER,
    UP,
)
from sim.brokers.data.compiled.ways import begin_flight
from sim.brokers.statistics.ledger import IN_FLIGHT


@inlined
def is_stale(state: Item, kept: Item) -> bool:
    """Whether the slot of a flight on its way up is out of date; it may leave its root, or be lost."""
    flight = flight_at(state.flights, kept.flight)
    return bool(kept.kind == UP and stale(state, flight.slot, flight.period))


@inlined
def _undecided(state: Item, kept: Item, time: float) -> bool:
    """Whether members of groups have to be chosen, as the first copy of a flight is handled by its root now."""
    if kept.kind != UP or kept.handled or position_at(state.positions, kept.position).first != NONE:
        return False
    flight = flight_at(state.flights, kept.flight)
    return undecided(state, flight.slot, flight.number, flight.origin, time)


@inlined
def _is_down(state: Item, broker: int) -> bool:
    return bool(state.outage and outage_at(state.outages, broker).down)


@inlined
def _gives_up(state: Item, kept: Item, now: float) -> bool:
    """Whether the sender of a kept copy gives it up at a time (s)."""
    late = now - flight_at(state.flights, kept.flight).published >= state.expire_after
    return bool(late or kept.attempts == state.most_attempts)


@inlined
def goes_round(state: Item, kept: Item, now: float) -> bool:
    """Whether what a sender would send again now (s) has to take another route."""
    if kept.sender == NONE or kept.handled or _gives_up(state, kept, now):
        return False
    if not state.faulty:
        return bool(kept.waits)
    here, there = kept.sender, kept.broker
    avoided = outage_at(state.outages, there).bypassed or (state.avoids and is_avoided(state, here, there))
    return bool(kept.waits or (avoided and not outage_at(state.outages, here).bypassed))


@kernel
def _make_room(state: Item, broker: int, now: float) -> bool:
    """Drop a copy that waits at the broker; false if its slot has to be updated first."""
    number = next_dropped(state, broker)
    if is_stale(state, kept_at(state.kept, carried_at(state.carries, number).kept)):
        return False
    state.now = now
    drop_from_queue(state, broker, number)
    lose_copy(state, number, FULL)
    return True


@kernel
def _enter(state: Item, number: int) -> None:
    """The publisher's client sends the publication to its broker, where it is at once."""
    taken, broker = take_copy(state, number), kept_at(state.kept, number).broker
    if _is_down(state, broker):
        lose_copy(state, taken, CRASHED)
    else:
        come(state, taken)
    set_timer(state, number)


@kernel
def send_again(state: Item, number: int) -> None:
    """A sender sends once more what has not been acknowledged, or gives up."""
    kept = kept_at(state.kept, number)
    if _gives_up(state, kept, state.now):
        kept.done = EXPIRED
        look(state, number)
    elif kept.sender == NONE:
        _enter(state, number)
    else:
        send_copy(state, number)


@kernel
def _depart(state: Item) -> None:
    """The next publication is published."""
    pending = pending_at(state.pending, state.next_pending)
    carried = begin_flight(state)
    flight_at(state.flights, carried).messages = 0
    number = keep(state, carried, UP, pending.uplink, NONE, NONE, 0)
    if pending.lost:
        kept_at(state.kept, number).done = CRASHED
        look(state, number)
    else:
        _enter(state, number)


@kernel
def _time_out(state: Item, number: int) -> None:
    """The timer of what is kept has run out."""
    kept = kept_at(state.kept, number)
    kept.timer = 0
    if kept.done != KEEPING:
        look(state, number)
    elif kept.sender == NONE or not _is_down(state, kept.sender):
        send_again(state, number)


@kernel
def _answer(state: Item, taken: int) -> None:
    """An acknowledgement arrives at the sender, which serves it as a control message if it takes time."""
    sender = int(kept_at(state.kept, carried_at(state.carries, taken).kept).sender)
    comes = stops(state, taken, sender) == ON_ITS_WAY
    if comes and state.answers_take_time:
        slowed = float(outage_at(state.outages, sender).slowed) if state.faulty else 1.0
        accept(state, sender, taken, float(message_at(state.messages, taken).arrived) * slowed)
    else:
        end_answer(state, taken, comes)


@kernel
def end_answer(state: Item, taken: int, known: bool) -> None:
    """The sender has an acknowledgement, or has lost it."""
    number = int(carried_at(state.carries, taken).kept)
    kept = kept_at(state.kept, number)
    kept.answers -= 1
    if known and kept.done == KEEPING:
        kept.done = ACKNOWLEDGED
    free_message(state, taken)
    look(state, number)


@kernel
def _step(state: Item) -> int:
    """Process the message on top of the heap, or return why that is not possible."""
    number, time = int(entry_at(state.heap, 0).message), entry_at(state.heap, 0).time
    message = message_at(state.messages, number)
    kind = message.kind
    if kind < COMING and kind % SERVED in (UP, DOWN, TIMER):
        kept = kept_at(state.kept, carried_at(state.carries, number).kept)
        if kind != TIMER or kept.done == KEEPING:
            comes = kind in (UP, DOWN) and stops(state, number, kept.broker) == ON_ITS_WAY
            if kind == TIMER and kept.sender == NONE:
                comes = not _gives_up(state, kept, time) and not _is_down(state, kept.broker)
            if comes and has_to_drop(state, kept.broker, flight_at(state.flights, kept.flight).size):
                return DONE if _make_room(state, kept.broker, time) else CHECK
            if is_stale(state, kept):  # only now: what makes room may be of another period
                return CHECK
            leaves = kind == SERVED + UP or (comes and not state.takes_time)
            if state.shared and leaves and _undecided(state, kept, time):
                return CHOOSE
            if kind == TIMER and goes_round(state, kept, time) and not _is_down(state, kept.sender):
                state.stopped_at = carried_at(state.carries, number).kept
                return DETOUR
    state.now = time
    pop(state)
    if kind >= COMING:
        come_in(state, number)
    elif kind in (UP, DOWN):
        outcome = stops(state, number, kept_at(state.kept, carried_at(state.carries, number).kept).broker)
        if outcome != ON_ITS_WAY:
            lose_copy(state, number, outcome)
        else:
            come(state, number)
    elif kind == TIMER:
        kept_number = int(carried_at(state.carries, number).kept)
        free_message(state, number)
        _time_out(state, kept_number)
    elif kind == ANSWER:
        _answer(state, number)
    elif kind == SERVED + REQUEST:
        served(state, message.position, number)
        state.controls -= 1
        state.stopped_at = message.flight
        free_message(state, number)
        return CONTROL_SERVED
    elif kind == SERVED + ANSWER:
        served(state, kept_at(state.kept, carried_at(state.carries, number).kept).sender, number)
        end_answer(state, number, True)
    elif kind == GONE:
        free_message(state, number)
    else:
        served(state, position_at(state.positions, message.position).broker, number)
        handle(state, number)
    return DONE


@inlined
def lacks_room_for(state: Item) -> int:
    """The reason to stop because room is lacking, if any."""
    if state.free_messages < 2 * state.most_children + 4 or state.free_flights == 0:
        return GROW
    if state.free_kepts < state.most_children + 1 or (state.limited and state.free_waits < state.most_children):
        return GROW
    if 2 * (state.delay_keys + 1) > state.delay_slots:
        return EMPTY_DELAYS
    full = state.hands_over and state.handed == state.handed_room
    if full or state.notes_room - state.noted < MOST_NOTES:
        return EMPTY_NOTES
    if state.hops == state.hops_room and state.traces:
        return EMPTY_HOPS
    return DONE


@kernel
def process_guaranteed(states: Items, until: float, at_once: bool, idle: bool, rooted: bool) -> int:
    """Process all events before `until` (s), as `sim.brokers.data.compiled.loop.process` does."""
    state = states[0]
    while True:
        if rooted and state.unrooted == 0:
            return ROOTED_ALL
        if idle and state.in_transit == 0 and state.next_pending == state.pending_end:
            return IDLE
        code = lacks_room_for(state)
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
                if not pending.lost and has_to_drop(state, broker, pending.size):
                    if not _make_room(state, broker, pending.time):
                        return CHECK
                    continue
                if stale(state, pending.slot, pending.period):
                    return CHECK
                if lacks_rows(state, pending.window):
                    state.stopped_at = pending.window
                    return OPEN_WINDOW
                enters = state.shared and not (pending.lost or _is_down(state, broker))
                at_root = enters and leaves_at_once(state, pending.uplink)
                if at_root and undecided(state, pending.slot, pending.number, broker, pending.time):
                    return CHOOSE
                _depart(state)
                continue
        if time > until or (time == until and not at_once) or time == np.inf:
            return DONE
        code = _step(state)
        if code != DONE:
            return code


# -- the end


@kernel
def kept_in_transit(
    states: Items, kepts: Items, flights: Items, positions: Items, found: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Count what may still be handled below the roots and, in `found`, the flights in transit of each period.

    Returns the flights that have not left their roots.
    """
    seen, climbing, many = np.zeros(flights.size, np.bool_), np.empty(kepts.size, np.int32), 0
    for kept in kepts:
        if kept.over:
            continue
        flight = flights[kept.flight]
        if not seen[kept.flight]:
            seen[kept.flight] = True
            found[flight.period] += 1
        if kept.handled:
            continue
        if kept.kind == DOWN:
            place = positions[kept.position]
            count_pairs(states[0], flight.window, IN_FLIGHT, place.below_brokers, place.below_users)
        else:
            climbing[many] = kept.flight
            many += 1
    return climbing[:many].copy()
