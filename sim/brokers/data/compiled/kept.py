"""Copies that senders keep in the compiled engine until they are acknowledged, as in `sim.brokers.data.guaranteed`."""

from __future__ import annotations

from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.data.compiled.calendar import schedule
from sim.brokers.data.compiled.hops import (
    carry_no_further,
    count_received,
    count_sent,
    deliver,
    first_row_of,
    free_message,
    hop_time,
    send_message,
    take_message,
    trace_hop,
)
from sim.brokers.data.compiled.outages import is_cut
from sim.brokers.data.compiled.records import (
    carried_at,
    count_pairs,
    flight_at,
    integer_at,
    kept_at,
    message_at,
    position_at,
    sent_at,
    small_at,
    tally_at,
    traffic_at,
    version_at,
    window_at,
)
from sim.brokers.data.compiled.servers import accept, answer_time, service_time
from sim.brokers.data.compiled.state import ANSWER, DOWN, FULL, NONE, ON_ITS_WAY, TIMER, UP
from sim.brokers.data.compiled.ways import become_due, end_short_of_root, uplink_effort
from sim.brokers.data.detours import ROUND
from sim.brokers.fabric.delivery import ATTEMPT
from sim.brokers.statistics.hops import TREE, UPLINK

KEEPING, ACKNOWLEDGED, REROUTED, SENT_ONCE = 0, -1, -2, -3
"""Why a copy is not kept any more, beside what becomes of messages: it still is, was acknowledged, has taken another route, or was
of quality of service 0 and never kept."""


@inlined
def _quality(state: Item, flight: Item) -> int:
    """The quality of service between brokers of a flight."""
    return abs(small_at(state.qos, flight.number).value) if state.quality < 0 else int(state.quality)


@kernel
def keep(state: Item, carried: int, kind: int, position: int, hop: int, sender: int, rounds: int) -> int:
    """A sender begins to keep a copy of a flight for the broker at a position; there is a free record."""
    number = state.free_kept
    kept, flight = kept_at(state.kept, number), flight_at(state.flights, carried)
    state.free_kept = kept.next
    state.free_kepts -= 1
    kept.born = state.kept_ever
    state.kept_ever += 1
    kept.wait, kept.flight, kept.kind, kept.position, kept.hop = state.timeout, carried, kind, position, hop
    kept.sender, kept.broker = sender, position_at(state.positions, position).broker
    kept.attempts = kept.copies = kept.answers = kept.timer = kept.handled = kept.over = kept.waits = 0
    kept.done, kept.rounds = KEEPING if _quality(state, flight) else SENT_ONCE, rounds
    flight.messages += 1
    return int(number)


@inlined
def take_copy(state: Item, number: int) -> int:
    """Take a free message for one more copy of what is kept."""
    kept, taken = kept_at(state.kept, number), take_message(state)
    message, carries = message_at(state.messages, taken), carried_at(state.carries, taken)
    message.flight, message.position, message.kind = kept.flight, kept.position, kept.kind
    carries.kept, carries.attempt = number, kept.attempts + ROUND * kept.rounds
    kept.attempts += 1
    kept.copies += 1
    return taken


@inlined
def _take_notice(state: Item, number: int, kind: int) -> int:
    """Take a free message for a timer or an acknowledgement."""
    taken = take_message(state)
    message = message_at(state.messages, taken)
    message.kind, message.flight, message.position = kind, NONE, NONE
    carried_at(state.carries, taken).kept = number
    return taken


@inlined
def identity_of(flight: Item, attempt: int) -> int:
    """The identity of a copy in keyed draws."""
    return int(flight.number + ATTEMPT * attempt)


@kernel
def set_timer(state: Item, number: int) -> None:
    """The sender waits for an acknowledgement, unless it has come already."""
    kept = kept_at(state.kept, number)
    if kept.done == KEEPING:
        kept.timer = 1
        schedule(state, _take_notice(state, number, TIMER), state.now + kept.wait)
        kept.wait = min(kept.wait * state.backoff, state.longest)


