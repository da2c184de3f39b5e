"""The compiled part of the portfolio: finds topics that satisfy nobody. Slow twin: tests/oracles/portfolio.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def idle(
    first_subscriber: NDArray[np.int64],
    subscribers: NDArray[np.int32],
    event_rate: NDArray[np.int64],
    need: NDArray[np.int64],
    received: NDArray[np.int64],
    topics: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Which of these topics can be dropped, in turn, while all satisfied subscribers stay so; `received` (n) is reduced accordingly."""
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
