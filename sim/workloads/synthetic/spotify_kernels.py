"""The compiled part of workloads at Spotify's scale. Slow twin: tests/oracles/spotify.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel
from sim.base.randomness_kernels import keyed_uniform


def guide_to(below: NDArray[np.float64]) -> NDArray[np.int32]:
    """The index into `below` for `weighted`, with one entry per topic."""
    topics = below.size - 1
    first: NDArray[np.int32] = np.searchsorted(below, np.arange(topics) / topics * below[-1], "right").astype(np.int32)
    return first - np.int32(1)


@kernel
def weighted(below: NDArray[np.float64], guide: NDArray[np.int32], share: float) -> int:
    """The topic at a share (in (0, 1)) of the total weight: the last one with at most that much weight below it.

    `below[t]` is the weight of all topics before t, `below[-1]` that of all; `guide[g]` is the topic at g / `guide.size`
    of it, where the search begins (indexed search; Chen and Asau 1974).
    """
    place = share * below[-1]
    topic = guide[int(share * guide.size)]
    while below[topic] > place:  # in case the guide's share was rounded up
        topic -= 1
    while below[topic + 1] <= place:
        topic += 1
    return int(topic)


@kernel
def one_at_a_time(user: NDArray[np.int32], start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the sessions, sorted by user and start, that begin after the user's previously marked session has ended."""
    kept = np.empty(user.size, np.bool_)
    last, until = -1, 0.0
    for session in range(user.size):
        kept[session] = user[session] != last or start[session] > until
        if kept[session]:
            last, until = user[session], end[session]
    return kept


@kernel
def after_online(
    firsts: NDArray[np.int64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    user: NDArray[np.int32],
    since: NDArray[np.float64],
    online: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The time at which each user has been online for a duration since a time, or NaN; its sessions are `firsts[u]:firsts[u + 1]`."""
    out = np.full(user.size, np.nan)
    for i in range(user.size):
        left = online[i]
        for session in range(firsts[user[i]], firsts[user[i] + 1]):
            begin = max(start[session], since[i])
            if begin + left < end[session]:
                out[i] = begin + left
                break
            left -= max(end[session] - begin, 0.0)
    return out


@kernel
def draw_interests(
    key: int,
    sizes: NDArray[np.int32],
    below: NDArray[np.float64],
    guide: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
) -> None:
    """Draw `sizes[u]` topics of each user u by weight (see `weighted`) into a CSR, ascending; repeated draws count once.

    The k-th draw of u is keyed by (key, u, k). `indices` has room for all draws; the first `indptr[-1]` are the result.
    """
    n = 0
    for user in range(sizes.size):
        row = indices[n : n + sizes[user]]
        for k in range(row.size):
            row[k] = weighted(below, guide, keyed_uniform(key, user, k))
        row.sort()
        distinct = 0
        for topic in row:
            if distinct == 0 or row[distinct - 1] != topic:
                row[distinct] = topic
                distinct += 1
        n += distinct
        indptr[user + 1] = n
