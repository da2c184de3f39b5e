"""The compiled part of event logs: sessions and subscriptions from rows. Slow twin: tests/oracles/events.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

CONNECT, SUBSCRIBE, UNSUBSCRIBE, DISCONNECT = range(4)


class LogRows(NamedTuple):
    """The rows of a log in order: `pair` is the (client, topic filter), those of client c are `indptr[c]` to `indptr[c + 1]`.

    For connects, `fresh` says whether earlier subscriptions end, and `keeps` how long those of this session outlive it (µs).
    """

    micros: NDArray[np.int64]
    action: NDArray[np.int8]
    client: NDArray[np.int32]
    pair: NDArray[np.int64]
    indptr: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    keeps: NDArray[np.int64]


class Followed(NamedTuple):
    """The effects of rows: whether they have an `effect`, and the rows at which sessions begin and end, -1 where they stay open.

    There is room for a session per row.
    """

    effect: NDArray[np.bool_]
    began: NDArray[np.int64]
    ended: NDArray[np.int64]


class ChangesOfLog(NamedTuple):
    """The row at which a subscription comes into force (+1) or ceases (-1)."""

    row: NDArray[np.int64]
    pair: NDArray[np.int64]
    action: NDArray[np.int8]


@kernel
def _note(changes: ChangesOfLog, count: int, row: int, pair: int, action: int) -> int:
    """Record a change if there is room for it; returns the number of changes so far."""
    if count < changes.row.size:
        changes.row[count], changes.pair[count], changes.action[count] = row, pair, action
    return count + 1


@kernel
def follow_sessions(rows: LogRows, kept: int, found: Followed, changes: ChangesOfLog) -> tuple[int, int]:
    """Process the rows in order; returns the number of sessions and of changes, which are only counted if there is no room for them.

    `kept` is how long subscriptions outlive sessions that begin without a connect (µs). `found.effect` is made false for rows that
    change nothing.
    """
    micros, action, client, pair, indptr, fresh, keeps = rows
    effect, began, ended = found
    held = np.zeros(indptr[-1], np.bool_)
    session = np.full(indptr.size - 1, -1, np.int64)
    keep = np.full(indptr.size - 1, kept, np.int64)  # of each client's latest session
    left = np.zeros(indptr.size - 1, np.int64)
    sessions = count = 0
    for row in range(action.size):
        what, who = action[row], client[row]
        first, stop = indptr[who], indptr[who + 1]
        opened = session[who] >= 0
        if (what == DISCONNECT and not opened) or (what == UNSUBSCRIBE and not held[pair[row]]):
            effect[row] = False
            continue
        if what == SUBSCRIBE and opened and held[pair[row]]:
            effect[row] = False
            continue
        # a client that connects while connected begins a new session, without interrupting persistent subscriptions
        if what == DISCONNECT or (what == CONNECT and opened):
            ended[session[who]] = row
            session[who] = -1
            left[who] = micros[row]
            stays = keep[who] > 0 and not (what == CONNECT and fresh[row])
            if not (stays and what == CONNECT):
                for p in range(first, stop):
                    if held[p]:
                        held[p] = stays
                        count = _note(changes, count, row, p, -1)
        if what == CONNECT or (what == SUBSCRIBE and not opened):
            if not opened and ((what == CONNECT and fresh[row]) or micros[row] - left[who] > keep[who]):
                held[first:stop] = False
            if what == CONNECT:
                keep[who] = keeps[row]
            began[sessions], ended[sessions] = row, -1
            session[who] = sessions
            sessions += 1
            if not opened:
                for p in range(first, stop):
                    if held[p]:
                        count = _note(changes, count, row, p, 1)
        if what == SUBSCRIBE and not held[pair[row]]:
            held[pair[row]] = True
            count = _note(changes, count, row, pair[row], 1)
        if what == UNSUBSCRIBE:
            held[pair[row]] = False
            if opened:
                count = _note(changes, count, row, pair[row], -1)
    return sessions, count
