"""Brokers that take time, compiled: what `sim.brokers.fabric.stations.Server` does, to the same bits."""

from __future__ import annotations

from sim.base.compiled import kernel
from sim.brokers.data.compiled.calendar import schedule
from sim.brokers.data.compiled.state import NONE, REQUEST, SERVED, Item, message_at, server_at


@kernel
def integrate(server: Item, now: float) -> None:
    """Account for the time up to now."""
    if now > server.since:
        server.waiting_area += (server.controls + server.waiting) * (now - server.since)
        if server.serving != NONE:
            server.busy += now - server.since
        server.since = now


@kernel
def catch_up(server: Item, now: float) -> None:
    """The server has been idle up to now."""
    server.refused -= now - server.done_at
    if server.refused <= 0.0:
        server.refused, server.behind_since, server.squares = 0.0, now, 0.0


@kernel
def full(state: Item, broker: int) -> bool:
    """Whether the broker drops a publication that arrives now."""
    server = server_at(state.servers, broker)
    return bool(state.bound >= 0 and server.serving != NONE and server.waiting >= state.bound)


@kernel
def _serve(state: Item, broker: int, number: int, service: float) -> None:
    server, message = server_at(state.servers, broker), message_at(state.messages, number)
    server.serving = number
    if message.arrived >= state.warm_up:
        server.served += 1
        server.wait += state.now - message.arrived
    server.done_at = state.now + service
    message.kind += SERVED
    schedule(state, number, server.done_at)


@kernel
def accept(state: Item, broker: int, number: int, service: float) -> bool:
    """Have the broker serve a message that arrives now and needs `service` seconds; false where it drops it."""
    server, message, now = server_at(state.servers, broker), message_at(state.messages, number), state.now
    message.arrived = now
    integrate(server, now)
    if server.serving == NONE:
        catch_up(server, now)
        server.squares += service * service
        _serve(state, broker, number, service)
        return True
    server.squares += service * service
    message.time, message.next = service, NONE
    if message.kind == REQUEST:
        if server.controls == 0:
            server.first_control = number
        else:
            message_at(state.messages, server.last_control).next = number
        server.last_control = number
        server.controls += 1
    elif state.bound < 0 or server.waiting < state.bound:
        if server.waiting == 0:
            server.first = number
        else:
            message_at(state.messages, server.last).next = number
        server.last = number
        server.waiting += 1
    else:
        server.refused += service
        if now >= state.warm_up:
            server.dropped += 1
        return False
    return True


@kernel
def served(state: Item, broker: int) -> None:
    """The broker has served its message, and takes the next one."""
    server = server_at(state.servers, broker)
    integrate(server, state.now)
    message_at(state.messages, server.serving).kind -= SERVED
    server.serving = NONE
    if server.controls > 0:
        number = server.first_control
        server.first_control = message_at(state.messages, number).next
        server.controls -= 1
    elif server.waiting > 0:
        number = server.first
        server.first = message_at(state.messages, number).next
        server.waiting -= 1
    else:
        return
    _serve(state, broker, number, message_at(state.messages, number).time)
