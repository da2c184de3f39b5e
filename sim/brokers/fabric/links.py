"""Links between brokers: how long a hop takes, with jitter keyed by what travels, first in first out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness import normal


class Links:
    """Hop times (s) between brokers. With jitter σ > 0 each hop takes a lognormal factor with mean 1, keyed by (message, link).

    FIFO per link: with jitter, a message arrives no earlier than the last one on its link; without, that holds by itself.
    `hop_delay` (brokers, brokers) are the hop times without jitter; `fixed` holds them by source where there is none, for those who add
    them up themselves, and else is empty.
    """

    def __init__(self, hop_delay: NDArray[np.float64], jitter: float, key: int) -> None:
        self.hop_delay = hop_delay
        self._rows: list[list[float]] = hop_delay.tolist()
        self.jitter, self.key = jitter, key
        self.fixed = [] if jitter else self._rows
        self.last: dict[int, float] = {}

    def arrival(self, now: float, source: int, destination: int, identity: int) -> float:
        """When a message sent now arrives; `identity` is the number of what it carries."""
        delay = self._rows[source][destination]
        if not self.jitter:
            return now + delay
        link = source * len(self._rows) + destination
        sigma = self.jitter
        time = now + delay * math.exp(sigma * normal(self.key, identity, link) - sigma * sigma / 2)
        time = max(time, self.last.get(link, 0.0))
        self.last[link] = time
        return time
