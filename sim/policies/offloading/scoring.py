"""The data of greedy kernels: a problem's topics and subscribers, and integer scores of topics."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.policies.offloading import greedy_kernels
from sim.policies.offloading.problem import Objective, OffloadingProblem

_BITS, _SHARE_BITS = 40, 30
"""Bits of a score of B3M: in total, and of the worth of an event to the subscriber with the greatest need."""
_Number = TypeVar("_Number", bound=np.generic)


def instance_of(
    problem: OffloadingProblem, objective: Objective, active: NDArray[np.bool_] | None = None
) -> greedy_kernels.Instance:
    """The instance in which nobody has received anything; subscribers that are not `active` (n) need nothing."""
    of_shares = objective == "satisfaction"
    bits = 62 - int(problem.degrees.max(initial=1)).bit_length()
    if not of_shares:  # as few as suffice: sums of up to 53 bits are divided exactly, so that equal scores are equal
        bits = min(bits, max(_BITS, int(problem.need.max(initial=0)).bit_length() + _SHARE_BITS))
    one = 1 << bits
    # half the width needs half the cache lines, where it is enough
    largest = max(problem.event_rate.max(initial=0), problem.need.max(initial=0))
    events = np.dtype(np.int32 if largest < 1 << 31 else np.int64)
    missing = problem.need.astype(events)
    if active is not None:
        missing[~active] = 0
    return greedy_kernels.Instance(
        writable(problem.indptr),
        writable(problem.indices) if of_shares else problem.indices.copy(),
        np.zeros(0, np.int32) if of_shares else np.diff(problem.indptr).astype(np.int32),
        *problem.by_topic,
        problem.event_rate.astype(events),
        missing,
        greedy_kernels.worth_of_events(problem.need, one) if of_shares else np.zeros(0, np.int64),
        one,
        of_shares,
        np.zeros(problem.topics, np.int64),
    )


def writable(array: NDArray[_Number]) -> NDArray[_Number]:
    """The array, or a copy if it is read-only: kernels are compiled for writable arrays only."""
    return np.require(array, requirements="W")
