"""Floods of the compiled engine, as in `sim.brokers.data.rules.FloodRule`: the first copy is sent on to all neighbours."""

from __future__ import annotations

from sim.base.arrays import Item
from sim.base.compiled import kernel
from sim.brokers.data.compiled.cells import cell_of, lost_there
from sim.brokers.data.compiled.hops import (
    count_received,
    count_sent,
    deliver,
    end_message,
    first_row_of,
    send_message,
    take_message,
    trace_hop,
)
from sim.brokers.data.compiled.outages import stops
from sim.brokers.data.compiled.records import flight_at, message_at, position_at, tally_at, version_at, window_at
from sim.brokers.data.compiled.servers import accept, service_time
from sim.brokers.data.compiled.state import (
    ACCEPTED,
    ARRIVED,
    DEPTH,
    FLOODED,
    FULL,
    ON_ITS_WAY,
    REPEATED,
)
from sim.brokers.statistics.hops import FLOOD


@kernel
def judge_flooded(state: Item, message: Item) -> None:
    """Classify a copy before a broker makes room for it: a duplicate stays one even if making room drops the first copy."""
    flight, link = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    if cell_of(state, flight, link.first).state & ARRIVED:
        message.kind = REPEATED


@kernel
def arrive_flooded(state: Item, number: int) -> None:
    """A copy has arrived over the link at the message's position: the first one, or a duplicate."""
    message = message_at(state.messages, number)
    flight, link = flight_at(state.flights, message.flight), position_at(state.positions, message.position)
    outcome = stops(state, number, link.broker)
    if outcome != ON_ITS_WAY:
        refuse_flooded(state, flight, link.first, False, outcome)
        end_message(state, number)
        return
    cell = cell_of(state, flight, link.first)
    first, depth = (
        message.kind == FLOODED and not cell.state & ARRIVED,
        cell_of(state, flight, link.children).state // DEPTH + 1,
    )
    if state.takes_time:
        sender = int(position_at(state.positions, link.children).broker)
        copies = int(position_at(state.positions, link.first).children) - 1
        if depth >= version_at(state.versions, flight.version).hop_limit:
            copies = 0
        effort = (0, copies, int(link.users), int(flight.size)) if first else (0, 0, 0, int(flight.size))
        service = service_time(state, flight.number, int(link.broker), 1 if first else 2 + sender, effort)
        message.kind = FLOODED if first else REPEATED
        if not accept(state, link.broker, number, service):
            refuse_flooded(state, flight, link.first, False, FULL)
            end_message(state, number)
            return
    trace_hop(state, number, flight, link.broker, FLOOD, link.users > 0)
    if first:
        cell.sender, cell.state = link.children, cell.state | ARRIVED | depth * DEPTH
    else:
        window_at(state.windows, flight.window).duplicates += 1
    if state.takes_time:
        return
    if first:
        spread(state, number, state.now)
    else:
        end_message(state, number)


@kernel
def refuse_flooded(state: Item, flight: Item, place: int, first: bool, outcome: int) -> None:
    """A copy is lost to or at a place, as `outcome` says; of the first one, which had waited: another may be the first yet."""
    cell = cell_of(state, flight, place)
    if first:
        cell.state = cell.state % DEPTH & ~ARRIVED
    cell.state |= lost_there(outcome)
    flight.missed = 1


@kernel
def spread(state: Item, number: int, arrived: float) -> None:
    """The broker to which the message's link leads has served the first copy."""
    message = message_at(state.messages, number)
    flight, place = flight_at(state.flights, message.flight), position_at(state.positions, message.position).first
    cell = cell_of(state, flight, place)
    cell.state |= ACCEPTED
    deliver(state, flight, place, cell.state // DEPTH, arrived)
    flood_on(state, number, place, flight)


@kernel
def flood_on(state: Item, number: int, place: int, flight: Item) -> None:
    """Send copies from a place to all neighbours but the one that the first came from; the message is used again for the first.

    None is sent if that has reached the hop limit.
    """
    here, cell = position_at(state.positions, place), cell_of(state, flight, place)
    sender, stays = cell.sender, cell.state // DEPTH >= version_at(state.versions, flight.version).hop_limit
    window, size, carried = (
        window_at(state.windows, flight.window),
        flight.size,
        message_at(state.messages, number).flight,
    )
    sent, taken, onward = 0, number, int(here.children)
    for position in range(here.first, here.first + here.children):
        onward -= int(position_at(state.positions, position).first == sender)
    if stays and onward > 0:
        flight.missed = 1
    if stays or onward == 0:
        end_message(state, number)
        return
    flight.messages += onward - 1
    first = 0
    if window.measured:
        first = first_row_of(state, flight.window)
        count_sent(state, first + here.broker, size, onward)
    for position in range(here.first, here.first + here.children):
        link = position_at(state.positions, position)
        if link.first == sender:
            continue
        if sent > 0:
            taken = take_message(state)
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
            count_received(state, first + link.broker, size, link.users == 0)
        outcome = send_message(state, taken, flight.number, int(here.broker), link.broker, link)
        if outcome != ON_ITS_WAY:
            refuse_flooded(state, flight, link.first, False, outcome)
            end_message(state, taken)
