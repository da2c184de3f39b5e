"""Messages of the compiled engine, hop by hop: allocated, sent from broker to broker, delivered, and freed."""

from __future__ import annotations

from sim.base.addresses import integer_rows, integers
from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.cells import cell_of, end_flood
from sim.brokers.data.compiled.lines import carry
from sim.brokers.data.compiled.records import (
    count_pairs,
    delivery_at,
    flight_at,
    hop_at,
    integer_at,
    message_at,
    note_at,
    place_at,
    position_at,
    real_at,
    sent_at,
    slot_at,
    small_at,
    tally_at,
    traffic_at,
    version_at,
    window_at,
)
from sim.brokers.data.compiled.state import NONE, OVER
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.exact_sums import add_exactly
from sim.brokers.statistics.ledger import DELIVERED
from sim.brokers.statistics.tallies import count_key
from sim.brokers.statistics.topic_delays import TO_BROKERS, TO_USERS, count_topic_delay, topic_row
from sim.overlay.pair_times import time_over


@inlined
def take_message(state: Item) -> int:
    """Take a free message, which must exist."""
    number = state.free_message
    state.free_message = message_at(state.messages, number).next
    state.free_messages -= 1
    return int(number)


@inlined
def free_message(state: Item, number: int) -> None:
    """Free a message."""
    message = message_at(state.messages, number)
    message.kind, message.next = NONE, state.free_message
    state.free_message = number
    state.free_messages += 1


@inlined
def trace_hop(state: Item, number: int, flight: Item, there: int, kind: int, due: bool) -> None:
    """Trace the hop of a message that has arrived at a broker, if its flight is traced; there is room."""
    if not flight.traced:
        return
    hop, sent = hop_at(state.traced, state.hops), sent_at(state.sent, number)
    state.hops += 1
    hop.sent, hop.received, hop.source, hop.destination = sent.time, state.now, sent.broker, there
    hop.publication = flight.number // state.fields if state.content else flight.number
    hop.kind, hop.due = kind, due


@inlined
def note(state: Item, flight: Item, what: int) -> None:
    """Add a note about a flight; there is room."""
    entry = note_at(state.notes, state.noted)
    state.noted += 1
    entry.number, entry.version, entry.window = flight.number, flight.version, flight.window
    entry.published, entry.time, entry.what, entry.hops = flight.published, state.now, what, flight.hops


@inlined
def end_message(state: Item, number: int) -> None:
    """End a message; its flight is over when no other message carries it."""
    carried = message_at(state.messages, number).flight
    free_message(state, number)
    carry_no_further(state, carried)


@inlined
def carry_no_further(state: Item, carried: int) -> None:
    """A message carries the flight no further, which is over when no other does."""
    flight = flight_at(state.flights, carried)
    flight.messages -= 1
    if flight.messages == 0:
        if flight.version != NONE:
            version_at(state.versions, flight.version).carried -= 1
            if state.floods:
                end_flood(state, flight)
        if state.content:
            note(state, flight, OVER)
        count_last(state, flight)
        integer_at(state.finished, flight.period).value += 1
        flight.messages = state.free_flight
        state.free_flight = carried
        state.free_flights += 1
        state.in_transit -= 1


@inlined
def first_row_of(state: Item, window: int) -> int:
    """The first row of the brokers' traffic in a measured window."""
    return int(integer_at(state.first_row, window).value)


@inlined
def count_received(state: Item, row: int, size: int, relays: bool) -> None:
    """Count a message of `size` bytes that is sent to a broker with this traffic row."""
    traffic = traffic_at(state.traffic, row)
    traffic.received += 1
    traffic.bytes_in += size
    if relays:
        traffic.relayed += 1


@inlined
def count_sent(state: Item, row: int, size: int, messages: int) -> None:
    """Count messages of `size` bytes each that a broker with this traffic row sends."""
    traffic = traffic_at(state.traffic, row)
    traffic.sent += messages
    traffic.bytes_out += messages * size


