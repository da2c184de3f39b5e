"""Compiled legs from due brokers to their users: each leg takes messages in order of arrival, in one pass.

Legs affect neither each other nor brokers, so each is brought up to date when a message for its user arrives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import accessor, integer_rows, integers
from sim.base.arrays import Item, Items
from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_normal, keyed_uniform
from sim.brokers.statistics.ledger import DELIVERED, IN_FLIGHT, LOST, ROWS
from sim.brokers.statistics.record_kernels import (
    BEST_EFFORT_USERS,
    BINS,
    CLIENT_WAIT,
    COUNTERS,
    SUMS,
    USER_NOTIFICATION_DELAY,
    USER_TREE_DELAY,
    add_exactly,
    delay_bin,
)
from sim.brokers.statistics.tallies import count_key

_SLOW_CLIENT, _DISCONNECTED = LOST["slow_client"], LOST["disconnected"]
DROP_NEWEST, DROP_OLDEST, CUT_OFF = range(3)
UNTIL_BROKER, UNTIL_SERVED, UNTIL_CLIENT = range(3)
"""The end of a delivery's delay."""

HANDED = np.dtype(
    [
        ("served", "f8"),  # by the broker (s)
        ("arrived", "f8"),  # there
        ("published", "f8"),
        ("rooted", "f8"),  # NaN by the best-effort channel
        ("size", "i8"),
        ("number", "i8"),  # of the publication
        ("window", "i4"),
        ("topic", "i4"),
        ("first", "i8"),  # of its users, and how many
        ("count", "i8"),
    ],
    align=True,
)
"""A publication that goes to the users of a broker."""

LEG_MESSAGE = np.dtype(
    [
        ("time", "f8"),  # when its broker had served it (s); of one that was sent, when that is acknowledged
        ("arrived", "f8"),
        ("published", "f8"),
        ("rooted", "f8"),
        ("size", "i8"),
        ("number", "i8"),
        ("window", "i4"),
        ("topic", "i4"),
        ("next", "i4"),
    ],
    align=True,
)
"""A message that waits for a user, or to be acknowledged by it; or a free one."""

LEG = np.dtype(
    [
        ("free", "f8"),  # when the last one has been sent (s)
        ("last", "f8"),  # when it arrives
        ("cut_until", "f8"),
        ("bytes", "i8"),  # that wait
        ("waiting", "i4"),  # messages: how many, the first and the last
        ("first", "i4"),
        ("end", "i4"),
        ("unacknowledged", "i4"),  # likewise
        ("first_sent", "i4"),
        ("end_sent", "i4"),
        ("slow", "i4"),  # 1 where it is
    ],
    align=True,
)
"""A user's leg."""

SPEED = np.dtype([("latency", "f8"), ("rate", "f8"), ("window", "i8")], align=True)
"""The capacity of legs: latency (s), bytes per second, messages in flight (0: no limit)."""

_INTEGER = np.dtype([("value", "i8")])
_FLOAT = np.dtype([("value", "f8")])
LEG_ARRAYS = {
    "legs": LEG,
    "messages": LEG_MESSAGE,
    "speeds": SPEED,
    "disconnects": _INTEGER,
    "edges": _FLOAT,
    "received": _INTEGER,
}
LEG_STATISTICS = ("pairs", "counters", "sums", "delays")
"""The recorder's (`sim.brokers.statistics.records.Statistics`)."""
_INTEGERS = (
    "free",  # the first message that is
    "frees",  # how many
    "noted",  # of `received`: topic and user of each delivery, where
    "notes",  # that is asked for
    "room",  # for this many
    "delay_keys",  # that are taken, of
    "delay_slots",
    "windows",
    "delivery",  # the next one
    "place",  # the next of its users
    "bound",  # messages that may wait; -1: any
    "bytes_bound",  # likewise
    "overflow",
    "until",
    "jitter_key",
)
LEG_STATE = np.dtype(
    [(name, "i8") for name in (*_INTEGERS, *LEG_ARRAYS, *LEG_STATISTICS)]
    + [(name, "f8") for name in ("jitter", "reconnect_after", "horizon")],
    align=True,
)
"""All of it."""

_leg_at = accessor(LEG)
_message_at = accessor(LEG_MESSAGE)
_speed_at = accessor(SPEED)
_integer_at = accessor(_INTEGER)
_real_at = accessor(_FLOAT)

FINISHED, DELAYS_FULL, RECEIPTS_FULL, NO_MESSAGE = range(4)
"""Why a kernel returned."""


@kernel
def slow_ones(legs: Items, key: int, share: float) -> None:
    """Draw the slow legs."""
    for user in range(legs.size):
        legs[user].slow = keyed_uniform(key, user, 0) < share


