"""Compiled stations, with results identical to `sim.brokers.fabric.stations.Server` and `ServiceTimes`."""

from __future__ import annotations

import math

from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_exponential, keyed_gamma, keyed_normal, keyed_uniform
from sim.brokers.data.compiled.calendar import schedule
from sim.brokers.data.compiled.records import flight_at, in_service_at, message_at, outage_at, real_at, server_at
from sim.brokers.data.compiled.state import DETERMINISTIC, EXPONENTIAL, GAMMA, LOGNORMAL, NONE, REQUEST, SERVED
from sim.brokers.fabric.overflow import dropped
from sim.brokers.fabric.service import ANSWER_STAGE

# -- service times


@inlined
def _factor(state: Item, publication: int, place: int) -> float:
    """The drawn factor of a service time, with mean 1."""
    key = state.service_key
    if state.service_kind == EXPONENTIAL:
        return keyed_exponential(key, publication, place)
    if state.service_kind == GAMMA:
        return float(keyed_gamma(key, publication, place, state.shape) / state.shape)
    if state.service_kind == LOGNORMAL:
        return math.exp(state.sigma * keyed_normal(key, publication, place) - state.variance / 2)
    drawn, low, high = keyed_uniform(key, publication, place), 0, state.shares_many
    while low < high:  # the first share above it
        middle = (low + high) // 2
        if drawn < real_at(state.shares, middle).value:
            high = middle
        else:
            low = middle + 1
    return float(real_at(state.relative, low).value)


@inlined
def service_time(state: Item, publication: int, broker: int, stage: int, effort: tuple[int, int, int, int]) -> float:
    """The service time (s) of a publication at this broker and stage of its way; `effort` has the fields of Effort."""
    increments, copies, users, size = effort
    mean = real_at(state.service, broker).value
    if state.matches:
        mean += increments * real_at(state.matching, broker).value
    if state.weighs:
        mean = mean + copies * real_at(state.send, broker).value
        mean = mean + users * real_at(state.send_client, broker).value + size * real_at(state.per_byte, broker).value
    seconds = float(mean)
    if state.service_kind != DETERMINISTIC:
        seconds = float(mean * _factor(state, publication, broker << 16 | stage))
    return seconds * float(outage_at(state.outages, broker).slowed) if state.faulty else seconds


@kernel
def answer_time(state: Item, publication: int, broker: int, source: int) -> float:
    """The service time (s) at a broker of an acknowledgement from another, if the broker is not slow."""
    seconds = float(real_at(state.acknowledgement, broker).value)
    if state.service_kind == DETERMINISTIC:
        return seconds
    return float(seconds * _factor(state, publication, broker << 16 | ANSWER_STAGE + source))


# -- servers and queues


@inlined
def integrate(server: Item, now: float) -> None:
    """Integrate the statistics up to now."""
    if now > server.since:
        server.waiting_area += (server.controls + server.waiting) * (now - server.since)
        server.busy += server.serving * (now - server.since)
        server.since = now


@kernel
def _work_off(state: Item, server: Item, now: float) -> None:
    """Let idle servers do refused work, since a service last began or ended."""
    server.refused = max(server.refused - (state.servers_each - server.serving) * (now - server.changed_at), 0.0)
    server.changed_at = now


@inlined
def catch_up(state: Item, broker: int, now: float) -> None:
    """A server of the broker has been idle up to now."""
    server = server_at(state.servers, broker)
    _work_off(state, server, now)
    if server.refused == 0.0:
        server.behind_since, server.squares = now, 0.0
        for place in range(server.serving):
            service = in_service_at(state.in_service, broker * state.servers_each + place).service
            server.squares += service * service


@inlined
def _fits(state: Item, server: Item, size: int) -> bool:
    """Whether a publication of `size` bytes may wait in addition to those waiting."""
    return bool(
        (state.bound < 0 or server.waiting < state.bound)
        and (state.bytes_bound < 0 or server.bytes + size <= state.bytes_bound)
    )


@kernel
def lacks_room(state: Item, broker: int, size: int) -> bool:
    """Whether a publication that arrives now has to wait without room in the queue."""
    server = server_at(state.servers, broker)
    return bool(server.serving == state.servers_each and not _fits(state, server, size))


@kernel
def gets_room(state: Item, size: int) -> bool:
    """Whether waiting publications are dropped to make room for one of `size` bytes."""
    return bool(state.makes_room and state.bound != 0 and (state.bytes_bound < 0 or size <= state.bytes_bound))


