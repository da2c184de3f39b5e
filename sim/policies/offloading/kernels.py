"""Compiled kernels over interests: who subscribes to a topic, what subscribers receive. Slow twin: tests/oracles/offloading.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel


@kernel
def degrees(indices: NDArray[np.int32], topics: int) -> NDArray[np.int64]:
    """The subscribers of each topic (l)."""
    counts = np.zeros(topics, np.int64)
    for i in range(indices.size):
        counts[indices[i]] += 1
    return counts


@kernel
def transpose(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], topics: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The CSR of subscribers by topic, ascending for each topic, of that of topics by subscriber."""
    starts = np.zeros(topics + 1, np.int64)
    for i in range(indices.size):
        starts[indices[i] + 1] += 1
    for topic in range(topics):
        starts[topic + 1] += starts[topic]
    free = starts[:-1].copy()
    subscribers = np.empty(indices.size, np.int32)
    for subscriber in range(indptr.size - 1):
        for i in range(indptr[subscriber], indptr[subscriber + 1]):
            topic = indices[i]
            subscribers[free[topic]] = subscriber
            free[topic] += 1
    return starts, subscribers


@kernel
def received(indptr: NDArray[np.int64], indices: NDArray[np.int32], event_rate: NDArray[np.int64]) -> NDArray[np.int64]:
    """The events of all its topics that each subscriber receives (n)."""
    totals = np.zeros(indptr.size - 1, np.int64)
    for subscriber in range(totals.size):
        total = 0
        for i in range(indptr[subscriber], indptr[subscriber + 1]):
            total += event_rate[indices[i]]
        totals[subscriber] = total
    return totals
