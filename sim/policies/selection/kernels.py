"""Compiled utility of brokers for a user. Slow twin: tests/oracles/selection.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel

OVERLAP, JACCARD, MEAN_USER = 0, 1, 2


@kernel
def best_broker(
    candidates: NDArray[np.int32],
    current: int,
    topics: NDArray[np.int32],
    wanted: NDArray[np.int32],
    broker_topics: NDArray[np.int64],
    load: NDArray[np.int64],
    users: NDArray[np.int64],
    own_wanted: NDArray[np.int32],
    own_topics: int,
    own_load: int,
    own_users: int,
    total_load: int,
    load_weight: float,
    formula: int,
    hysteresis: float,
) -> int:
    """The candidate with the highest utility (algorithm 1); ties: current, lower load, lower id. Arguments as in SelectionView.

    Utilities are compared as numerators over one denominator, similarity · total - weight · load, so that equal ones are equal:
    with OVERLAP both sides are multiplied by |s| as well and stay whole numbers for a whole weight.
    """
    best, best_key, best_load = -1, 0.0, 0
    current_key, seen_current = 0.0, False
    size = topics.size
    scale = float(max(size, 1)) if formula == OVERLAP else 1.0
    for broker in candidates:
        own = broker == current
        common, summed = 0, 0
        for i in range(size):
            n = own_wanted[i] if own else wanted[topics[i], broker]
            summed += n
            if n > 0:
                common += 1
        if formula == OVERLAP:
            similarity = float(common)
        elif formula == JACCARD:
            union = (own_topics if own else broker_topics[broker]) + size - common
            similarity = common / union if union > 0 else 0.0
        else:
            members = own_users if own else users[broker]
            similarity = summed / (size * members) if size * members > 0 else 0.0
        broker_load = own_load if own else load[broker]
        key = similarity * total_load - load_weight * (scale * broker_load)
        if own:
            current_key, seen_current = key, True
        better = best < 0 or key > best_key
        if not better and key == best_key and best != current:
            better = own or broker_load < best_load or (broker_load == best_load and broker < best)
        if better:
            best, best_key, best_load = broker, key, broker_load
    if seen_current and best_key - current_key <= hysteresis * scale * total_load:
        return current
    return best
