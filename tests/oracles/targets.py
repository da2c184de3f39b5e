"""Slow, obvious versions of the counts of content-based subscriptions; imports nothing of sim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Subscription = dict[int, int]
"""Field → value that it asks for."""


def rows(indptr: NDArray[np.int64], field: NDArray[np.int32], value: NDArray[np.int32]) -> list[Subscription]:
    """Subscriptions of CSR arrays."""
    bounds = indptr.tolist()
    pairs = list(zip(field.tolist(), value.tolist(), strict=True))
    return [dict(pairs[start:stop]) for start, stop in itertools.pairwise(bounds)]


def matches(subscriptions: Sequence[Subscription], published: NDArray[np.int32]) -> list[list[int]]:
    """For each publication (a row of values) all subscriptions that match it: every predicate of every one is looked at."""
    fields = [field for wants in subscriptions for field in wants]
    values = [value for wants in subscriptions for value in wants.values()]
    starts = np.cumsum([0, *map(len, subscriptions[:-1])])
    wanted = np.logical_and.reduceat(published[:, fields] == values, starts, axis=1)
    return [np.flatnonzero(row).tolist() for row in wanted]


def viable(subscriptions: Sequence[Subscription], fields: int, values: int) -> set[frozenset[int]]:
    """All target sets that any publication has: every publication that there is is tried."""
    everything = np.array(list(itertools.product(range(values), repeat=fields)), np.int32)
    return {frozenset(target) for target in matches(subscriptions, everything)}


def within(subsets: Sequence[Sequence[int]], match: int) -> set[frozenset[int]]:
    """All choices of `match` members of a subset."""
    return {frozenset(chosen) for subset in subsets for chosen in itertools.combinations(subset, match)}


def most_disjoint(targets: set[frozenset[int]]) -> int:
    """The largest number of targets of which no two have a member in common, by trying all."""

    def packed(left: list[frozenset[int]]) -> Iterator[int]:
        yield 0
        for i, first in enumerate(left):
            yield 1 + max(packed([other for other in left[i + 1 :] if not first & other]))

    return max(packed(sorted(targets, key=sorted)))
