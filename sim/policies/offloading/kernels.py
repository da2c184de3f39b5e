"""Compiled kernels over interests: the subscribers of a topic, and what subscribers receive. Slow twin: tests/oracles/offloading.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def degrees(indices: NDArray[np.int32], topics: int) -> NDArray[np.int64]:
    """The number of subscribers of each topic (l)."""
    counts = np.zeros(topics, np.int64)
    for i in range(indices.size):
        counts[indices[i]] += 1
    return counts


@kernel
def received(indptr: NDArray[np.int64], indices: NDArray[np.int32], event_rate: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of events that each subscriber receives (n) of these topics."""
    totals = np.zeros(indptr.size - 1, np.int64)
    for subscriber in range(totals.size):
        total = 0
        for i in range(indptr[subscriber], indptr[subscriber + 1]):
            total += event_rate[indices[i]]
        totals[subscriber] = total
    return totals
