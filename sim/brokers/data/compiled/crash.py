"""Crashes of brokers in the compiled engine, with their messages, as in `sim.brokers.fabric.stations.Server.crash`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.hops import carry_no_further, end_message, free_message
from sim.brokers.data.compiled.loop import stale
from sim.brokers.data.compiled.records import flight_at, in_service_at, message_at, server_at
from sim.brokers.data.compiled.servers import integrate, remove
from sim.brokers.data.compiled.state import CHECK, CRASHED, DONE, GONE, NONE, REQUEST, SERVED, UP
from sim.brokers.data.compiled.ways import lose_held


@kernel
def _has_to_ask(state: Item, number: int) -> bool:
    """Whether the slot of a lost publication has to be updated first."""
    message = message_at(state.messages, number)
    flight = flight_at(state.flights, message.flight)
    return bool(message.kind % SERVED == UP and stale(state, flight.slot, flight.period))


@kernel
def lose_publications(states: Items, broker: int, now: float) -> int:
    """Lose the broker's publications; returns CHECK if the slot of one has to be updated first."""
    state = states[0]
    state.now = now
    server, place = server_at(state.servers, broker), 0
    integrate(server, now)
    while place < server.serving:
        number = in_service_at(state.in_service, broker * state.servers_each + place).message
        message = message_at(state.messages, number)
        if message.kind == SERVED + REQUEST:
            place += 1
            continue
        if _has_to_ask(state, number):
            return CHECK
        lose_held(state, number, CRASHED)
        remove(state, broker, number)
        server.serving -= 1
        message.kind = GONE
        carry_no_further(state, message.flight)
    before, number = NONE, server.first
    while number != NONE:
        message = message_at(state.messages, number)
        following = message.next
        if message.kind == REQUEST:
            before = number
        else:
            if _has_to_ask(state, number):
                return CHECK
            if before == NONE:
                server.first = following
            else:
                message_at(state.messages, before).next = following
            lose_held(state, number, CRASHED)
            end_message(state, number)
        number = following
    return DONE


@kernel
def take_controls(states: Items, broker: int, now: float) -> NDArray[np.int64]:
    """Remove the control messages, the only ones left, from a crashed broker; returns their numbers."""
    state = states[0]
    server = server_at(state.servers, broker)
    found = np.empty(server.serving + server.controls, np.int64)
    for place in range(server.serving):
        message = message_at(
            state.messages, in_service_at(state.in_service, broker * state.servers_each + place).message
        )
        found[place], message.kind = message.flight, GONE
    many = server.serving
    for first in (server.first_control, server.first):
        number = first
        while number != NONE:
            following = message_at(state.messages, number).next
            found[many] = message_at(state.messages, number).flight
            many += 1
            free_message(state, number)
            number = following
    state.controls -= many
    server.serving = server.controls = server.waiting = server.bytes = 0
    server.first_control = server.first = NONE
    server.refused = server.squares = 0.0
    server.changed_at = server.behind_since = now
    return found
