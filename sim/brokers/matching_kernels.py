"""Compiled counting of predicates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.compiled import kernel


@kernel
def count_predicates(
    row: NDArray[np.int32],
    first_value: NDArray[np.int64],
    value: NDArray[np.int32],
    first_posting: NDArray[np.int64],
    posting: NDArray[np.int32],
    counters: NDArray[Any],
) -> int:
    """Count every subscription up for each of its predicates that holds of a publication; how many counters that moved."""
    moved = 0
    for field in range(row.size):
        low, wanted = first_value[field], row[field]
        among = first_value[field + 1] - low
        while among > 1:  # a binary search without a branch that is taken at random
            half = among >> 1
            low += half * (value[low + half] <= wanted)
            among -= half
        if among and value[low] == wanted:
            for k in range(first_posting[low], first_posting[low + 1]):
                counters[posting[k]] += counters.dtype.type(1)
            moved += first_posting[low + 1] - first_posting[low]
    return moved


@kernel
def collect_equal(
    counters: NDArray[Any], sizes: NDArray[Any], ones: np.uint64, matches: NDArray[np.int32], found: int
) -> int:
    """Append where counters are equal to `sizes`, ascending, to the first `found` matches; how many there are then.

    Eight bytes are looked at together: `ones` has a 1 in each of the counters that they hold, and a lane of a word x is 0
    somewhere exactly where (x - ones) & ~x has the highest bit of a lane set.
    """
    lanes = 8 // counters.itemsize
    highest = ones << np.uint64(64 // lanes - 1)
    counted, wanted = counters.view(np.uint64), sizes.view(np.uint64)
    for word in range(counted.size):
        x = counted[word] ^ wanted[word]
        if (x - ones) & ~x & highest:
            for subscription in range(lanes * word, lanes * (word + 1)):
                if counters[subscription] == sizes[subscription]:
                    matches[found] = subscription
                    found += 1
    return found


@kernel
def match_publications(
    published: NDArray[np.int32],
    first_value: NDArray[np.int64],
    value: NDArray[np.int32],
    first_posting: NDArray[np.int64],
    posting: NDArray[np.int32],
    sizes: NDArray[Any],
    ones: np.uint64,
    indptr: NDArray[np.int64],
    increments: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Match publications, rows of `published`, by the arrays of a `MatchingIndex`; the ids of all matches, row by row.

    Fills in where each row's begin and end, and how many counters each row moved. Counters are looked at once all are moved: to
    look at each one when it is takes four times as long.
    """
    matches = np.empty(sizes.size, np.int32)
    counters = np.empty_like(sizes)
    for p in range(published.shape[0]):
        found = indptr[p]
        if found + sizes.size > matches.size:
            larger = np.empty(2 * (found + sizes.size), np.int32)
            larger[:found] = matches[:found]
            matches = larger
        counters[:] = 0
        increments[p] = count_predicates(published[p], first_value, value, first_posting, posting, counters)
        indptr[p + 1] = collect_equal(counters, sizes, ones, matches, found)
    return matches[: indptr[-1]].copy()


@kernel
def count_holding(
    row: NDArray[np.int32],
    subscriptions: NDArray[np.int32],
    indptr: NDArray[np.int64],
    field: NDArray[np.int32],
    value: NDArray[np.int32],
    where: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Count the predicates of some subscriptions that hold of a publication, each `where` the subscription is (subscriptions)."""
    for i in range(subscriptions.size):
        for k in range(indptr[subscriptions[i]], indptr[subscriptions[i] + 1]):
            counts[where[i]] += row[field[k]] == value[k]
