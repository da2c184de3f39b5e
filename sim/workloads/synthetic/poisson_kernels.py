"""The compiled part of workloads with changing interests. Slow twin: tests/oracles/poisson.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def another(below: NDArray[np.float64], row: NDArray[np.int32], share: float) -> int:
    """The topic that is not in `row` (ascending) and ends the first `share` (0 ≤ share < 1) of the weight of all such topics.

    `below[t]` is the weight of all topics before t, `below[-1]` that of all.
    """
    rest = below[-1]
    for held in row:
        rest -= below[held + 1] - below[held]
    place = share * rest
    for held in row:
        if place >= below[held]:
            place += below[held + 1] - below[held]
    topic = min(int(np.searchsorted(below, place, "right")) - 1, below.size - 2)
    while (row == topic).any():  # the sums are not exact
        topic = (topic + 1) % (below.size - 1)
    return topic


@kernel
def draw_weighted(below: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.int32]:
    """Rows of distinct topics, ascending, each drawn by weight from those not yet in the row; in the shape of `shares`."""
    rows, k = shares.shape
    out = np.empty((rows, k), np.int32)
    for i in range(rows):
        for j in range(k):
            topic = another(below, out[i, :j], shares[i, j])
            place = j
            while place > 0 and out[i, place - 1] > topic:
                out[i, place] = out[i, place - 1]
                place -= 1
            out[i, place] = topic
    return out


@kernel
def replacements(
    below: NDArray[np.float64],
    indptr: NDArray[np.int64],
    held: NDArray[np.int32],
    user: NDArray[np.int32],
    slot: NDArray[np.int32],
    share: NDArray[np.float64],
) -> NDArray[np.int32]:
    """The topic gained and the topic given up in each change, shape (changes, 2).

    `held[indptr[u]:indptr[u + 1]]`: the topics of user u, ascending, updated; a change gives up the `slot`-th of its user's topics
    and gains another that the user does not hold, by weight (see `another`).
    """
    out = np.empty((user.size, 2), np.int32)
    for change in range(user.size):
        row = held[indptr[user[change]] : indptr[user[change] + 1]]
        gained = another(below, row, share[change])
        place = slot[change]
        out[change, 0], out[change, 1] = gained, row[place]
        while place > 0 and row[place - 1] > gained:
            row[place] = row[place - 1]
            place -= 1
        while place < row.size - 1 and row[place + 1] < gained:
            row[place] = row[place + 1]
            place += 1
        row[place] = gained
    return out


@kernel
def differences(
    held: NDArray[np.int32], user: NDArray[np.int32], drawn: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
    """The subscription events from held to drawn topics: number of the change, topic, and +1 or -1.

    `held` (users, k), updated, and `drawn` (changes, k) are ascending. A user subscribes to all new topics before it
    unsubscribes from old ones; topics that it keeps cause no event.
    """
    room = 2 * drawn.size
    row, topic, action = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    n = 0
    for change in range(user.size):
        old, new = held[user[change]], drawn[change]
        for wanted, kept, sign in ((new, old, 1), (old, new, -1)):
            for candidate in wanted:
                if not (kept == candidate).any():
                    row[n], topic[n], action[n] = change, candidate, sign
                    n += 1
        for i in range(new.size):
            old[i] = new[i]
    return row[:n], topic[:n], action[:n]