@kernel
def next_dropped(state: Item, broker: int) -> int:
    """The publication that makes room for one that arrives; at least one waits."""
    server = server_at(state.servers, broker)
    number, before = server.first, dropped(state.overflow, server.waiting)
    while before > 0 or message_at(state.messages, number).kind >= REQUEST:
        before -= message_at(state.messages, number).kind < REQUEST
        number = message_at(state.messages, number).next
    return int(number)


@kernel
def drop_from_queue(state: Item, broker: int, number: int) -> None:
    """Take a publication that waits out of the queue, as it is dropped."""
    server, message = server_at(state.servers, broker), message_at(state.messages, number)
    integrate(server, state.now)
    before, here = NONE, int(server.first)
    while here != number:
        before, here = here, int(message_at(state.messages, here).next)
    if before == NONE:
        server.first = message.next
    else:
        message_at(state.messages, before).next = message.next
    if server.last == number:
        server.last = before
    server.waiting -= 1
    server.bytes -= flight_at(state.flights, message.flight).size
    _refuse(state, server, message.time)


@kernel
def _refuse(state: Item, server: Item, service: float) -> None:
    server.refused += service
    if state.now >= state.warm_up:
        server.dropped += 1


@inlined
def _serve(state: Item, broker: int, number: int, service: float) -> None:
    server, message = server_at(state.servers, broker), message_at(state.messages, number)
    taken = in_service_at(state.in_service, broker * state.servers_each + server.serving)
    taken.message, taken.service = number, service
    server.serving += 1
    if message.arrived >= state.warm_up:
        wait = state.now - message.arrived
        server.served += 1
        server.wait += wait
        if message.kind >= REQUEST:
            server.control_served += 1
            server.control_wait += wait
    message.kind += SERVED
    schedule(state, number, state.now + service)


@inlined
def _arrive(state: Item, server: Item, service: float) -> None:
    """Account for arriving work (s)."""
    server.squares += service * service
    if state.now >= state.warm_up:
        server.offered += service


@inlined
def _count_waiting(server: Item) -> None:
    server.most_waiting = max(server.most_waiting, server.controls + server.waiting)


@inlined
def accept(state: Item, broker: int, number: int, service: float) -> bool:
    """Accept a message that arrives now and needs `service` seconds; false if the broker drops it."""
    server, message, now = server_at(state.servers, broker), message_at(state.messages, number), state.now
    message.arrived = now
    integrate(server, now)
    if server.serving < state.servers_each:
        idle = now - server.changed_at
        catch_up(state, broker, now)
        if state.wakes_up:
            wake_up, half, always = real_at(state.wake_up, broker).value, state.wake_up_half, state.always_woken
            share = idle / (idle + half) if half > 0.0 else 1.0
            service += wake_up * (always + (1.0 - always) * share) + service * state.slowdown * share
        _arrive(state, server, service)
        _serve(state, broker, number, service)
        return True
    _arrive(state, server, service)
    message.time, message.next = service, NONE
    if message.kind >= REQUEST:
        server.controls += 1
        _count_waiting(server)
        if not state.fifo:
            if server.first_control == NONE:
                server.first_control = number
            else:
                message_at(state.messages, server.last_control).next = number
            server.last_control = number
            return True
    else:
        size = flight_at(state.flights, message.flight).size
        if not _fits(state, server, size):
            _refuse(state, server, service)
            return False
        server.waiting += 1
        server.bytes += size
        _count_waiting(server)
    if server.first == NONE:
        server.first = number
    else:
        message_at(state.messages, server.last).next = number
    server.last = number
    return True


@inlined
def served(state: Item, broker: int, number: int) -> None:
    """The broker has served a message, and takes the next one."""
    server = server_at(state.servers, broker)
    integrate(server, state.now)
    message_at(state.messages, number).kind -= SERVED
    if state.servers_each == 1:
        server.changed_at = state.now
    else:
        _work_off(state, server, state.now)
        remove(state, broker, number)
    server.serving -= 1
    if server.first_control != NONE:
        following = server.first_control
        server.first_control = message_at(state.messages, following).next
    elif server.first != NONE:
        following = server.first
        server.first = message_at(state.messages, following).next
    else:
        return
    message = message_at(state.messages, following)
    if message.kind >= REQUEST:
        server.controls -= 1
    else:
        server.waiting -= 1
        server.bytes -= flight_at(state.flights, message.flight).size
    _serve(state, broker, following, message.time)


@kernel
def remove(state: Item, broker: int, number: int) -> None:
    """Remove a message from those in service, which keep their order."""
    first, found = broker * state.servers_each, False
    for place in range(first, first + server_at(state.servers, broker).serving - 1):
        found = found or in_service_at(state.in_service, place).message == number
        if found:
            following = in_service_at(state.in_service, place + 1)
            here = in_service_at(state.in_service, place)
            here.message, here.service = following.message, following.service
