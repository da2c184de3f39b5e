"""Compiled legs from due brokers to their users: each leg takes messages in order of arrival, in one pass.

Legs affect neither each other nor brokers, so each is brought up to date when a message for its user arrives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_normal, keyed_uniform
from sim.brokers.statistics.ledger import DELIVERED, IN_FLIGHT, LOST
from sim.brokers.users.leg_queue_kernels import (
    append,
    count_outcome,
    forget_acknowledged,
    give_back,
    hand_over,
    lacking,
    leg_window,
    lose,
    lose_caught,
    lose_waiting,
    take_first,
    way_of,
)
from sim.brokers.users.leg_record import (
    BACK,
    CUT_OFF,
    DROP_OLDEST,
    FINISHED,
    NO_MESSAGE,
    leg_at,
    leg_integer_at,
    leg_message_at,
    leg_speed_at,
)
from sim.brokers.users.quality_kernels import break_off, quality_of, send_by_quality, settle_answered
from sim.brokers.users.session_kernels import (
    come_back,
    end_backlog,
    go_away,
    go_on,
    hold,
    lose_old,
    miss,
    next_absence,
    wait_in_session,
)
from sim.workloads.format.workload import SESSION_RESUMED

_SLOW_CLIENT, _DISCONNECTED, _TOO_OLD = LOST["slow_client"], LOST["disconnected"], LOST["message_expired"]


@kernel
def slow_ones(legs: Items, key: int, share: float) -> None:
    """Draw the slow legs."""
    for user in range(legs.size):
        legs[user].slow = keyed_uniform(key, user, 0) < share


@kernel
def first_absences(states: Items, legs: Items) -> None:
    """Set the first absence of each user as its next one."""
    for user in range(legs.size):
        next_absence(states[0], leg_at(states[0].legs, user))


@kernel
def _start(state: Item, leg: Item, ready: float, quality: int) -> float:
    """When the next message, ready at some time (s) and of some quality of service, can be sent (s)."""
    start, window = max(ready, leg.free), leg_speed_at(state.speeds, leg.slow).window
    if state.qualities:
        if quality > 0 and 0 < window <= leg.unacknowledged:
            start = max(start, leg_message_at(state.messages, leg.first_sent).acknowledged)
    elif window > 0 and leg.unacknowledged + leg.caught >= window:
        if leg.unacknowledged == 0:
            return np.inf
        start = max(start, leg_message_at(state.messages, leg.first_sent).time)
    return float(start)


@kernel
def _send(state: Item, user: int, leg: Item, number: int, start: float) -> None:
    """Send a message to the user at a time (s), and count its outcome."""
    if state.qualities:
        send_by_quality(state, user, leg, number, start)
        return
    message, speed = leg_message_at(state.messages, number), leg_speed_at(state.speeds, leg.slow)
    forget_acknowledged(state, leg, start)
    leg.free = start + message.size / speed.rate
    latency = back = speed.latency + way_of(state, leg, message, start)
    if state.jitter > 0.0:
        sigma = state.jitter
        latency *= math.exp(sigma * keyed_normal(state.jitter_key, message.number, user) - sigma * sigma / 2)
    arrival = max(leg.free + latency, leg.last)
    leg.last = arrival
    if arrival >= leg.leaves:
        if leg.caught == 0:
            leg.first_caught = number
        else:
            leg_message_at(state.messages, leg.end_caught).next = number
        leg.end_caught = number
        leg.caught += 1
        return
    if arrival >= state.horizon:
        count_outcome(state, message.window, IN_FLIGHT)
    else:
        hand_over(state, user, message, arrival, start - message.time)
    if speed.window == 0:
        give_back(state, number)
        return
    message.time = arrival + back
    if leg.unacknowledged == 0:
        leg.first_sent = number
    else:
        leg_message_at(
            state.messages, leg.end_sent
        ).next = number  # none counts as acknowledged before those ahead of it
    leg.end_sent = number
    leg.unacknowledged += 1


@kernel
def _drain(state: Item, user: int, leg: Item, until: float) -> int:
    """Send the waiting messages that can be sent up to a time (s); returns what lacks room, if anything."""
    while leg.waiting > 0 and leg.held == 0 and leg.cut == 0:
        message = leg_message_at(state.messages, leg.first)
        came = message.time
        start = _start(state, leg, max(came, leg.ready) if leg.backlog else came, message.quality)
        if start > until or start >= leg.leaves:
            break
        if state.qualities:
            lacks = settle_answered(state, user, leg, start)
            if lacks != FINISHED:
                return int(lacks)
        if leg.backlog and came + state.oldest < start:
            lose(state, take_first(state, leg), _TOO_OLD)
            leg.free = max(leg.free, start)
        else:
            lacks = lacking(state)
            if lacks not in (FINISHED, NO_MESSAGE):
                return lacks
            leg.ready = start + state.gap
            _send(state, user, leg, take_first(state, leg), start)
        end_backlog(state, leg, start)
    return FINISHED


@kernel
def _answer(state: Item, user: int, leg: Item, until: float) -> int:
    """Take what the user has answered from what is in flight, or all if it leaves by then; returns what lacks room, if anything."""
    if leg.leaves <= until:
        return int(break_off(state, user, leg, leg.leaves, leg.leaves))
    return int(settle_answered(state, user, leg, until))


@kernel
def _catch_up(state: Item, user: int, leg: Item, until: float) -> int:
    """Bring a leg up to a time (s), with the user's absences; returns what lacks room, if anything."""
    while True:
        if leg.away == 0:
            lacks = _drain(state, user, leg, until) if leg.waiting > 0 else FINISHED
            if lacks == FINISHED and state.qualities:
                lacks = _answer(state, user, leg, until)
            if lacks != FINISHED or leg.leaves > until:
                return int(lacks)
            go_away(state, leg)
        if leg.returns > until:
            return FINISHED
        come_back(state, leg)


