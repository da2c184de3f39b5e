"""Compiled legs by quality of service: what is sent to a user until it has answered, and again when it connects again."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Item
from sim.base.compiled import inlined, kernel
from sim.base.randomness_kernels import keyed_uniform
from sim.brokers.statistics.ledger import IN_FLIGHT, LOST
from sim.brokers.users.leg_queue_kernels import count_outcome, give_back, hand_over, lacking, way_of
from sim.brokers.users.leg_record import (
    FINISHED,
    NO_MESSAGE,
    QUALITY_COUNTS,
    leg_integer_at,
    leg_message_at,
    leg_speed_at,
    subscribed_at,
)
from sim.workloads.models.exchange_kernels import Exchanged, Path, exchange, late

_LEG, _DISCONNECTED = LOST["leg"], LOST["disconnected"]
_PUBACK, _PUBREC, _PUBREL, _PUBCOMP, _AGAIN, _DUPLICATES = range(len(QUALITY_COUNTS))


@kernel
def quality_of(state: Item, leg: Item, user: int, published: int, topic: int, now: float) -> int:
    """The quality of service of a publication to a user: the lower of its own and that of the subscription (s: now)."""
    low, high = leg.quality, leg.qualities_end
    while low < high:  # the first row beyond the topic and the time
        middle = (low + high) // 2
        row = subscribed_at(state.subscribed, middle)
        if row.topic < topic or (row.topic == topic and row.time <= now):
            low = middle + 1
        else:
            high = middle
    if low > leg.quality and subscribed_at(state.subscribed, low - 1).topic == topic:
        return min(published, int(subscribed_at(state.subscribed, low - 1).qos))
    if state.share_0 == 0.0 and state.share_1 == 0.0:
        return published
    drawn = keyed_uniform(state.quality_key, user, topic)
    return min(published, 0 if drawn < state.share_0 else 1 if drawn < state.share_1 else 2)


@kernel
def _path(state: Item, leg: Item, message: Item) -> Path:
    latency = float(leg_speed_at(state.speeds, leg.slow).latency + message.way)
    return Path(latency, state.jitter, state.jitter_key, state.loss, state.loss_key, state.timeout)


@kernel
def _exchange(state: Item, user: int, leg: Item, message: Item, sends: float, arrivals: float) -> Exchanged:
    about = (int(message.number), user, int(message.quality), int(message.attempts), message.released == 1)
    seconds = message.size / leg_speed_at(state.speeds, leg.slow).rate
    arrivals, sends = min(arrivals, state.horizon), min(sends, state.horizon)
    return exchange(_path(state, leg, message), about, message.sent, message.reaches, seconds, sends, arrivals)


@kernel
def _count(state: Item, window: int, what: int, many: int) -> None:
    leg_integer_at(state.by_quality, window * len(QUALITY_COUNTS) + what).value += many


@kernel
def send_by_quality(state: Item, user: int, leg: Item, number: int, start: float) -> None:
    """Send a message to the user at a time (s)."""
    message, speed = leg_message_at(state.messages, number), leg_speed_at(state.speeds, leg.slow)
    message.sent, message.order = start, state.order
    state.order += 1
    leg.free = start
    way_of(state, leg, message, start)
    if message.released == 0:  # otherwise only the release is sent, without bytes
        leg.free += message.size / speed.rate
        leg.last = message.reaches = max(
            leg.free + late(_path(state, leg, message), message.number, user, message.attempts), leg.last
        )
    if message.attempts > 0 and start < state.horizon:
        _count(state, message.window, _AGAIN, 1)
    done = _exchange(state, user, leg, message, np.inf, leg.leaves)
    if message.quality == 0:
        if message.reaches >= leg.leaves:
            count_outcome(state, message.window, _DISCONNECTED)
        elif message.reaches >= state.horizon:
            count_outcome(state, message.window, IN_FLIGHT)
        elif done.received == 0:
            count_outcome(state, message.window, _LEG)
        else:
            hand_over(state, user, message, done.arrived, start - message.time)
        give_back(state, number)
        return
    message.acknowledged = done.acknowledged
    leg.first_sent, leg.end_sent = _insert(state, leg.unacknowledged, leg.first_sent, leg.end_sent, number, False)
    leg.unacknowledged += 1


@inlined
def _rank(state: Item, number: int, caught: bool) -> float:
    message = leg_message_at(state.messages, number)
    return float(message.order) if caught else float(message.acknowledged)


@kernel
def _insert(state: Item, many: int, first: int, end: int, number: int, caught: bool) -> tuple[int, int]:
    """Insert a message into a list of `many` by the time of its acknowledgement or, if `caught`, the order of sending.

    Returns the first and the last of the list.
    """
    rank = _rank(state, number, caught)
    if many == 0:
        return number, number
    if _rank(state, end, caught) <= rank:
        leg_message_at(state.messages, end).next = number
        return first, number
    if rank < _rank(state, first, caught):
        leg_message_at(state.messages, number).next = first
        return number, end
    before, following = first, int(leg_message_at(state.messages, first).next)
    while _rank(state, following, caught) <= rank:
        before, following = following, int(leg_message_at(state.messages, following).next)
    leg_message_at(state.messages, number).next = following
    leg_message_at(state.messages, before).next = number
    return first, end


@kernel
def _settle(state: Item, user: int, leg: Item, sends: float, arrivals: float) -> int:
    """Count what has become of the first message in flight, and take it from there; returns its number."""
    number = leg.first_sent
    message = leg_message_at(state.messages, number)
    leg.first_sent = message.next
    leg.unacknowledged -= 1
    done, window = _exchange(state, user, leg, message, sends, arrivals), int(message.window)
    one = message.quality == 1
    _count(state, window, _PUBACK if one else _PUBREC, done.received)
    _count(state, window, _PUBREL, done.releases)
    _count(state, window, _PUBCOMP, done.completions)
    _count(state, window, _AGAIN, max(done.sent - 1, 0) + max(done.releases - 1, 0))
    if one:
        _count(state, window, _DUPLICATES, done.received - (1 if done.received > 0 and message.got == 0 else 0))
    if done.received > 0 and message.got == 0:
        message.got = 1
        hand_over(state, user, message, done.arrived, message.sent - message.time)
    message.attempts += done.sent + done.releases
    message.released = done.released
    return int(number)


@kernel
def settle_answered(state: Item, user: int, leg: Item, until: float) -> int:
    """Take from those in flight the messages that have been answered up to a time (s); returns what lacks room, if anything."""
    while leg.unacknowledged > 0 and leg_message_at(state.messages, leg.first_sent).acknowledged <= until:
        lacks = lacking(state)
        if lacks not in (FINISHED, NO_MESSAGE):
            return int(lacks)
        number = _settle(state, user, leg, np.inf, leg.leaves)
        # what has waited for its place in the window is not sent before, even if this stops here for want of room
        leg.free = max(leg.free, leg_message_at(state.messages, number).acknowledged)
        give_back(state, number)
    return FINISHED


@kernel
def break_off(state: Item, user: int, leg: Item, now: float, arrivals: float) -> int:
    """Let all in flight that has not been answered before a time (s), when the connection ends, be caught, in the order of sending.

    What is on its way arrives before the time `arrivals`. Returns what lacks room, if anything.
    """
    leg.cut = 1  # nothing more is sent, even if this stops for want of room
    while leg.unacknowledged > 0:
        lacks = lacking(state)
        if lacks not in (FINISHED, NO_MESSAGE):
            return int(lacks)
        answered = leg_message_at(state.messages, leg.first_sent).acknowledged < now
        number = _settle(state, user, leg, np.inf if answered else now, arrivals)
        if answered:
            give_back(state, number)
            continue
        leg.first_caught, leg.end_caught = _insert(state, leg.caught, leg.first_caught, leg.end_caught, number, True)
        leg.caught += 1
    leg.cut = 0
    return FINISHED
