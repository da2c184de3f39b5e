"""Compiled queues of legs: messages that wait for a user or are on their way, and what is counted of them."""

from __future__ import annotations

import math

import numpy as np

from sim.base.addresses import integer_rows, integers
from sim.base.arrays import Item
from sim.base.compiled import kernel
from sim.brokers.statistics.exact_sums import add_exactly
from sim.brokers.statistics.ledger import DELIVERED, ROWS
from sim.brokers.statistics.record_kernels import (
    BEST_EFFORT_USERS,
    BINS,
    CLIENT_WAIT,
    COUNTERS,
    RETAINED_DELAY,
    RETAINED_DELIVERIES,
    SESSION_DELAY,
    SESSION_DELIVERIES,
    SUMS,
    USER_NOTIFICATION_DELAY,
    USER_TREE_DELAY,
    delay_bin,
)
from sim.brokers.statistics.tallies import count_key
from sim.brokers.statistics.topic_delays import TO_USERS, count_topic_delay, topic_row
from sim.brokers.users.leg_distances import point_at, seconds_between
from sim.brokers.users.leg_record import (
    DELAYS_FULL,
    FINISHED,
    NO_MESSAGE,
    RECEIPTS_FULL,
    RETAINED,
    UNTIL_BROKER,
    UNTIL_CLIENT,
    UNTIL_SERVED,
    WAITED,
    leg_integer_at,
    leg_message_at,
    leg_real_at,
)


@kernel
def count_outcome(state: Item, window: int, outcome: int) -> None:
    """Count the outcome of a message to one user."""
    leg_integer_at(state.pairs, (window * ROWS + outcome) * 2 + 1).value += 1


@kernel
def count_one(state: Item, window: int, row: int) -> None:
    """Add to a counter of a window."""
    leg_integer_at(state.counters, window * COUNTERS + row).value += 1


@kernel
def add_to_sum(state: Item, window: int, row: int, value: float) -> None:
    """Add to an exact sum of a window."""
    add_exactly(integers(state.sums + 24 * (window * SUMS + row), 3), value)


@kernel
def leg_window(state: Item, now: float) -> int:
    """The window of a time (s)."""
    window = 0
    while window < state.windows - 1 and leg_real_at(state.edges, window + 1).value <= now:
        window += 1
    return window


@kernel
def give_back(state: Item, number: int) -> None:
    """Free a message."""
    leg_message_at(state.messages, number).next = state.free
    state.free = number
    state.frees += 1


@kernel
def take_first(state: Item, leg: Item) -> int:
    """Remove the first waiting message from its queue."""
    number = leg.first
    message = leg_message_at(state.messages, number)
    leg.first = message.next
    leg.waiting -= 1
    leg.bytes -= message.size
    return int(number)


@kernel
def append(state: Item, leg: Item, number: int) -> None:
    """Let a message wait behind the others."""
    if leg.waiting == 0:
        leg.first = number
    else:
        leg_message_at(state.messages, leg.end).next = number
    leg.end = number
    leg.waiting += 1
    leg.bytes += leg_message_at(state.messages, number).size


@kernel
def lose(state: Item, number: int, cause: int) -> None:
    """Lose a message that is in no queue, unless the user has it."""
    message = leg_message_at(state.messages, number)
    if message.got == 0:
        count_outcome(state, message.window, cause)
    give_back(state, number)


@kernel
def lose_waiting(state: Item, leg: Item, cause: int) -> None:
    """Lose all that waits."""
    while leg.waiting > 0:
        lose(state, take_first(state, leg), cause)


@kernel
def lose_caught(state: Item, leg: Item, cause: int) -> None:
    """Lose the messages in transit to the user that the end of the connection catches."""
    while leg.caught > 0:
        number = leg.first_caught
        leg.first_caught = leg_message_at(state.messages, number).next
        leg.caught -= 1
        lose(state, number, cause)


@kernel
def forget_acknowledged(state: Item, leg: Item, until: float) -> None:
    """Free the messages that have been acknowledged up to a time (s)."""
    while leg.unacknowledged > 0 and leg_message_at(state.messages, leg.first_sent).time <= until:
        number = leg.first_sent
        leg.first_sent = leg_message_at(state.messages, number).next
        leg.unacknowledged -= 1
        give_back(state, number)


@kernel
def lacking(state: Item) -> int:
    """What lacks room for one more delivery or waiting message, if anything."""
    if 2 * (state.delay_keys + 1) > state.delay_slots:
        return DELAYS_FULL
    if state.notes and state.noted == state.room:
        return RECEIPTS_FULL
    return NO_MESSAGE if state.frees == 0 else FINISHED


@kernel
def way_of(state: Item, leg: Item, message: Item, start: float) -> float:
    """The time (s) over the distance to its user of a message that is sent at a time (s)."""
    message.way = 0.0
    if state.per_arc > 0.0 and message.broker >= 0:
        site = point_at(state.sites, message.broker)
        message.way = seconds_between(state.places, leg.place, leg.places_end, site, start, state.per_arc)
    return float(message.way)


@kernel
def hand_over(state: Item, user: int, message: Item, arrival: float, waited: float) -> None:
    """A message has arrived at the user."""
    window, time = int(message.window), arrival
    count_outcome(state, window, DELIVERED)
    if state.notes:
        leg_integer_at(state.received, state.noted).value = np.int64(message.topic) << 32 | user
        state.noted += 1
    if message.kind == WAITED:
        count_one(state, window, SESSION_DELIVERIES)
        add_to_sum(state, window, SESSION_DELAY, arrival - message.published + message.up)
        return
    if message.kind == RETAINED:
        count_one(state, window, RETAINED_DELIVERIES)
        add_to_sum(state, window, RETAINED_DELAY, arrival - message.published)
        return
    if state.until == UNTIL_SERVED:
        time = message.time
    elif state.until == UNTIL_BROKER:
        time = message.arrived
    delay = time - message.published
    if state.until == UNTIL_CLIENT:
        delay += message.up
    add_to_sum(state, window, USER_NOTIFICATION_DELAY, delay)
    if state.by_topic and message.published >= state.warm_up:
        count_topic_delay(topic_row(state.topics, message.topic), TO_USERS, 1, delay)
    add_to_sum(state, window, CLIENT_WAIT, waited)
    if math.isnan(message.rooted):
        count_one(state, window, BEST_EFFORT_USERS)
    else:
        add_to_sum(state, window, USER_TREE_DELAY, time - message.rooted)
    table = integer_rows(state.delays, state.delay_slots, 3)
    state.delay_keys += count_key(table, window * BINS + delay_bin(delay), 0, 1)
