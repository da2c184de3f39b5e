"""Departures: the uplinks on which publications start, found by topic and broker, and queued for the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Items
from sim.base.compiled import kernel


@kernel
def _find(key: int, table: NDArray[np.int64]) -> int:
    """The slot of a key in a hash table (slots, 2: key or -1, value) with linear probing, or the free one where it belongs."""
    mask = len(table) - 1
    slot = (key * 0x9E3779B1 >> 12) & mask
    while table[slot, 0] != key and table[slot, 0] >= 0:
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def _look_up(keys: NDArray[np.int64], table: NDArray[np.int64], found: NDArray[np.int64], done: int) -> int:
    """Look up keys from the one numbered `done` on; returns the index of the first missing one, or the number of keys."""
    for i in range(done, keys.size):
        slot = _find(keys[i], table)
        if table[slot, 0] < 0:
            return i
        found[i] = table[slot, 1]
    return int(keys.size)


class Starts:
    """The positions at which uplinks start, by an integer key; `start(key)` creates an unknown one."""

    def __init__(self, start: Callable[[int], int]) -> None:
        self._start = start
        self.clear()

    def clear(self) -> None:
        """Forget them all."""
        self._table, self._known = _free(1 << 10), 0

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of keys."""
        found, done = np.empty(len(keys), np.int64), 0
        while (done := _look_up(keys, self._table, found, done)) < len(keys):
            if 2 * self._known >= len(self._table):
                self._grow()
            key = int(keys[done])
            self._table[_find(key, self._table)] = key, self._start(key)
            self._known += 1
        return found

    def _grow(self) -> None:
        known = self._table[self._table[:, 0] >= 0]
        self._table = _free(2 * len(self._table))
        for row in known:
            self._table[_find(int(row[0]), self._table)] = row


def _free(slots: int) -> NDArray[np.int64]:
    return np.full((slots, 2), -1, np.int64)


class Departing(NamedTuple):
    """Departing publications: the `row` of each flight (flights), its identity in keyed draws, and where its uplink starts.

    By row (publications): its `number`, when it leaves, and is `published` (s), and in which `window`. By number: its `size`, and its
    `period` where these are counted, else empty. `lost`, by row: who publishes it is connected to no broker. `released` is 1 where
    they were held back.
    """

    row: NDArray[np.int64]
    identity: NDArray[np.int64]
    uplink: NDArray[np.int64]
    number: NDArray[np.int64]
    time: NDArray[np.float64]
    published: NDArray[np.float64]
    window: NDArray[np.int64]
    size: NDArray[np.int32]
    period: NDArray[np.int64]
    lost: NDArray[np.bool_]
    released: int


@kernel
def line_up(pending: Items, positions: Items, departing: Departing) -> None:
    """Fill in the records of departing flights."""
    for i in range(pending.size):
        entry, row = pending[i], departing.row[i]
        number = departing.number[row]
        entry.time, entry.published, entry.window = departing.time[row], departing.published[row], departing.window[row]
        entry.size, entry.number, entry.released = departing.size[number], departing.identity[i], departing.released
        entry.uplink, entry.lost = departing.uplink[i], departing.lost[row]
        entry.slot = positions[entry.uplink].children  # all positions of an uplink have its slot
        entry.period = departing.period[number] if departing.period.size else 0
