"""Compiled bookkeeping of publications: every count is a whole number and every sum is exact, so that order does not matter."""

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
    INTERNAL_BYTES,
    EXTERNAL_BYTES,
    UPLINKS,
    UPLINK_BYTES,
    STRETCHED,
) = range(11)
COUNTERS = 11
# rows of the exact sums per window
NOTIFICATION_DELAY, TREE_DELAY, USER_NOTIFICATION_DELAY, USER_TREE_DELAY, STRETCH = range(5)
SUMS = 5
# columns of the counters per broker
RECEIVED, SENT, BROKER_DELIVERED, RELAYED = range(4)

FIRST_BIN = 1e-6  # s: delays below it share bin 0
BIN_WIDTH = 0.01  # relative width of all others
BINS = 1 << 12  # room for delays up to 4e11 s


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
def record_flights(
    uplinks: NDArray[np.int32],
    uplink_from: NDArray[np.int64],
    uplinks_sent: NDArray[np.int64],
    brokers: NDArray[np.int32],
    parents: NDArray[np.int32],
    depth: NDArray[np.int32],
    due_users: NDArray[np.int32],
    arrival: NDArray[np.float64],
    sent: NDArray[np.uint8],
    tree_from: NDArray[np.int64],
    published: NDArray[np.float64],
    rooted: NDArray[np.float64],
    size: NDArray[np.int64],
    window: NDArray[np.int64],
    measured: NDArray[np.bool_],
    hop_delay: NDArray[np.float64],
    counters: NDArray[np.int64],
    sums: NDArray[np.int64],
    maxima: NDArray[np.float64],
    links: NDArray[np.int64],
    per_broker: NDArray[np.int64],
    keys: NDArray[np.int64],
    weights: NDArray[np.int64],
    used: int,
) -> int:
    """Enter n publications into the books; returns how much of `keys` is used now.

    Publication f went up over the brokers `uplinks[uplink_from[f]:uplink_from[f + 1]]`, of which it took the first
    `uplinks_sent[f]` hops, and down the tree whose arrays (as in TopicTree and Flight) are the parts `tree_from[f]:tree_from[f + 1]`
    of the next six; none where nobody wants the topic or the root was not reached (then `rooted` is NaN). `counters` and
    `sums` have a row per window; links and brokers are counted in windows that are `measured`. `keys` and `weights` collect the
    delay histogram, one entry per delivery: window · BINS + bin, users.
    """
    for f in range(published.size):
        w = window[f]
        count, total, counted = counters[w], sums[w], measured[w]
        publisher, root = uplinks[uplink_from[f]], uplinks[uplink_from[f + 1] - 1]
        for i in range(uplink_from[f], uplink_from[f] + uplinks_sent[f]):
            here, there = uplinks[i], uplinks[i + 1]
            count[UPLINKS] += 1
            count[UPLINK_BYTES] += size[f]
            if counted:
                links[here, there, 0] += 1
                links[here, there, 1] += size[f]
                per_broker[here, SENT] += 1
                per_broker[there, RECEIVED] += 1
                if there != root:
                    per_broker[there, RELAYED] += 1
        if not np.isnan(rooted[f]):
            count[UPLINK_HOPS] += uplink_from[f + 1] - uplink_from[f] - 1
        for i in range(tree_from[f], tree_from[f + 1]):
            here, users = brokers[i], due_users[i]
            if sent[i]:
                count[INTERNAL if users > 0 else EXTERNAL] += 1
                count[INTERNAL_BYTES if users > 0 else EXTERNAL_BYTES] += size[f]
                if counted:
                    above = brokers[tree_from[f] + parents[i]]
                    links[above, here, 0] += 1
                    links[above, here, 1] += size[f]
                    per_broker[above, SENT] += 1
                    per_broker[here, RECEIVED] += 1
                    if users == 0:
                        per_broker[here, RELAYED] += 1
            if users == 0 or np.isnan(arrival[i]):
                continue
            delay = arrival[i] - published[f]
            tree_delay = arrival[i] - rooted[f]
            count[DELIVERED] += 1
            count[DELIVERED_USERS] += users
            count[TREE_HOPS] += depth[i]
            add_exactly(total[NOTIFICATION_DELAY], delay)
            add_exactly(total[TREE_DELAY], tree_delay)
            add_exactly(total[USER_NOTIFICATION_DELAY], delay * users)
            add_exactly(total[USER_TREE_DELAY], tree_delay * users)
            direct = hop_delay[publisher, here]
            if direct > 0.0:
                count[STRETCHED] += 1
                add_exactly(total[STRETCH], delay / direct)
            if counted:
                per_broker[here, BROKER_DELIVERED] += 1
                maxima[0] = max(maxima[0], delay)
            keys[used] = w * BINS + delay_bin(delay)
            weights[used] = users
            used += 1
    return used
