"""Compiled sessions: what waits for users who are away, until they return or the session is over."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import Item
from sim.base.compiled import kernel
from sim.brokers.statistics.ledger import LOST
from sim.brokers.statistics.record_kernels import CATCH_UP, RESUMED
from sim.brokers.users.leg_queue_kernels import (
    add_to_sum,
    append,
    count_one,
    forget_acknowledged,
    leg_window,
    lose,
    lose_waiting,
    take_first,
)
from sim.brokers.users.leg_record import DROP_OLDEST, LIVE, WAITED, absence_at, leg_message_at
from sim.workloads.format.workload import NO_SESSION, SESSION_OVER, SESSION_RESUMED

_DISCONNECTED, _FULL, _TOO_OLD = LOST["disconnected"], LOST["offline_queue_full"], LOST["message_expired"]
_OVER = LOST["session_expired"]


@kernel
def next_absence(state: Item, leg: Item) -> None:
    """Let the user's next absence be the coming one; one that lasts until the end has no end."""
    leg.leaves = np.inf
    if leg.absence < leg.absences_end:
        absence = absence_at(state.absences, leg.absence)
        leg.leaves, leg.returns, leg.session = absence.start, absence.end, absence.session
        if leg.returns >= state.horizon:
            leg.returns = np.inf
        leg.absence += 1


@kernel
def lose_old(state: Item, leg: Item, now: float) -> None:
    """Lose messages that have waited in the session for too long."""
    while leg.waiting > 0 and leg_message_at(state.messages, leg.first).time + state.oldest < now:
        lose(state, take_first(state, leg), _TOO_OLD)


@kernel
def _has_room(state: Item, leg: Item, size: int) -> bool:
    if state.session_bound >= 0 and leg.waiting >= state.session_bound:
        return False
    return bool(state.session_bytes < 0 or leg.bytes + size <= state.session_bytes)


@kernel
def wait_in_session(state: Item, leg: Item, number: int, now: float) -> None:
    """Let a message wait behind the others in the session, which may have no room."""
    size = leg_message_at(state.messages, number).size
    lose_old(state, leg, now)
    leg.free = max(leg.free, now)  # what waits behind those that are lost is not sent before
    could = state.session_bound != 0 and (state.session_bytes < 0 or size <= state.session_bytes)
    while state.session_overflow == DROP_OLDEST and could and not _has_room(state, leg, size):
        lose(state, take_first(state, leg), _FULL)
    if not _has_room(state, leg, size):
        lose(state, number, _FULL)
        return
    append(state, leg, number)
    state.longest = max(state.longest, leg.waiting)


@kernel
def miss(state: Item, leg: Item, number: int, now: float, session: int) -> None:
    """Let a message for a user who is not connected wait in its session, if it has one that keeps such messages."""
    message = leg_message_at(state.messages, number)
    if session == NO_SESSION or message.kept == 0:
        lose(state, number, _DISCONNECTED)
        return
    if message.kind == LIVE:
        message.kind = WAITED
    if message.time + state.oldest < now:
        lose(state, number, _TOO_OLD)
    else:
        wait_in_session(state, leg, number, now)


@kernel
def _miss_all(state: Item, leg: Item, now: float, session: int) -> None:
    """Let what is on its way or waits for a user wait in its session: the connection ends at a time (s)."""
    forget_acknowledged(state, leg, np.inf)
    chains = ((leg.first_caught, leg.caught), (leg.first, leg.waiting))
    leg.caught = leg.waiting = leg.bytes = leg.backlog = 0
    for first, many in chains:
        number = first
        for _ in range(many):
            following = leg_message_at(state.messages, number).next
            miss(state, leg, number, now, session)
            number = following


@kernel
def go_away(state: Item, leg: Item) -> None:
    """Let the user's coming absence begin."""
    leg.away = 1
    _miss_all(state, leg, leg.leaves, leg.session)


@kernel
def come_back(state: Item, leg: Item) -> None:
    """Let the user return from its absence."""
    now = leg.returns
    lose_old(state, leg, now)
    if leg.session == SESSION_OVER:
        lose_waiting(state, leg, _OVER)
    leg.away = 0
    next_absence(state, leg)
    if leg.held == 0:
        go_on(leg, now)


@kernel
def hold(state: Item, leg: Item, now: float) -> None:
    """Keep the session of a user whose broker crashes, until `go_on`."""
    if leg.away == 0 and leg.held == 0:
        _miss_all(state, leg, now, SESSION_RESUMED)
    leg.held = 1


@kernel
def go_on(leg: Item, now: float) -> None:
    """Let a connection begin with what waits in the session, if the user is there."""
    leg.held = 0
    if leg.away:
        return
    leg.free = leg.last = leg.ready = leg.returned = now
    leg.backlog = leg.waiting > 0


@kernel
def end_backlog(state: Item, leg: Item, now: float) -> None:
    """Count a user who has caught up with its session, if nothing waits any more."""
    if leg.backlog == 1 and leg.waiting == 0:
        leg.backlog = 0
        window = leg_window(state, leg.returned)
        count_one(state, window, RESUMED)
        add_to_sum(state, window, CATCH_UP, now - leg.returned)