@inlined
def send_message(state: Item, number: int, publication: int, here: int, there: int, hop: Item) -> int:
    """Send a message with a publication from broker to broker; `hop` is the position with the hop's time and link.

    Returns what became of it.
    """
    if state.traces or state.faulty:
        sent = sent_at(state.sent, number)
        sent.time, sent.broker = state.now, here
    return carry(state, number, publication, here, there, hop)


@kernel
def _add(state: Item, window: int, row: int, value: float) -> None:
    """Add to an exact sum of a window."""
    add_exactly(integers(state.sums + 24 * (window * rk.SUMS + row), 3), value)


@kernel
def count_last(state: Item, flight: Item) -> None:
    """Count the last delivery of a flight that is over, if there is any."""
    if flight.last >= 0.0:
        window_at(state.windows, flight.window).reached += 1
        _add(state, int(flight.window), rk.LAST_DELIVERY, flight.last)
        flight.last = -1.0


@kernel
def hop_time(state: Item, here: int, there: int) -> float:
    """The time (s) of a hop from a broker to another, as in `sim.overlay.pair_times.time_between`."""
    if here == there:
        return 0.0
    if not state.on_sphere:
        row = small_at(state.group, here).value * state.groups
        return float(real_at(state.between, row + small_at(state.group, there).value).value)
    a, b = place_at(state.places, here), place_at(state.places, there)
    return time_over(a.x - b.x, a.y - b.y, a.z - b.z, state.base, state.per_arc)


@kernel
def _hand_over(state: Item, flight: Item, broker: int, arrived: float) -> None:
    """The broker passes the publication on to its users."""
    delivery = delivery_at(state.deliveries, state.handed)
    state.handed += 1
    delivery.served, delivery.arrived, delivery.rooted = state.now, arrived, flight.rooted
    delivery.number, delivery.broker, delivery.audience = flight.number, broker, flight.version


@inlined
def deliver(state: Item, flight: Item, position: int, depth: int, arrived: float) -> None:
    """The broker at this position has served the publication, which arrived there at a time (s) after `hops` hops below the root."""
    if state.content:
        cell = cell_of(state, flight, position)
        cell.arrived, cell.served = arrived, state.now
        return
    place, now, number = position_at(state.positions, position), state.now, int(flight.window)
    users, window = int(place.users), window_at(state.windows, number)
    if users == 0:
        return
    delay, tree_delay = now - flight.published, now - flight.rooted
    tally_at(state.tallies, position).delivered += 1
    window.tree_hops += depth
    if window.measured:
        traffic = traffic_at(state.traffic, first_row_of(state, number) + place.broker)
        traffic.delivered += 1
        traffic.copies += users
        traffic.copied_bytes += users * flight.size
        largest = real_at(state.maxima, 0)
        largest.value = max(largest.value, delay)
    if state.hands_over:
        _hand_over(state, flight, int(place.broker), arrived)
        users = 0
    if state.by_topic and window.measured:
        row = topic_row(state.topics, slot_at(state.slots, flight.slot).topic)
        count_topic_delay(row, TO_BROKERS, 1, delay)
        count_topic_delay(row, TO_USERS, users, delay)
    count_pairs(state, number, DELIVERED, 1, users)
    _add(state, number, rk.USER_NOTIFICATION_DELAY, delay * users)
    _add(state, number, rk.USER_TREE_DELAY, tree_delay * users)
    _add(state, number, rk.NOTIFICATION_DELAY, delay)
    _add(state, number, rk.TREE_DELAY, tree_delay)
    flight.last = delay
    if now > arrived:
        _add(state, number, rk.LAST_SERVICE, now - arrived)
    table = integer_rows(state.delays, state.delay_slots, 3)
    state.delay_keys += count_key(table, number * rk.BINS + rk.delay_bin(delay), 1, users)
    direct = hop_time(state, flight.origin, place.broker)
    if direct > 0.0:
        window.stretched += 1
        _add(state, number, rk.STRETCH, (arrived - flight.published) / direct)
