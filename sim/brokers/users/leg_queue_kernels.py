"""Compiled queues of legs: messages that wait for a user or are on their way, and what is counted of them."""

from __future__ import annotations

from sim.base.addresses import integers
from sim.base.arrays import Item
from sim.base.compiled import kernel
from sim.brokers.statistics.ledger import ROWS
from sim.brokers.statistics.record_kernels import COUNTERS, SUMS, add_exactly
from sim.brokers.users.leg_record import leg_integer_at, leg_message_at, leg_real_at


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
    """Lose a message that is in no queue."""
    count_outcome(state, leg_message_at(state.messages, number).window, cause)
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
