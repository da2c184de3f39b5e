"""Pairs of counts by sparse integer keys: a hash table that kernels fill, emptied as it fills up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import inlined


@inlined
def count_key(table: NDArray[np.int64], key: int, one: int, other: int) -> int:
    """Add to the two counts of a key in a hash table (see Tallies); returns 1 where the key is new."""
    mask = len(table) - 1
    slot = ((key >> 4) * 0x9E3779B1 >> 12 << 4 | key & 15) & mask  # neighbouring keys share cache lines
    while table[slot, 0] != key:
        if table[slot, 0] < 0:
            table[slot, 0] = key
            table[slot, 1] = one
            table[slot, 2] = other
            return 1
        slot = (slot + 1) & mask
    table[slot, 1] += one
    table[slot, 2] += other
    return 0


class Tallies:
    """Counts by key: first in a hash table `hashed` that kernels fill (slots, 3: key or -1, counts), with linear probing.

    It is emptied whenever it is half full, so that memory grows only with the keys in use. The number of slots is a power of two,
    and at least `slots`.
    """

    def __init__(self, least: int) -> None:
        self.hashed = _free(1 << (least - 1).bit_length())
        self._columns = np.empty((3, 0), np.int64)  # key and counts; ascending keys
        self._emptied: list[NDArray[np.int64]] = []  # further such columns in any order, still to be merged
        self._waiting = 0  # how many keys these hold

    def empty(self) -> None:
        """Empty the hash table."""
        self.add(self.hashed[self.hashed[:, 0] >= 0].T)
        self.hashed[:, 0] = -1

    def add(self, columns: NDArray[np.int64]) -> None:
        """Add counts: keys, possibly repeated, and two rows of counts; merged once they are as many as all before."""
        self._emptied.append(columns)
        self._waiting += columns.shape[1]
        if self._waiting > self._columns.shape[1]:
            self._merge()

    def grow(self) -> None:
        """Double the hash table, which must be empty."""
        self.hashed = _free(2 * len(self.hashed))

    def columns(self) -> NDArray[np.int64]:
        """All keys, ascending, and their two counts (3, keys); ends the counting."""
        self.empty()
        self._merge()
        return self._columns

    def _merge(self) -> None:
        parts = np.concatenate([self._columns, *self._emptied], axis=1)
        self._emptied, self._waiting = [], 0
        parts = parts[:, np.argsort(parts[0], kind="stable")]
        unique, first = np.unique(parts[0], return_index=True)
        if len(unique):
            self._columns = np.stack([unique, *np.add.reduceat(parts[1:], first, axis=1)])


def _free(slots: int) -> NDArray[np.int64]:
    return np.full((slots, 3), -1, np.int64)
