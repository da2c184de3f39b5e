"""Compiled bookkeeping of one publication: every count is a whole number and every sum is exact, so that order does not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel

# columns of the counters per window
(
    DELIVERED,
    DELIVERED_USERS,
    TREE_HOPS,
    UPLINK_HOPS,
    INTERNAL,
    EXTERNAL,
    NOTIFICATION_BYTES,
    UPLINKS,
    UPLINK_BYTES,
    STRETCHED,
) = range(10)
COUNTERS = 10
# rows of the exact sums per window
NOTIFICATION_DELAY, TREE_DELAY, USER_NOTIFICATION_DELAY, USER_TREE_DELAY, STRETCH = range(5)
SUMS = 5
# columns of the counters per broker
RECEIVED, SENT, BROKER_DELIVERED, RELAYED = range(4)

FIRST_BIN = 1e-6  # s: delays below it share bin 0
BIN_WIDTH = 0.01  # relative width of all others
BINS = 1 << 12  # room for delays up to 4e11 s


@kernel
def due_at_root(
    nodes: NDArray[np.int32], broker_of: NDArray[np.int32], wanted: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], int, int]:
    """Brokers of a tree's nodes, their users that want the topic, and how many brokers and users that makes."""
    size = nodes.size
    brokers = np.empty(size, np.int32)
    users = np.empty(size, np.int32)
    due, due_users = 0, 0
    for i in range(size):
        brokers[i] = broker_of[nodes[i]]
        users[i] = wanted[brokers[i]]
        if users[i] > 0:
            due += 1
            due_users += users[i]
    return brokers, users, due, due_users


@kernel
def add_exactly(sums: NDArray[np.int64], value: float) -> None:
    """Add a float to an exact sum held as two integers, in units of 2^-20 and 2^-72 (the latter below 2^52)."""
    scaled = value * 1048576.0
    whole = np.floor(scaled)
    sums[0] += np.int64(whole)
    sums[1] += np.int64((scaled - whole) * 4503599627370496.0)
    sums[0] += sums[1] >> 52
    sums[1] &= 4503599627370495


@kernel
def delay_bin(delay: float) -> int:
    """The histogram bin of a delay: 0 below FIRST_BIN, from there on bins that are 1 % wide."""
    if delay < 1e-6:
        return 0
    return min(1 + int(np.log(delay / 1e-6) / np.log(1.01)), BINS - 1)


@kernel
def record_flight(
    uplink: NDArray[np.int32],
    uplinks_sent: int,
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    depth: NDArray[np.int32],
    due_users: NDArray[np.int32],
    arrival: NDArray[np.float64],
    sent: NDArray[np.uint8],
    published: float,
    rooted: float,
    size: int,
    measured: bool,
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    window: int,
    keys: NDArray[np.int64],
    weights: NDArray[np.int64],
    used: int,
) -> int:
    """Enter one publication into the books; returns how much of `keys` is used now.

    `uplink`: brokers on the way up, of which the first `uplinks_sent` hops were taken; the tree's arrays as in TopicTree and Flight
    (empty where the root was not reached, then `rooted` is NaN, or where nobody wants the topic). `counters` and `sums` are those of
    its window. `keys` and `weights` collect the delay histogram, one entry per delivery: window · BINS + bin, users. Links and
    brokers are counted when `measured`.
    """
    for i in range(uplinks_sent):
        counters[UPLINKS] += 1
        counters[UPLINK_BYTES] += size
        if measured:
            links[uplink[i], uplink[i + 1], 0] += 1
            links[uplink[i], uplink[i + 1], 1] += size
            per_broker[uplink[i], SENT] += 1
            if uplink[i + 1] != uplink[uplink.size - 1]:
                per_broker[uplink[i + 1], RELAYED] += 1
            per_broker[uplink[i + 1], RECEIVED] += 1
    if not np.isnan(rooted):
        counters[UPLINK_HOPS] += uplink.size - 1
    for i in range(brokers.size):
        here = brokers[i]
        if sent[i]:
            counters[INTERNAL if due_users[i] > 0 else EXTERNAL] += 1
            counters[NOTIFICATION_BYTES] += size
            if measured:
                above = brokers[parents[i]]
                links[above, here, 0] += 1
                links[above, here, 1] += size
                per_broker[above, SENT] += 1
                per_broker[here, RECEIVED] += 1
                if due_users[i] == 0:
                    per_broker[here, RELAYED] += 1
        if due_users[i] == 0 or np.isnan(arrival[i]):
            continue
        users = due_users[i]
        delay = arrival[i] - published
        tree_delay = arrival[i] - rooted
        counters[DELIVERED] += 1
        counters[DELIVERED_USERS] += users
        counters[TREE_HOPS] += depth[i]
        add_exactly(sums[NOTIFICATION_DELAY], delay)
        add_exactly(sums[TREE_DELAY], tree_delay)
        add_exactly(sums[USER_NOTIFICATION_DELAY], delay * users)
        add_exactly(sums[USER_TREE_DELAY], tree_delay * users)
        direct = hop_delay[uplink[0], here]
        if direct > 0.0:
            counters[STRETCHED] += 1
            add_exactly(sums[STRETCH], delay / direct)
        if measured:
            per_broker[here, BROKER_DELIVERED] += 1
            maxima[0] = max(maxima[0], delay)
        keys[used] = window * BINS + delay_bin(delay)
        weights[used] = users
        used += 1
    return used
