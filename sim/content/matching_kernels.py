"""Compiled counting of predicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.compiled import kernel


class Postings(NamedTuple):
    """The arrays of a `MatchingIndex` over the predicates that occur, sorted by field and value.

    Those of a field are `first_value[field]:first_value[field + 1]`, with their `value`; the subscriptions with a predicate are
    `posting[first_posting[p]:first_posting[p + 1]]`, and p is the last predicate of those before `first_other[p]`. `sizes` counts
    the predicates of each subscription.
    """

    first_value: NDArray[np.int64]
    value: NDArray[np.int32]
    first_posting: NDArray[np.int64]
    first_other: NDArray[np.int64]
    posting: NDArray[np.int32]
    sizes: Integers  # of the smallest unsigned type that is wide enough


@kernel
def match_publications(
    published: NDArray[np.int32], postings: Postings, indptr: NDArray[np.int64], increments: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The ids of the subscriptions that publications, rows of `published`, match, row by row.

    Fills in where each row's matches begin and end, and its number of counter increments. Only counters of subscriptions whose last
    predicate holds are checked: no others can match.
    """
    first_value, value, first_posting, first_other, posting, sizes = postings
    matches = np.empty(sizes.size, np.int32)
    counters = np.empty_like(sizes)
    fulfilled = np.empty(published.shape[1], np.int64)
    for p in range(published.shape[0]):
        found, predicates = indptr[p], 0
        if found + sizes.size > matches.size:
            larger = np.empty(2 * (found + sizes.size), np.int32)
            for i in range(found):
                larger[i] = matches[i]
            matches = larger
        counters[:] = 0
        for field in range(published.shape[1]):
            low, wanted = first_value[field], published[p, field]
            among = first_value[field + 1] - low
            while among > 1:  # a binary search without unpredictable branches
                half = among >> 1
                low += half * (value[low + half] <= wanted)
                among -= half
            if among and value[low] == wanted:
                fulfilled[predicates] = low
                predicates += 1
        for i in range(predicates):
            first, end = first_posting[fulfilled[i]], first_posting[fulfilled[i] + 1]
            increments[p] += end - first
            for k in range(first, end):
                counters[posting[k]] += counters.dtype.type(1)
        for i in range(predicates):
            for k in range(first_posting[fulfilled[i]], first_other[fulfilled[i]]):
                if counters[posting[k]] == sizes[posting[k]]:
                    matches[found] = posting[k]
                    found += 1
        matches[indptr[p] : found].sort()
        indptr[p + 1] = found
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
    """Count the predicates of subscriptions that a publication fulfils, added up at `where` (subscriptions) for each."""
    for i in range(subscriptions.size):
        for k in range(indptr[subscriptions[i]], indptr[subscriptions[i] + 1]):
            counts[where[i]] += row[field[k]] == value[k]