@kernel
def _has_room(state: Item, leg: Item, size: int) -> bool:
    """Whether one more message may wait."""
    if state.bound >= 0 and leg.waiting >= state.bound:
        return False
    return bool(state.bytes_bound < 0 or leg.bytes + size <= state.bytes_bound)


@kernel
def _cut_off(state: Item, leg: Item) -> None:
    """Lose all that waits, and begin with an empty window."""
    lose_waiting(state, leg, _DISCONNECTED)
    lose_caught(state, leg, _DISCONNECTED)
    leg.backlog = 0
    forget_acknowledged(state, leg, np.inf)


@kernel
def _make_room(state: Item, leg: Item, size: int, now: float) -> int:
    """The outcome of a message that has to wait without room: DELIVERED if room was made, otherwise a cause of loss."""
    if state.overflow == DROP_OLDEST and state.bound != 0 and (state.bytes_bound < 0 or size <= state.bytes_bound):
        while not _has_room(state, leg, size):
            lose(state, take_first(state, leg), _SLOW_CLIENT)
        leg.free = max(leg.free, now)  # the next one may wait for less, but not be sent before
        return DELIVERED
    if state.overflow != CUT_OFF:
        return _SLOW_CLIENT
    _cut_off(state, leg)
    leg.cut_until = now + state.reconnect_after
    leg_integer_at(state.disconnects, leg_window(state, now)).value += 1
    return _DISCONNECTED


@kernel
def _taken(state: Item, handed: Item, quality: int) -> int:
    """The number of a new message, which is in no queue."""
    number = state.free
    message = leg_message_at(state.messages, number)
    state.free = message.next
    state.frees -= 1
    message.time, message.arrived, message.published = handed.served, handed.arrived, handed.published
    message.rooted, message.size, message.number = handed.rooted, handed.size, handed.number
    message.window, message.topic, message.broker, message.up = handed.window, handed.topic, handed.broker, handed.up
    message.kind, message.kept, message.quality = handed.kind, handed.kept or quality > 0, quality
    message.attempts = message.got = message.released = 0
    return int(number)


