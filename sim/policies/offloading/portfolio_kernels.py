"""Compiled parts of the portfolio: whom capacity suffices for, and what is idle. Slow twin: tests/oracles/portfolio.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel


@kernel
def reachable(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    event_rate: NDArray[np.int64],
    cost: NDArray[np.float64],
    need: NDArray[np.int64],
    capacity: float,
) -> NDArray[np.bool_]:
    """Subscribers (n) that the capacity may satisfy: topics that fit it suffice, and so does it for the cheapest parts of them."""
    found = np.zeros(need.size, np.bool_)
    for subscriber in range(need.size):
        received, spent = 0, 0.0
        for i in range(indptr[subscriber], indptr[subscriber + 1]):
            topic = indices[i]
            if cost[topic] <= capacity:
                received += event_rate[topic]
                spent += cost[topic]
        if received < need[subscriber]:
            continue
        if spent > capacity:
            wanted = indices[indptr[subscriber] : indptr[subscriber + 1]]
            wanted = wanted[(cost[wanted] <= capacity) & (event_rate[wanted] > 0)]
            price = cost[wanted] / event_rate[wanted]
            received, spent = 0, 0.0
            for k in np.argsort(price):
                taken = min(need[subscriber] - received, event_rate[wanted[k]])
                received += taken
                spent += taken * price[k]
            spent *= 1 - 1e-9  # rounding excludes nobody
        found[subscriber] = spent <= capacity
    return found


@kernel
def idle(
    first_subscriber: NDArray[np.int64],
    subscribers: NDArray[np.int32],
    event_rate: NDArray[np.int64],
    need: NDArray[np.int64],
    received: NDArray[np.int64],
    topics: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Which of these topics can go, in turn, without anybody being satisfied no more; `received` (n) is what is left without them."""
    found = np.ones(topics.size, np.bool_)
    for k, topic in enumerate(topics):
        rate = event_rate[topic]
        first, last = first_subscriber[topic], first_subscriber[topic + 1]
        for i in range(first, last):
            subscriber = subscribers[i]
            if 0 <= received[subscriber] - need[subscriber] < rate:
                found[k] = False
                break
        if found[k]:
            for i in range(first, last):
                received[subscribers[i]] -= rate
    return found
