"""Crashes and restarts of brokers in the compiled engine where there is a guarantee, as in `sim.brokers.data.kept`.

Without one, a crash ends publications, which nobody keeps (`sim.brokers.data.compiled.crash`); here it ends copies and
acknowledgements.
"""

from __future__ import annotations

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.brokers.data.compiled.guaranteed import end_answer, goes_round, is_stale, lacks_room_for, send_again
from sim.brokers.data.compiled.kept import look, lose_copy, lose_one
from sim.brokers.data.compiled.records import carried_at, in_service_at, kept_at, message_at, server_at
from sim.brokers.data.compiled.servers import integrate, remove
from sim.brokers.data.compiled.state import ANSWER, CHECK, CRASHED, DETOUR, DONE, GONE, NONE, REQUEST, SERVED


@kernel
def _lose_answers(state: Item, server: Item, first: int) -> int:
    """Lose the acknowledgements among messages that wait at a broker that crashes; returns the first of the others."""
    before, number = NONE, first
    while number != NONE:
        message = message_at(state.messages, number)
        following = int(message.next)
        if message.kind != ANSWER:
            before = number
        else:
            if before == NONE:
                first = following
            else:
                message_at(state.messages, before).next = following
            server.controls -= 1
            end_answer(state, number, False)
        number = following
    return first


@kernel
def _lose_served_answers(state: Item, server: Item, broker: int) -> None:
    """Lose those in service; messages on the calendar remain, and carry nothing."""
    place = 0
    while place < server.serving:
        number = int(in_service_at(state.in_service, broker * state.servers_each + place).message)
        message = message_at(state.messages, number)
        if message.kind != SERVED + ANSWER:
            place += 1
            continue
        remove(state, broker, number)
        server.serving -= 1
        message.kind = GONE
        kept_number = int(carried_at(state.carries, number).kept)
        kept_at(state.kept, kept_number).answers -= 1
        look(state, kept_number)


@kernel
def lose_copies(states: Items, broker: int, now: float) -> int:
    """Lose the copies at a broker that crashes; returns CHECK if the slot of one has to be updated first."""
    state = states[0]
    state.now = now
    server, place = server_at(state.servers, broker), 0
    integrate(server, now)
    if state.answers_take_time:
        server.first = _lose_answers(state, server, server.first)
        server.first_control = _lose_answers(state, server, server.first_control)
        _lose_served_answers(state, server, broker)
    while place < server.serving:
        number = int(in_service_at(state.in_service, broker * state.servers_each + place).message)
        message = message_at(state.messages, number)
        if message.kind == SERVED + REQUEST:
            place += 1
            continue
        kept_number = int(carried_at(state.carries, number).kept)
        if is_stale(state, kept_at(state.kept, kept_number)):
            return CHECK
        remove(state, broker, number)
        server.serving -= 1
        message.kind = GONE
        lose_one(state, kept_number, CRASHED)
    before, number = NONE, int(server.first)
    while number != NONE:
        following = int(message_at(state.messages, number).next)
        if message_at(state.messages, number).kind == REQUEST:
            before = number
        else:
            if is_stale(state, kept_at(state.kept, carried_at(state.carries, number).kept)):
                return CHECK
            if before == NONE:
                server.first = following
            else:
                message_at(state.messages, before).next = following
            lose_copy(state, number, CRASHED)
        number = following
    return DONE


@kernel
def keep_no_longer(states: Items, number: int, outcome: int, now: float) -> int:
    """A broker ceases to keep something, with this outcome if it gets lost; returns CHECK if its slot has to be updated first."""
    state = states[0]
    kept = kept_at(state.kept, number)
    if is_stale(state, kept):
        return CHECK
    state.now = now
    kept.done = outcome
    look(state, number)
    return DONE


@kernel
def send_at_restart(states: Items, number: int, now: float) -> int:
    """A broker sends again what it keeps; returns why it cannot yet."""
    state, kept = states[0], kept_at(states[0].kept, number)
    code = lacks_room_for(state)
    if code != DONE:
        return code
    if is_stale(state, kept):
        return CHECK
    if goes_round(state, kept, now):
        state.stopped_at = number
        return DETOUR
    state.now = now
    send_again(state, number)
    return DONE
