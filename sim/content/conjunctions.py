"""Content-based subscriptions as arrays: conjunctions of equalities between fields and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_FIELDS = 100_000
"""The most fields that a publication may have."""


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Subscriptions, each a conjunction of predicates `field = value`; fields and values are numbers from 0.

    Subscription s requires `value[k]` in `field[k]` for k in `indptr[s]:indptr[s + 1]`, fields ascending and distinct. `owner` (s)
    is the subscriber of each; a subscriber with several has their disjunction. Publications are rows of a (publications, `fields`)
    array of values, one for every field.
    """

    indptr: NDArray[np.int64]
    field: NDArray[np.int32]
    value: NDArray[np.int32]
    owner: NDArray[np.int32]
    fields: int
    values: int

    def __len__(self) -> int:
        return len(self.owner)
