"""Chord the slow, obvious way: finger tables, routes hop by hop, and trees as unions of routes.

A ring is an ascending list of node ids below 2^bits; nodes are named by their ids.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence


def hashed(text: str, bits: int) -> int:
    """The first `bits` binary digits of the text's SHA-1."""
    digits = "".join(f"{byte:08b}" for byte in hashlib.sha1(text.encode()).digest())
    return int(digits[:bits], 2)


def responsible(ring: Sequence[int], point: int) -> int:
    """The first node at or after a point of the ring, wrapping."""
    return min((node for node in ring if node >= point), default=min(ring))


def fingers(ring: Sequence[int], bits: int, node: int) -> list[int]:
    """The finger table of a node: entry i is responsible for node + 2^i."""
    return [responsible(ring, (node + 2**i) % 2**bits) for i in range(bits)]


def route(ring: Sequence[int], bits: int, source: int, target: int, inclusive: bool = True) -> list[int]:
    """All nodes from source to target. Each hop takes the farthest finger that is not past the target.

    `inclusive`: the target itself may be that finger. Otherwise the finger must precede the target (the original "closest preceding
    finger"), and only a node whose successor the target is hands over to it.
    """

    def ahead(node: int, other: int) -> int:
        return (other - node) % 2**bits

    nodes = [source]
    while nodes[-1] != target:
        here = nodes[-1]
        table = fingers(ring, bits, here)
        if inclusive:
            usable = [f for f in table if 0 < ahead(here, f) <= ahead(here, target)]
        elif table[0] == target:
            usable = [target]
        else:
            usable = [f for f in table if 0 < ahead(here, f) < ahead(here, target)]
        nodes.append(max(usable, key=lambda finger: ahead(here, finger)))
    return nodes


def tree(
    ring: Sequence[int], bits: int, root: int, subscribers: Iterable[int], inclusive: bool = True
) -> set[tuple[int, int]]:
    """The union of the routes from the root to all subscribers, as edges (from, to)."""
    edges = set()
    for subscriber in subscribers:
        nodes = route(ring, bits, root, subscriber, inclusive)
        edges |= set(itertools.pairwise(nodes))
    return edges
