"""The compiled part of event logs: sessions and subscriptions from rows. Slow twin: tests/oracles/events.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.workloads.format.workload import NO_SESSION, SESSION_OVER, SESSION_RESUMED

CONNECT, SUBSCRIBE, UNSUBSCRIBE, DISCONNECT = range(4)
LOG_NEVER = 2**62
"""µs; later than any time."""


class LogRows(NamedTuple):
    """The rows of a log in order: `pair` is the (client, topic filter), those of client c are `indptr[c]` to `indptr[c + 1]`.

    For connects, `fresh` says whether earlier subscriptions end, and `keeps` how long those of this session outlive it (µs). For
    subscribes, `fleeting` says that they are not in force while the client is away, even if its session is kept.
    """

    micros: NDArray[np.int64]
    action: NDArray[np.int8]
    client: NDArray[np.int32]
    pair: NDArray[np.int64]
    indptr: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    keeps: NDArray[np.int64]
    fleeting: NDArray[np.bool_]


class Followed(NamedTuple):
    """The effects of rows: whether they have an `effect`, and the rows at which sessions begin and end, -1 where they stay open.

    There is room for a session per row.
    """

    effect: NDArray[np.bool_]
    began: NDArray[np.int64]
    ended: NDArray[np.int64]


class ChangesOfLog(NamedTuple):
    """When (µs) a subscription comes into force (+1) or ceases (-1), and by which row; of one client in order of time."""

    micros: NDArray[np.int64]
    pair: NDArray[np.int64]
    action: NDArray[np.int8]
    row: NDArray[np.int64]


class AbsencesOfLog(NamedTuple):
    """When (µs) a client with subscriptions in force was away, what became of its session (see `Absences`), and by which row."""

    client: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    session: NDArray[np.int8]
    row: NDArray[np.int64]


class _Clients(NamedTuple):
    """The state of clients: of each pair, whether it is `held`, `in_force`, and `fleeting`.

    Of each client, how long its latest session outlives its connection, when it left (µs), and whether it is away with
    subscriptions in force.
    """

    held: NDArray[np.bool_]
    in_force: NDArray[np.bool_]
    fleeting: NDArray[np.bool_]
    keep: NDArray[np.int64]
    left: NDArray[np.int64]
    misses: NDArray[np.bool_]


@kernel
def _change(changes: ChangesOfLog, count: int, row: int, micros: int, pair: int, action: int) -> int:
    """Record a change if there is room for it; returns the number of changes so far."""
    if count < changes.micros.size:
        changes.micros[count], changes.pair[count], changes.action[count] = micros, pair, action
        changes.row[count] = row
    return count + 1


@kernel
def _absence(absences: AbsencesOfLog, count: int, row: int, client: int, start: int, end: int, session: int) -> int:
    """Record an absence in the same way."""
    if count < absences.client.size:
        absences.client[count], absences.session[count] = client, session
        absences.start[count], absences.end[count], absences.row[count] = start, end, row
    return count + 1


@kernel
def _start(clients: _Clients, changes: ChangesOfLog, count: int, row: int, pair: int, now: int) -> int:
    """Let a pair be in force; returns the number of changes so far."""
    if clients.in_force[pair]:
        return count
    clients.in_force[pair] = True
    return int(_change(changes, count, row, now, pair, 1))


@kernel
def _stop(clients: _Clients, changes: ChangesOfLog, count: int, row: int, pair: int, now: int) -> int:
    """Let a pair cease to be in force; returns the number of changes so far."""
    if not clients.in_force[pair]:
        return count
    clients.in_force[pair] = False
    return int(_change(changes, count, row, now, pair, -1))


@kernel
def _leave(
    clients: _Clients, changes: ChangesOfLog, count: int, rows: LogRows, row: int, pairs: tuple[int, int], returns: bool
) -> int:
    """Let the client of a row go, who `returns` at once or not; returns the number of changes so far."""
    who, now = rows.client[row], rows.micros[row]
    clients.left[who] = now
    clients.misses[who] = False
    for p in range(*pairs):
        clients.held[p] &= clients.keep[who] > 0
        if not clients.held[p] or (clients.fleeting[p] and not returns):
            count = _stop(clients, changes, count, row, p, now)
        clients.misses[who] |= clients.in_force[p] and not clients.fleeting[p]
    return count


@kernel
def _end_absence(
    clients: _Clients, absences: AbsencesOfLog, away: int, row: int, who: int, now: int, fresh: bool
) -> int:
    """Record that a client was away up to now, if it has missed anything; returns the number of absences so far."""
    over, left = min(clients.left[who] + clients.keep[who], LOG_NEVER), clients.left[who]
    if not clients.misses[who]:
        return away
    if now <= over:
        return int(_absence(absences, away, row, who, left, now, SESSION_OVER if fresh else SESSION_RESUMED))
    away = _absence(absences, away, row, who, left, over, SESSION_OVER)
    return int(_absence(absences, away, row, who, over, now, NO_SESSION))


@kernel
def follow_sessions(
    rows: LogRows, kept: int, found: Followed, changes: ChangesOfLog, absences: AbsencesOfLog
) -> tuple[int, int, int]:
    """Process the rows in order; returns the number of sessions, of changes, and of absences.

    The last two are only counted if there is no room for them. `kept` is how long subscriptions outlive sessions that begin without
    a connect (µs). `found.effect` is made false for rows that change nothing. Absences of clients who do not return end at LOG_NEVER.
    What happens to client c behind the last row has the number of rows plus c as its row.
    """
    micros, action, client, pair, indptr, fresh, keeps, fleeting = rows
    flags, number = np.zeros((3, indptr[-1]), np.bool_), indptr.size - 1
    keep, left = np.full(number, kept, np.int64), np.zeros(number, np.int64)
    clients = _Clients(flags[0], flags[1], flags[2], keep, left, np.zeros(number, np.bool_))
    held, session = clients.held, np.full(number, -1, np.int64)
    sessions = count = away = 0
    for row in range(action.size):
        what, who, now = action[row], client[row], micros[row]
        pairs = indptr[who], indptr[who + 1]
        opened = session[who] >= 0
        if what == SUBSCRIBE:
            clients.fleeting[pair[row]] = fleeting[row]
        expired = not opened and now > min(left[who] + keep[who], LOG_NEVER)
        if (
            (what == DISCONNECT and not opened)
            or (what == UNSUBSCRIBE and (expired or not held[pair[row]]))
            or (what == SUBSCRIBE and opened and held[pair[row]])
        ):
            found.effect[row] = False
            continue
        # a client that connects while connected begins a new session, without interrupting persistent subscriptions
        if what == DISCONNECT or (what == CONNECT and opened):
            found.ended[session[who]] = row
            session[who] = -1
            count = _leave(clients, changes, count, rows, row, pairs, what == CONNECT)
        if what == CONNECT or (what == SUBSCRIBE and not opened):
            away = _end_absence(clients, absences, away, row, who, now, fresh[row])
            over = min(left[who] + keep[who], LOG_NEVER)
            for p in range(*pairs):
                if now > over or fresh[row]:
                    held[p] = False
                    count = _stop(clients, changes, count, row, p, min(now, over))
                elif held[p]:
                    count = _start(clients, changes, count, row, p, now)
            if what == CONNECT:
                keep[who] = keeps[row]
            found.began[sessions], found.ended[sessions] = row, -1
            clients.misses[who], session[who] = False, sessions
            sessions += 1
        if what == SUBSCRIBE:
            held[pair[row]] = True
            count = _start(clients, changes, count, row, pair[row], now)
        if what == UNSUBSCRIBE:
            held[pair[row]] = False
            count = _stop(clients, changes, count, row, pair[row], now)
    for who in range(number):
        away = _end_absence(clients, absences, away, action.size + who, who, LOG_NEVER, False)
        over = min(left[who] + keep[who], LOG_NEVER)
        for p in range(indptr[who], indptr[who + 1] if session[who] < 0 and over < LOG_NEVER else 0):
            count = _stop(clients, changes, count, action.size + who, p, over)
    return sessions, count, away