@kernel
def _count(state: Item, window: int, outcome: int) -> None:
    """Count the outcome of a message to one user."""
    _integer_at(state.pairs, (window * ROWS + outcome) * 2 + 1).value += 1


@kernel
def _add(state: Item, window: int, row: int, value: float) -> None:
    """Add to an exact sum of a window."""
    add_exactly(integers(state.sums + 24 * (window * SUMS + row), 3), value)


@kernel
def _lacks(state: Item) -> int:
    """What lacks room for one more delivery or waiting message, if anything."""
    if 2 * (state.delay_keys + 1) > state.delay_slots:
        return DELAYS_FULL
    if state.notes and state.noted == state.room:
        return RECEIPTS_FULL
    return NO_MESSAGE if state.frees == 0 else FINISHED


@kernel
def _give_back(state: Item, number: int) -> None:
    """Free a message."""
    _message_at(state.messages, number).next = state.free
    state.free = number
    state.frees += 1


@kernel
def _take_first(state: Item, leg: Item) -> int:
    """Remove the first waiting message from its queue."""
    number = leg.first
    message = _message_at(state.messages, number)
    leg.first = message.next
    leg.waiting -= 1
    leg.bytes -= message.size
    return int(number)


@kernel
def _start(state: Item, leg: Item, ready: float) -> float:
    """When the next message, ready at some time (s), can be sent (s)."""
    start, window = max(ready, leg.free), _speed_at(state.speeds, leg.slow).window
    if window > 0 and leg.unacknowledged >= window:
        start = max(start, _message_at(state.messages, leg.first_sent).time)
    return float(start)


@kernel
def _forget_acknowledged(state: Item, leg: Item, until: float) -> None:
    """Free the messages that have been acknowledged up to a time (s)."""
    while leg.unacknowledged > 0 and _message_at(state.messages, leg.first_sent).time <= until:
        number = leg.first_sent
        leg.first_sent = _message_at(state.messages, number).next
        leg.unacknowledged -= 1
        _give_back(state, number)


@kernel
def _send(state: Item, user: int, leg: Item, number: int, start: float) -> None:
    """Send a message to the user at a time (s), and count its outcome."""
    message, speed = _message_at(state.messages, number), _speed_at(state.speeds, leg.slow)
    _forget_acknowledged(state, leg, start)
    leg.free = start + message.size / speed.rate
    latency = speed.latency
    if state.jitter > 0.0:
        sigma = state.jitter
        latency *= math.exp(sigma * keyed_normal(state.jitter_key, message.number, user) - sigma * sigma / 2)
    arrival = max(leg.free + latency, leg.last)
    leg.last = arrival
    if arrival >= state.horizon:
        _count(state, message.window, IN_FLIGHT)
    else:
        _deliver(state, user, message, arrival, start - message.time)
    if speed.window == 0:
        _give_back(state, number)
        return
    message.time = arrival + speed.latency
    if leg.unacknowledged == 0:
        leg.first_sent = number
    else:
        _message_at(state.messages, leg.end_sent).next = number
    leg.end_sent = number
    leg.unacknowledged += 1


@kernel
def _deliver(state: Item, user: int, message: Item, arrival: float, waited: float) -> None:
    """A message has arrived at the user."""
    window, time = int(message.window), arrival
    if state.until == UNTIL_SERVED:
        time = message.time
    elif state.until == UNTIL_BROKER:
        time = message.arrived
    delay = time - message.published
    _count(state, window, DELIVERED)
    _add(state, window, USER_NOTIFICATION_DELAY, delay)
    _add(state, window, CLIENT_WAIT, waited)
    if math.isnan(message.rooted):
        _integer_at(state.counters, window * COUNTERS + BEST_EFFORT_USERS).value += 1
    else:
        _add(state, window, USER_TREE_DELAY, time - message.rooted)
    table = integer_rows(state.delays, state.delay_slots, 3)
    state.delay_keys += count_key(table, window * BINS + delay_bin(delay), 0, 1)
    if state.notes:
        _integer_at(state.received, state.noted).value = np.int64(message.topic) << 32 | user
        state.noted += 1


@kernel
def _drain(state: Item, user: int, leg: Item, until: float) -> int:
    """Send the waiting messages that can be sent up to a time (s); returns what lacks room, if anything."""
    while leg.waiting > 0:
        start = _start(state, leg, _message_at(state.messages, leg.first).time)
        if start > until:
            break
        lacks = _lacks(state)
        if lacks not in (FINISHED, NO_MESSAGE):
            return lacks
        _send(state, user, leg, _take_first(state, leg), start)
    return FINISHED


