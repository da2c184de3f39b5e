"""The calendar queue of the compiled engine: messages by (time, sequence).

Future messages are linked in buckets (Brown 1988), `per_second` of them, a power of two; those of the current bucket are in a heap,
and those beyond all buckets in a list. A bit for each bucket says whether any is in it, so that buckets can be narrow: most of them
empty, few with more than one. Their width adapts to the density of messages, and never affects their order.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Item
from sim.base.bits import lowest_bit
from sim.base.compiled import inlined, kernel
from sim.brokers.data.compiled.records import bucket_at, entry_at, integer_at, message_at
from sim.brokers.data.compiled.state import NONE

NO_BUCKET = 1 << 62  # a bucket
_LATEST = 4e18  # bucket that all later times share
_LEAST_LOOK = 1024
_NARROWEST = 2.0**-40  # bucket of the time


@inlined
def _before(one: Item, other: Item) -> bool:
    """Whether one entry of the heap comes before another."""
    return bool(one.time < other.time or (one.time == other.time and one.sequence < other.sequence))


@inlined
def _set(place: Item, time: float, sequence: int, message: int) -> None:
    place.time, place.sequence, place.message = time, sequence, message


@inlined
def _push(state: Item, message: int) -> None:
    """Put a message on the heap."""
    pushed, place = message_at(state.messages, message), state.in_heap
    time, sequence = pushed.time, pushed.sequence
    state.in_heap += 1
    state.loaded += 1
    while place > 0:
        above = entry_at(state.heap, (place - 1) >> 1)
        if above.time < time or (above.time == time and above.sequence < sequence):
            break
        _set(entry_at(state.heap, place), above.time, above.sequence, above.message)
        place = (place - 1) >> 1
    _set(entry_at(state.heap, place), time, sequence, message)


@inlined
def pop(state: Item) -> int:
    """Take the soonest message off the heap, which is not empty."""
    first = entry_at(state.heap, 0).message
    state.in_heap -= 1
    size, place = state.in_heap, 0
    last = entry_at(state.heap, size)
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _before(entry_at(state.heap, below + 1), entry_at(state.heap, below)):
            below += 1
        entry = entry_at(state.heap, below)
        if _before(last, entry):
            break
        _set(entry_at(state.heap, place), entry.time, entry.sequence, entry.message)
        place = below
    _set(entry_at(state.heap, place), last.time, last.sequence, last.message)
    return int(first)


@inlined
def _place(state: Item, message: int) -> None:
    """Put a message where its time belongs: on the heap, into a bucket, or beyond the buckets."""
    placed = message_at(state.messages, message)
    number = int(min(placed.time * state.per_second, _LATEST))
    ahead = number - state.bucket
    if ahead <= 0:
        _push(state, message)
    elif ahead < state.bucket_count:
        bucket = bucket_at(state.buckets, number & (state.bucket_count - 1))
        placed.next = bucket.first
        bucket.first = message
        state.in_buckets += 1
        integer_at(state.filled, (number & (state.bucket_count - 1)) >> 6).value |= 1 << (number & 63)
    else:
        placed.next = state.far
        state.far = message
        state.in_far += 1
        state.far_bucket = min(state.far_bucket, number)


@inlined
def schedule(state: Item, message: int, time: float) -> None:
    """Schedule a message at this time (s), after all that were scheduled for the same time before."""
    scheduled = message_at(state.messages, message)
    scheduled.time, scheduled.sequence = time, state.sequence
    state.sequence += 1
    _place(state, message)


@inlined
def nothing_else_now(state: Item) -> bool:
    """Whether no message is due at the present moment, that of the one taken off the heap last."""
    return bool(state.in_heap == 0 or entry_at(state.heap, 0).time > state.now)


@kernel
def _spread(state: Item) -> None:
    """Place the messages that were beyond the buckets again."""
    message = state.far
    state.far, state.in_far, state.far_bucket = NONE, 0, NO_BUCKET
    while message != NONE:
        following = message_at(state.messages, message).next
        _place(state, message)
        message = int(following)


@kernel
def _set_width(state: Item, per_second: float) -> None:
    """Place all messages again, with this number of buckets per second."""
    first = state.far
    for number in range(state.bucket_count >> 6):
        integer_at(state.filled, number).value = 0
    for number in range(state.bucket_count):
        bucket = bucket_at(state.buckets, number)
        message = int(bucket.first)
        bucket.first = NONE
        while message != NONE:
            following = message_at(state.messages, message).next
            message_at(state.messages, message).next = first
            first = message
            message = int(following)
    for place in range(state.in_heap):
        message = entry_at(state.heap, place).message
        message_at(state.messages, message).next = first
        first = message
    state.far, state.in_heap, state.in_buckets = first, 0, 0
    state.per_second = per_second
    state.bucket = int(min(state.now * per_second, _LATEST))
    _spread(state)


@kernel
def _look(state: Item) -> None:
    """Adapt the buckets if they are too wide or too narrow for the density of messages."""
    loaded, passed, per_second = state.loaded, state.passed, state.per_second
    messages = state.in_heap + state.in_buckets + state.in_far
    ahead = state.bucket_count * loaded  # messages that come while all buckets pass once, times `passed`
    many = loaded > 8 * passed and state.in_heap > 32
    if many or (2 * loaded > passed and ahead > 32 * messages * passed):
        if max(1.0, state.now) * _NARROWEST * per_second < 1.0:
            _set_width(state, per_second * 4.0)
    elif 32 * loaded < passed or (4 * loaded < passed and ahead < 2 * messages * passed):
        _set_width(state, per_second / 4.0)
    state.loaded, state.passed = 0, 0
    state.look_after = max(_LEAST_LOOK, messages)


@inlined
def _next_filled(state: Item) -> int:
    """The next bucket with messages, of which there is one."""
    number = state.bucket + 1
    word = (number & (state.bucket_count - 1)) >> 6
    bits = integer_at(state.filled, word).value >> (number & 63)
    while bits == 0:
        number = (number | 63) + 1
        word = (number & (state.bucket_count - 1)) >> 6
        bits = integer_at(state.filled, word).value
    return int(number + lowest_bit(bits))


@inlined
def soonest(state: Item) -> float:
    """When the next message comes (s), infinite where there is none; it is on top of the heap then."""
    if state.loaded + state.passed > state.look_after:
        _look(state)
    while state.in_heap == 0:
        number = int(state.far_bucket)
        if state.in_buckets > 0:
            number = min(number, _next_filled(state))
        elif state.in_far == 0:
            return np.inf
        state.passed += min(number - state.bucket, state.bucket_count)
        state.bucket = number
        if state.far_bucket <= number:
            _spread(state)
        number &= state.bucket_count - 1
        bucket, word = bucket_at(state.buckets, number), integer_at(state.filled, number >> 6)
        message = int(bucket.first)
        bucket.first = NONE
        word.value &= ~(1 << (number & 63))
        while message != NONE:
            following = message_at(state.messages, message).next
            state.in_buckets -= 1
            _push(state, message)
            message = int(following)
    return float(entry_at(state.heap, 0).time)