@kernel
def send_copy(state: Item, number: int) -> None:
    """A broker sends a copy to another, for the first time or, as all copies on detours count, again."""
    kept = kept_at(state.kept, number)
    taken = take_copy(state, number)
    attempt = int(carried_at(state.carries, taken).attempt)
    flight, place = flight_at(state.flights, kept.flight), position_at(state.positions, kept.position)
    window, size = window_at(state.windows, flight.window), flight.size
    relays = place.first != NONE if kept.kind == UP else place.users == 0
    if attempt > 0:
        window.retransmissions += 1
    elif kept.kind == UP:
        window.uplinks += 1
        window.uplink_bytes += size
    elif relays:
        window.external += 1
        window.external_bytes += size
    else:
        window.internal += 1
        window.internal_bytes += size
    if window.measured:
        tally, first = tally_at(state.tallies, kept.hop), first_row_of(state, flight.window)
        tally.messages += 1
        tally.bytes += size
        count_sent(state, first + kept.sender, size, 1)
        count_received(state, first + kept.broker, size, relays)
    hop, identity = position_at(state.positions, kept.hop), identity_of(flight, attempt)
    outcome = send_message(state, taken, identity, int(kept.sender), int(kept.broker), hop)
    if outcome != ON_ITS_WAY:
        lose_copy(state, taken, outcome)
    set_timer(state, number)


# -- what a receiver does


@kernel
def come(state: Item, taken: int) -> None:
    """A copy is at its broker."""
    message, carries = message_at(state.messages, taken), carried_at(state.carries, taken)
    kept = kept_at(state.kept, carries.kept)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    broker, size, below = int(kept.broker), int(flight.size), kept.kind == DOWN
    kind, due = (TREE, place.users > 0) if below else (UPLINK, False)
    if not state.takes_time:
        if kept.sender != NONE:
            trace_hop(state, taken, flight, broker, kind, due)
        message.arrived = state.now
        handle(state, taken)
        return
    stage, effort = 2, (0, 0, _users_again(state, kept, flight), size)
    if not kept.handled:
        stage = int(below)
        effort = (0, int(place.children), int(place.users), size) if below else uplink_effort(state, flight, place)
    service = service_time(state, identity_of(flight, carries.attempt), broker, stage, effort)
    if not accept(state, broker, taken, service):
        lose_copy(state, taken, FULL)
    elif kept.sender != NONE:
        trace_hop(state, taken, flight, broker, kind, due)


@kernel
def _users(state: Item, kept: Item) -> int:
    """The users of the receiver to whom the flight is due there, once it has been handled."""
    place = position_at(state.positions, kept.position)
    if kept.done == REROUTED:
        return 0
    if kept.kind == DOWN:
        return int(place.users)
    flight = flight_at(state.flights, kept.flight)
    if place.first != NONE or flight.version == NONE:
        return 0
    version = version_at(state.versions, flight.version)
    return int(position_at(state.positions, version.first).users) if version.size else 0


@inlined
def _users_again(state: Item, kept: Item, flight: Item) -> int:
    """The users who get what is handled once more."""
    return 0 if _quality(state, flight) == 2 else int(_users(state, kept))


@kernel
def handle(state: Item, taken: int) -> None:
    """The broker has served a copy."""
    message, carries = message_at(state.messages, taken), carried_at(state.carries, taken)
    number, attempt, arrived = int(carries.kept), int(carries.attempt), message.arrived
    kept = kept_at(state.kept, number)
    flight, place = flight_at(state.flights, kept.flight), position_at(state.positions, kept.position)
    free_message(state, taken)
    kept.copies -= 1
    if kept.handled:
        _repeat(state, kept, flight)
    else:
        kept.handled = 1
        if kept.kind == DOWN:
            deliver(state, flight, kept.position, place.depth, arrived)
            _hand_on(state, kept.flight, kept.position, kept.rounds)
        elif place.first != NONE:
            send_copy(state, keep(state, kept.flight, UP, place.first, kept.position, place.broker, kept.rounds))
        else:
            leave(state, kept.flight)
        _remember(state, kept, 1)
    _acknowledge(state, number, attempt)
    look(state, number)


