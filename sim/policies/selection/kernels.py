"""Compiled utility of brokers for a user. Slow twin: tests/oracles/selection.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

OVERLAP, JACCARD, MEAN_USER = 0, 1, 2


@kernel
def advantage(
    numerator: int,
    denominator: int,
    load: int,
    other_numerator: int,
    other_denominator: int,
    other_load: int,
    total_load: int,
    load_weight: float,
) -> float:
    """How much better one utility, similarity - weight · load / total, is than another, times both denominators and the total.

    Over one denominator, so that equal ones come out as equal: whole numbers, and exact, for a whole weight.
    """
    similarity = (numerator * other_denominator - other_numerator * denominator) * float(total_load)
    return similarity - load_weight * ((load - other_load) * float(denominator * other_denominator))


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
    """The candidate with the highest utility (algorithm 1); ties: current, lower load, lower id. Arguments as in SelectionView."""
    best, best_numerator, best_denominator, best_load = -1, 0, 1, 0
    current_numerator, current_denominator, current_load = 0, 0, 0  # denominator 0: the current broker is no candidate
    size = topics.size
    for broker in candidates:
        own = broker == current
        common, summed = 0, 0
        for i in range(size):
            n = own_wanted[i] if own else wanted[topics[i], broker]
            summed += n
            if n > 0:
                common += 1
        if formula == OVERLAP:
            numerator, denominator = common, size
        elif formula == JACCARD:
            numerator, denominator = common, (own_topics if own else broker_topics[broker]) + size - common
        else:
            numerator, denominator = summed, size * (own_users if own else users[broker])
        denominator = max(denominator, 1)  # nothing in common with nobody, or with nothing: similarity 0
        load_here = own_load if own else load[broker]
        if own:
            current_numerator, current_denominator, current_load = numerator, denominator, load_here
        better = best < 0
        if not better:
            gain = advantage(
                numerator,
                denominator,
                load_here,
                best_numerator,
                best_denominator,
                best_load,
                total_load,
                load_weight,
            )
            better = gain > 0
            if gain == 0 and best != current:
                better = own or load_here < best_load or (load_here == best_load and broker < best)
        if better:
            best, best_numerator, best_denominator, best_load = broker, numerator, denominator, load_here
    if current_denominator > 0:
        gain = advantage(
            best_numerator,
            best_denominator,
            best_load,
            current_numerator,
            current_denominator,
            current_load,
            total_load,
            load_weight,
        )
        if gain <= hysteresis * (float(best_denominator * current_denominator) * total_load):
            return current
    return best
