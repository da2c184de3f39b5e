"""Links between brokers: how long a hop takes, with jitter keyed by what travels, first in first out."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sim.base.randomness import normal


class Links:
    """Hop times (s) between brokers. With jitter σ > 0 each hop takes a lognormal factor with mean 1, keyed by (message, link).

    FIFO per link: with jitter, a message arrives no earlier than the last one on its link; without, that holds by itself.
    `hop_delay` (brokers, brokers) are the hop times without jitter; where there is none they are `fixed`, and those who add them up
    themselves ask for those of a source.
    """

    def __init__(self, hop_delay: NDArray[np.float64], jitter: float, key: int) -> None:
        self.hop_delay = hop_delay
        self.jitter, self.key, self.fixed = jitter, key, not jitter
        self._rows: dict[int, list[float]] = {}
        self.last: dict[int, float] = {}

    def times(self, source: int) -> list[float]:
        """The hop times from a broker to all (s), without jitter."""
        row = self._rows.get(source)
        if row is None:
            row = self._rows[source] = self.hop_delay[source].tolist()
        return row

    def arrival(self, now: float, source: int, destination: int, identity: int) -> float:
        """When a message sent now arrives; `identity` is the number of what it carries."""
        delay = self.times(source)[destination]
        if not self.jitter:
            return now + delay
        link = source * len(self.hop_delay) + destination
        sigma = self.jitter
        time = now + delay * math.exp(sigma * normal(self.key, identity, link) - sigma * sigma / 2)
        time = max(time, self.last.get(link, 0.0))
        self.last[link] = time
        return time