@kernel
def leave(state: Item, carried: int) -> None:
    """A flight leaves its root."""
    flight = flight_at(state.flights, carried)
    become_due(state, flight)
    version = version_at(state.versions, flight.version)
    if version.size:
        deliver(state, flight, version.first, 0, state.now)
        _hand_on(state, carried, version.first, 0)


@kernel
def _hand_on(state: Item, carried: int, position: int, rounds: int) -> None:
    """Send copies to the children of a position."""
    here = position_at(state.positions, position)
    for child in range(here.first, here.first + here.children):
        send_copy(state, keep(state, carried, DOWN, child, child, here.broker, rounds))


@kernel
def _repeat(state: Item, kept: Item, flight: Item) -> None:
    """A broker has served a copy of what it had handled."""
    window, users = window_at(state.windows, flight.window), _users_again(state, kept, flight)
    window.duplicates += 1
    if users > 0:
        window.duplicate_deliveries += users
        if window.measured:
            traffic = traffic_at(state.traffic, first_row_of(state, flight.window) + kept.broker)
            traffic.copies += users
            traffic.copied_bytes += users * flight.size


@kernel
def _remember(state: Item, kept: Item, change: int) -> None:
    """A last broker begins or ceases to remember an identity."""
    if _quality(state, flight_at(state.flights, kept.flight)) == 2 and _users(state, kept) > 0:
        remembered = integer_at(state.remembered, kept.broker)
        remembered.value += change
        state.most_remembered = max(state.most_remembered, remembered.value)


@kernel
def _acknowledge(state: Item, number: int, attempt: int) -> None:
    kept = kept_at(state.kept, number)
    flight = flight_at(state.flights, kept.flight)
    if kept.done == SENT_ONCE:
        return
    if kept.sender == NONE:
        if kept.done == KEEPING:
            kept.done = ACKNOWLEDGED
        return
    window_at(state.windows, flight.window).acknowledgements += 1
    here, there = int(kept.broker), int(kept.sender)
    if state.cuts and is_cut(state, here, there):
        return
    if state.loss > 0.0:
        link = (state.brokers + here) * state.brokers + there
        if keyed_uniform(state.loss_key, identity_of(flight, attempt), link) < state.loss:
            return
    taken = _take_notice(state, number, ANSWER)
    if state.answers_take_time:
        message_at(state.messages, taken).arrived = answer_time(state, identity_of(flight, attempt), there, here)
    if state.faulty:
        sent_at(state.sent, taken).broker = here
    kept.answers += 1
    schedule(state, taken, state.now + hop_time(state, here, there))


# -- what becomes of copies


@kernel
def lose_copy(state: Item, taken: int, outcome: int) -> None:
    """A copy is lost, as `outcome` says; the sender may have another."""
    number = int(carried_at(state.carries, taken).kept)
    free_message(state, taken)
    lose_one(state, number, outcome)


@kernel
def lose_one(state: Item, number: int, outcome: int) -> None:
    """A copy of what is kept, or was sent once, is lost, as `outcome` says."""
    kept = kept_at(state.kept, number)
    kept.copies -= 1
    if kept.done == SENT_ONCE:
        kept.done = outcome
    look(state, number)


@kernel
def look(state: Item, number: int) -> None:
    """Look whether it is over, and with it its flight; and whether its record is free."""
    kept = kept_at(state.kept, number)
    if not kept.over and kept.done != KEEPING and kept.copies == 0:
        flight = flight_at(state.flights, kept.flight)
        if kept.handled:
            _remember(state, kept, -1)
        elif kept.kind == UP:
            end_short_of_root(state, flight, kept.done)
        else:
            place = position_at(state.positions, kept.position)
            count_pairs(state, flight.window, kept.done, place.below_brokers, place.below_users)
        kept.over = 1
        carry_no_further(state, kept.flight)
    if kept.over and not kept.timer and not kept.answers:
        kept.next, state.free_kept = state.free_kept, number
        state.free_kepts += 1