@kernel
def _has_room(state: Item, leg: Item, size: int) -> bool:
    """Whether one more message may wait."""
    if state.bound >= 0 and leg.waiting >= state.bound:
        return False
    return bool(state.bytes_bound < 0 or leg.bytes + size <= state.bytes_bound)


@kernel
def _lose_first(state: Item, leg: Item, cause: int) -> None:
    """Lose the message that has waited longest."""
    number = _take_first(state, leg)
    _count(state, _message_at(state.messages, number).window, cause)
    _give_back(state, number)


@kernel
def _cut_off(state: Item, leg: Item) -> None:
    """Lose all that waits, and begin with an empty window."""
    while leg.waiting > 0:
        _lose_first(state, leg, _DISCONNECTED)
    _forget_acknowledged(state, leg, np.inf)


@kernel
def _make_room(state: Item, leg: Item, size: int, now: float) -> int:
    """The outcome of a message that has to wait without room: DELIVERED if room was made, otherwise a cause of loss."""
    if state.overflow == DROP_OLDEST and state.bound != 0 and (state.bytes_bound < 0 or size <= state.bytes_bound):
        while not _has_room(state, leg, size):
            _lose_first(state, leg, _SLOW_CLIENT)
        return DELIVERED
    if state.overflow != CUT_OFF:
        return _SLOW_CLIENT
    _cut_off(state, leg)
    leg.cut_until = now + state.reconnect_after
    window = 0
    while window < state.windows - 1 and _real_at(state.edges, window + 1).value <= now:
        window += 1
    _integer_at(state.disconnects, window).value += 1
    return _DISCONNECTED


@kernel
def _come(state: Item, user: int, leg: Item, handed: Item) -> None:
    """Take a served message for the user, on an up-to-date leg with room for one more record."""
    now = handed.served
    if now < leg.cut_until:
        _count(state, handed.window, _DISCONNECTED)
        return
    start = _start(state, leg, now)
    waits = leg.waiting > 0 or start > now
    if waits and not _has_room(state, leg, handed.size):
        outcome = _make_room(state, leg, handed.size, now)
        if outcome != DELIVERED:
            _count(state, handed.window, outcome)
            return
    number = state.free
    message = _message_at(state.messages, number)
    state.free = message.next
    state.frees -= 1
    message.time, message.arrived, message.published, message.rooted = (
        now,
        handed.arrived,
        handed.published,
        handed.rooted,
    )
    message.size, message.number, message.window, message.topic = (
        handed.size,
        handed.number,
        handed.window,
        handed.topic,
    )
    if not waits:
        _send(state, user, leg, number, start)
        return
    if leg.waiting == 0:
        leg.first = number
    else:
        _message_at(state.messages, leg.end).next = number
    leg.end = number
    leg.waiting += 1
    leg.bytes += handed.size


@kernel
def deliver_all(states: Items, handed: Items, users: NDArray[np.int64]) -> int:
    """Send publications (HANDED, in order of time) to their users, resuming where it stopped; returns why it stops."""
    state = states[0]
    while state.delivery < handed.size:
        publication = handed[state.delivery]
        while state.place < publication.count:
            user = users[publication.first + state.place]
            leg = _leg_at(state.legs, user)
            lacks = _drain(state, user, leg, publication.served)
            lacks = _lacks(state) if lacks == FINISHED else lacks
            if lacks != FINISHED:
                return int(lacks)
            _come(state, user, leg, publication)
            state.place += 1
        state.place = 0
        state.delivery += 1
    state.delivery = 0
    return FINISHED


@kernel
def cut_off_all(states: Items, users: NDArray[np.int64], now: float) -> int:
    """Cut users off, of whose messages all are sent that can be by then (s), from where it stopped; returns why it stops."""
    state = states[0]
    while state.place < users.size:
        leg = _leg_at(state.legs, users[state.place])
        lacks = _drain(state, users[state.place], leg, now)
        if lacks != FINISHED:
            return int(lacks)
        _cut_off(state, leg)
        state.place += 1
    state.place = 0
    return FINISHED


@kernel
def close_all(states: Items, legs: Items) -> int:
    """Send what can be sent before the end, resuming where it stopped, and count what waits then; returns why it stops."""
    state = states[0]
    while state.place < legs.size:
        leg = _leg_at(state.legs, state.place)
        lacks = _drain(state, state.place, leg, state.horizon)
        if lacks != FINISHED:
            return int(lacks)
        while leg.waiting > 0:
            _lose_first(state, leg, IN_FLIGHT)
        state.place += 1
    return FINISHED
