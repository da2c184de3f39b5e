"""Compiled utility of brokers for a user. Slow twin: tests/oracles/selection.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

OVERLAP, JACCARD, MEAN_USER = 0, 1, 2


class Utility(NamedTuple):
    """A similarity as a quotient of whole numbers, and a load."""

    numerator: int
    denominator: int
    load: int


@kernel
def advantage(one: Utility, other: Utility, total_load: int, load_weight: float) -> float:
    """How much better one utility, similarity - weight · load / total, is than another, times both denominators and the total.

    Over one denominator, so that equal ones come out as equal: whole numbers, and exact, for a whole weight.
    """
    similarity = (one.numerator * other.denominator - other.numerator * one.denominator) * float(total_load)
    return similarity - load_weight * ((one.load - other.load) * float(one.denominator * other.denominator))


@kernel
def best_broker(
    candidates: NDArray[np.int32],
    topics: NDArray[np.int32],
    wanted: NDArray[np.int32],
    sizes: NDArray[np.int64],
    own: tuple[int, int, int, int],
    own_wanted: NDArray[np.int32],
    total_load: int,
    rule: tuple[int, float, float],
) -> int:
    """The candidate with the highest utility (algorithm 1) for a user who wants `topics`; ties: current, lower load, lower id.

    `wanted` (topics, brokers) and `sizes` (3, brokers: topics, load, users) are what brokers reported; `own` is the user's own broker
    (-1 for a user that joins), and its topics, load and users without the user, `own_wanted` (`topics`) likewise. `rule`: the formula,
    the load's weight, and the hysteresis. Records would take longer to be handed over than all else.
    """
    own_broker, own_topics, own_load, own_users = own
    formula, load_weight, hysteresis = rule
    best, highest = -1, Utility(0, 1, 0)
    present = Utility(0, 0, 0)  # denominator 0: the current broker is no candidate
    size = topics.size
    for broker in candidates:
        is_own = broker == own_broker
        common, summed = 0, 0
        for i in range(size):
            n = own_wanted[i] if is_own else wanted[topics[i], broker]
            summed += n
            if n > 0:
                common += 1
        if formula == OVERLAP:
            numerator, denominator = common, size
        elif formula == JACCARD:
            numerator, denominator = common, (own_topics if is_own else sizes[0, broker]) + size - common
        else:
            numerator, denominator = summed, size * (own_users if is_own else sizes[2, broker])
        # Nothing in common with nobody, or with nothing: similarity 0
        here = Utility(numerator, max(denominator, 1), own_load if is_own else sizes[1, broker])
        if is_own:
            present = here
        better = best < 0
        if not better:
            gain = advantage(here, highest, total_load, load_weight)
            better = gain > 0
            if gain == 0 and best != own_broker:
                better = is_own or here.load < highest.load or (here.load == highest.load and broker < best)
        if better:
            best, highest = broker, here
    if present.denominator > 0:
        gain = advantage(highest, present, total_load, load_weight)
        if gain <= hysteresis * (float(highest.denominator * present.denominator) * total_load):
            return own_broker
    return best
