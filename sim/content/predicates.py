"""Content on a network of topics: every predicate is a topic, and each subscription waits at its most selective one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.csr import row_starts
from sim.content.conjunctions import Conjunctions


@dataclass(frozen=True, eq=False)
class Content:
    """The users' subscriptions and what is published: `values` (publications, fields) has a value for every field."""

    conjunctions: Conjunctions
    values: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Predicates:
    """Predicates `field = value`, sorted by field, then value; a predicate's id is its position."""

    keys: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    def ids(self, field: Integers | int, value: Integers) -> NDArray[np.int32]:
        """The ids of predicates, all of which must occur."""
        return np.searchsorted(self.keys, _key(field, value)).astype(np.int32)

    def carriers(self, predicate: int, values: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which publications, rows of `values`, carry the predicate."""
        field, value = divmod(int(self.keys[predicate]), 1 << 32)
        carries: NDArray[np.bool_] = values[:, field] == value
        return carries

    def names(self) -> list[str]:
        """The names of predicates, such as `3=17`."""
        return [f"{key >> 32}={key & 0xFFFFFFFF}" for key in self.keys.tolist()]


def _key(field: Integers | int, value: Integers) -> NDArray[np.int64]:
    key: NDArray[np.int64] = np.asarray(field, np.int64) << 32 | value
    return key


def occurring(content: Content) -> Predicates:
    """All predicates of subscriptions and publications."""
    wanted, published = content.conjunctions, content.values
    in_field = [_key(field, np.unique(published[:, field])) for field in range(published.shape[1])]
    return Predicates(np.unique(np.concatenate([_key(wanted.field, wanted.value), *in_field])))


def carried(content: Content, predicates: Predicates) -> NDArray[np.int64]:
    """How many publications carry each predicate."""
    counts = np.zeros(len(predicates), np.int64)
    for field in range(content.values.shape[1]):
        counts += np.bincount(predicates.ids(field, content.values[:, field]), minlength=len(predicates))
    return counts


def routing(content: Content, predicates: Predicates) -> NDArray[np.int32]:
    """The predicate at which each subscription waits: the one that fewest publications carry, the lowest id on ties."""
    wanted = content.conjunctions
    if not len(wanted):
        return np.empty(0, np.int32)
    ids = predicates.ids(wanted.field, wanted.value)
    rank = carried(content, predicates)[ids] << 32 | ids
    return (np.minimum.reduceat(rank, wanted.indptr[:-1]) & 0xFFFFFFFF).astype(np.int32)


def interests(content: Content, predicates: Predicates, users: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The predicates at which each user's subscriptions wait, as CSR: `indptr` (users + 1) and `indices`, ascending in a row."""
    pairs = np.unique(_key(content.conjunctions.owner, routing(content, predicates)))
    return row_starts(np.bincount(pairs >> 32, minlength=users)), (pairs & 0xFFFFFFFF).astype(np.int32)
