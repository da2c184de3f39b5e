"""The compiled part of event logs: sessions and subscriptions from rows; its slow twin is in tests/oracles/events.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

CONNECT, SUBSCRIBE, UNSUBSCRIBE, DISCONNECT = range(4)


@kernel
def follow_sessions(
    action: NDArray[np.int8],
    client: NDArray[np.int32],
    pair: NDArray[np.int64],
    indptr: NDArray[np.int64],
    persistent: bool,
    effect: NDArray[np.bool_],
    began: NDArray[np.int64],
    ended: NDArray[np.int64],
    row_out: NDArray[np.int64],
    pair_out: NDArray[np.int64],
    action_out: NDArray[np.int8],
) -> tuple[int, int]:
    """Follow the rows in order; the number of sessions and of changes. Changes are only counted where the outputs have no room.

    `pair`: the (client, topic filter) of a row, those of client c being `indptr[c]` to `indptr[c + 1]`. `effect` is made false
    for rows that change nothing. `began`, `ended`: the rows at which a session begins and ends, -1 where it stays open; room for
    one per row. `row_out`, `pair_out`, `action_out`: which row makes a subscription come into force (+1) or cease (-1).
    """
    held = np.zeros(indptr[-1], np.bool_)
    session = np.full(indptr.size - 1, -1, np.int64)
    sessions = changes = 0
    room = row_out.size
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
        # a client that connects while it is connected begins anew: what persists is not interrupted by that
        if what == DISCONNECT or (what == CONNECT and opened):
            ended[session[who]] = row
            session[who] = -1
            if not (persistent and what == CONNECT):
                for p in range(first, stop):
                    if held[p]:
                        held[p] = persistent
                        if changes < room:
                            row_out[changes], pair_out[changes], action_out[changes] = row, p, -1
                        changes += 1
        if what == CONNECT or (what == SUBSCRIBE and not opened):
            began[sessions], ended[sessions] = row, -1
            session[who] = sessions
            sessions += 1
            if not opened:
                for p in range(first, stop):
                    if held[p]:
                        if changes < room:
                            row_out[changes], pair_out[changes], action_out[changes] = row, p, 1
                        changes += 1
        if what == SUBSCRIBE and not held[pair[row]]:
            held[pair[row]] = True
            if changes < room:
                row_out[changes], pair_out[changes], action_out[changes] = row, pair[row], 1
            changes += 1
        if what == UNSUBSCRIBE:
            held[pair[row]] = False
            if opened:
                if changes < room:
                    row_out[changes], pair_out[changes], action_out[changes] = row, pair[row], -1
                changes += 1
    return sessions, changes