@kernel
def _come(state: Item, user: int, leg: Item, handed: Item) -> int:
    """Take a served message for the user, on an up-to-date leg with room for one more record; returns what lacks room, if anything."""
    now, quality = handed.served, 0
    if handed.kind == BACK:
        if leg.held:
            go_on(leg, now)
        return FINISHED
    if state.qualities:
        quality = quality_of(state, leg, user, handed.quality, handed.topic, now)
    if leg.away or leg.held:
        miss(state, leg, _taken(state, handed, quality), now, leg.session if leg.away else SESSION_RESUMED)
        return FINISHED
    if now < leg.cut_until:
        count_outcome(state, handed.window, _DISCONNECTED)
        return FINISHED
    if leg.backlog:
        wait_in_session(state, leg, _taken(state, handed, quality), now)
        end_backlog(state, leg, now)
        return FINISHED
    start = _start(state, leg, now, quality)
    # messages of quality of service 0 wait for the line only
    waits = start > now or (leg.waiting > 0 and not (state.qualities and quality == 0))
    if leg.cut or (waits and not _has_room(state, leg, handed.size)):
        if state.qualities and state.overflow == CUT_OFF:
            lacks = break_off(state, user, leg, np.nextafter(now, np.inf), leg.leaves)
            if lacks != FINISHED:
                return int(lacks)
        outcome = _make_room(state, leg, handed.size, now)
        if outcome != DELIVERED:
            count_outcome(state, handed.window, outcome)
            return FINISHED
    number = _taken(state, handed, quality)
    if waits:
        append(state, leg, number)
    else:
        _send(state, user, leg, number, start)
    return FINISHED


@kernel
def deliver_all(states: Items, handed: Items, users: NDArray[np.int64]) -> int:
    """Send publications (HANDED, in order of time) to their users, resuming where it stopped; returns why it stops."""
    state = states[0]
    while state.delivery < handed.size:
        publication = handed[state.delivery]
        while state.place < publication.count:
            user = users[publication.first + state.place]
            leg = leg_at(state.legs, user)
            lacks = _catch_up(state, user, leg, publication.served)
            lacks = lacking(state) if lacks == FINISHED else lacks
            lacks = _come(state, user, leg, publication) if lacks == FINISHED else lacks
            if lacks != FINISHED:
                return int(lacks)
            state.place += 1
        state.place = 0
        state.delivery += 1
    state.delivery = 0
    return FINISHED


@kernel
def catch_up_all(states: Items, users: NDArray[np.int64], now: float, cuts: bool) -> int:
    """Send users all that can be sent by then (s), and cut them off if it `cuts`, from where it stopped; returns why it stops."""
    state = states[0]
    while state.place < users.size:
        leg = leg_at(state.legs, users[state.place])
        lacks = _catch_up(state, users[state.place], leg, now)
        if lacks != FINISHED:
            return int(lacks)
        if state.qualities and cuts and leg.away == 0:
            lacks = break_off(state, users[state.place], leg, np.nextafter(now, np.inf), leg.leaves)
            if lacks != FINISHED:
                return int(lacks)
        if not cuts:
            if not state.qualities:
                forget_acknowledged(state, leg, now)
        elif state.survives:
            hold(state, leg, now)
        else:
            _cut_off(state, leg)
        state.place += 1
    state.place = 0
    return FINISHED


@kernel
def close_all(states: Items, legs: Items) -> int:
    """Send what can be sent before the end, resuming where it stopped, and count what waits then; returns why it stops."""
    state = states[0]
    while state.place < legs.size:
        leg = leg_at(state.legs, state.place)
        lacks = _catch_up(state, state.place, leg, state.horizon)
        if lacks == FINISHED and state.qualities:
            lacks = break_off(state, state.place, leg, state.horizon, state.horizon)
        if lacks != FINISHED:
            return int(lacks)
        if leg.away or leg.held or leg.backlog:
            lose_old(state, leg, state.horizon)
        lose_waiting(state, leg, IN_FLIGHT)
        lose_caught(state, leg, IN_FLIGHT)
        state.place += 1
    state.place = 0
    return FINISHED
