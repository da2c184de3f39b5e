"""Which subscriptions a publication matches: what all matchers have in common, and a counting index over conjunctions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.content.conjunctions import Conjunctions
from sim.content.matching_kernels import Postings, match_publications

Published = TypeVar("Published", contravariant=True)


@dataclass(frozen=True, eq=False)
class Matches:
    """The matches of publications: publication p matches the subscriptions `subscription[indptr[p]:indptr[p + 1]]`, ascending."""

    indptr: NDArray[np.int64]
    subscription: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CountedMatches(Matches):
    """`increments` (publications) are the counter increments, one for each predicate of a subscription that holds."""

    increments: NDArray[np.int64]


class Matcher(Protocol[Published]):
    """An index of subscriptions, built once, in which publications are looked up: rows of values, or topics' names."""

    def match_all(self, published: Published) -> Matches:
        """The subscriptions that each publication matches."""
        ...


class MatchingIndex:
    """An index of the subscriptions with each predicate, built once.

    To match a publication, each of its predicates is looked up, and the counter of every subscription there is incremented: a
    subscription matches if its count reaches its number of predicates.
    """

    def __init__(self, conjunctions: Conjunctions) -> None:
        """Raises ValueError where a subscription has no predicate."""
        sizes = np.diff(conjunctions.indptr)
        if len(sizes) and sizes.min() < 1:
            raise ValueError(f"subscription {sizes.argmin()} has no predicate")
        self._fields = conjunctions.fields
        keys = conjunctions.field.astype(np.int64) << 32 | conjunctions.value
        last = np.zeros(len(keys), np.bool_)
        last[conjunctions.indptr[1:] - 1] = True
        order = np.lexsort((~last, keys))  # for each predicate, the subscriptions of which it is the last come first
        predicates, first = np.unique(keys[order], return_index=True)
        subscription = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._postings = Postings(
            np.searchsorted(predicates >> 32, np.arange(self._fields + 1)),
            (predicates & 0xFFFFFFFF).astype(np.int32),
            np.append(first, len(keys)),
            first + np.bincount(np.searchsorted(predicates, keys[last]), minlength=len(predicates)),
            subscription[order],
            sizes.astype(np.min_scalar_type(self._fields)),  # small counters stay in the cache
        )

    def match_all(self, published: NDArray[np.int32]) -> CountedMatches:
        """Match publications, given as rows of values. Raises ValueError where a row has not one value for every field."""
        if published.ndim != 2 or published.shape[1] != self._fields:
            raise ValueError(
                f"publications of shape {published.shape}, expected a row of {self._fields} values for each"
            )
        indptr, increments = np.zeros(len(published) + 1, np.int64), np.zeros(len(published), np.int64)
        subscription = match_publications(published, self._postings, indptr, increments)
        return CountedMatches(indptr, subscription, increments)

    def match(self, row: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
        """The subscriptions that one publication matches, ascending, and its number of counter increments."""
        matches = self.match_all(row[None])
        return matches.subscription, int(matches.increments[0])
