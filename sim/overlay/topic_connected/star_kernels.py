"""Compiled kernel of the CD-ODA family. Slow twin: tests/oracles/topic_connected.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

NEIGHBOURS, WEIGHTED, DENSITY = 0, 1, 2


class Remaining(NamedTuple):
    """The topics that remain, and their subscribers: `members[starts[t]:starts[t + 1]]`; large topics also as bits in row `row[t]`."""

    remains: NDArray[np.bool_]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    row: NDArray[np.int64]
    bits: NDArray[np.uint64]


@kernel
def _ones(word: np.uint64) -> int:
    """The number of bits that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def _set_bit(bits: NDArray[np.uint64], place: int) -> None:
    bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@kernel
def stars(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    starts: NDArray[np.int64],
    members: NDArray[np.int32],
    rule: int,
) -> NDArray[np.int32]:
    """Add stars until no topic is left: edges (m, 2), u < v, by star, then by node.

    The centre is the node with the most neighbours in the remaining topics (`rule` NEIGHBOURS), the most weighted neighbours
    (WEIGHTED) or the highest quotient of these (DENSITY), the lowest node on ties. Its topics are then done; topics with fewer than
    two subscribers are from the start.
    """
    n, topics = indptr.size - 1, starts.size - 1
    words = (n + 63) // 64
    # Topics with many subscribers are kept as sets of bits, which costs less than their lists
    row = np.full(topics, -1)
    rows, most = 0, 0
    remains = np.zeros(topics, np.bool_)
    for t in range(topics):
        size = starts[t + 1] - starts[t]
        if size >= 2:
            remains[t] = True
            most += size - 1
            if size >= words:
                row[t] = rows
                rows += 1
    bits = np.zeros((rows, words), np.uint64)
    for t in range(topics):
        if row[t] >= 0:
            for m in range(starts[t], starts[t + 1]):
                _set_bit(bits[row[t]], members[m])

    remaining = Remaining(remains, starts, members, row, bits)
    edges = np.empty((most, 2), np.int32)
    count = 0
    neighbours = np.zeros(n, np.int64)
    weighted = np.zeros(n, np.int64)
    stale = np.ones(n, np.bool_)
    mask = np.zeros(words, np.uint64)
    while True:
        centre, best_value, best_divisor = -1, 0, 1
        for u in range(n):
            if stale[u]:
                stale[u] = False
                weighted[u] = _gather(indices[indptr[u] : indptr[u + 1]], remaining, mask)
                found = 0
                for word in mask:
                    found += _ones(word)
                neighbours[u] = max(found - 1, 0)  # a node is not its own neighbour
            value = neighbours[u] if rule == NEIGHBOURS else weighted[u]
            divisor = max(neighbours[u], 1) if rule == DENSITY else 1
            if value * best_divisor > best_value * divisor:
                centre, best_value, best_divisor = u, value, divisor
        if centre < 0:
            return edges[:count].copy()
        _gather(indices[indptr[centre] : indptr[centre + 1]], remaining, mask)
        for v in range(n):
            if v != centre and (mask[v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
                edges[count, 0], edges[count, 1] = min(centre, v), max(centre, v)
                count += 1
        for i in range(indptr[centre], indptr[centre + 1]):
            t = indices[i]
            if remains[t]:
                remains[t] = False
                for m in range(starts[t], starts[t + 1]):
                    stale[members[m]] = True


@kernel
def _gather(topics: NDArray[np.int32], remaining: Remaining, mask: NDArray[np.uint64]) -> int:
    """Set the bits of all subscribers of a node's remaining topics in `mask`, and count its weighted neighbours."""
    remains, starts, members, row, bits = remaining
    mask[:] = 0
    weighted = 0
    for t in topics:
        if remains[t]:
            weighted += starts[t + 1] - starts[t] - 1
            if row[t] >= 0:
                topic = bits[row[t]]
                for w in range(mask.size):
                    mask[w] |= topic[w]
            else:
                for m in range(starts[t], starts[t + 1]):
                    _set_bit(mask, members[m])
    return weighted
