"""Links between brokers: how long a hop takes, with jitter keyed by message, first in first out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sim.base.randomness_kernels import keyed_normal
from sim.overlay.pair_times import PairTimes


class _Row(dict[int, float]):
    """Hop times from a broker, each computed on first use."""

    def __init__(self, hops: PairTimes, source: int) -> None:
        self._hops, self._source = hops, source

    def __missing__(self, destination: int) -> float:
        time = self[destination] = float(self._hops[self._source, destination])
        return time


class Links:
    """Hop times (s) between brokers. With jitter σ > 0 each has a lognormal factor with mean 1, keyed by (message, link).

    FIFO per link: with jitter, a message arrives no earlier than the last one on its link; without, this is always so. `hops` are
    the times without jitter; if there is no jitter they are `fixed`, by source, for callers that add them up themselves.
    """

    def __init__(self, hops: PairTimes, jitter: float, key: int) -> None:
        self.hops = hops
        self.jitter, self.key, self.fixed = jitter, key, not jitter
        self._rows: dict[int, _Row] = {}
        self.last: dict[int, float] = {}

    def times(self, source: int) -> Mapping[int, float]:
        """The hop times from a broker to each (s), without jitter."""
        row = self._rows.get(source)
        if row is None:
            row = self._rows[source] = _Row(self.hops, source)
        return row

    def arrival(self, now: float, source: int, destination: int, identity: int) -> float:
        """When a message sent now arrives; `identity` is the number of its flight or control message."""
        delay = self.times(source)[destination]
        if not self.jitter:
            return now + delay
        link = source * len(self.hops) + destination
        sigma = self.jitter
        time = now + delay * math.exp(sigma * keyed_normal(self.key, identity, link) - sigma * sigma / 2)
        time = max(time, self.last.get(link, 0.0))
        self.last[link] = time
        return time
