"""Chord as a protocol (Stoica et al., ToN 2003): lookups while nodes fail, join and stabilise, message by message.

Messages take no time, as rounds of stabilisation are far apart. Nodes that leave fail without notice.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from heapq import heapify, heappush, heapreplace
from typing import NamedTuple

import numpy as np

BITS = 32
_SIZE = 1 << BITS


def _ahead(here: int, there: int) -> int:
    """The clockwise distance, from 1 to a whole turn."""
    return (there - here - 1) % _SIZE + 1


class Lookup(NamedTuple):
    """A lookup: the nodes that it was forwarded to before the owner, the timeouts at others, and whether it found the live owner."""

    hops: int
    timeouts: int
    found: bool


class _Node:
    """What a node knows: its successors, its predecessor, and its fingers, the longest first."""

    __slots__ = ("fingers", "next", "predecessor", "successors")

    def __init__(self, successors: list[int], fingers: list[int]) -> None:
        self.successors, self.fingers, self.next = successors, fingers, 0
        self.predecessor: int | None = None


class ChordRing:
    """A ring of live nodes, by their ids; each keeps `successors` successors and as many fingers as the ring has halves.

    It begins correct. Then nodes `fail` and `join`, and know of it what `stabilise` lets them know.
    """

    def __init__(self, nodes: int, successors: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.live: list[int] = sorted(set(self.rng.integers(0, _SIZE, nodes).tolist()))
        self._length, self._spans = successors, [1 << BITS - 1 - i for i in range(math.ceil(math.log2(nodes)) + 2)]
        self._nodes = {node: self._correct(node) for node in self.live}
        for node, other in zip(self.live, self.live[1:] + self.live[:1], strict=True):
            self._nodes[other].predecessor = node

    def owner(self, point: int) -> int:
        """The first live node at or after a point of the ring."""
        node: int = self.live[bisect_left(self.live, point % _SIZE) % len(self.live)]
        return node

    def _correct(self, node: int) -> _Node:
        place, many = bisect_left(self.live, node), len(self.live)
        following = [self.live[(place + i) % many] for i in range(1, min(self._length, many - 1) + 1)]
        return _Node(following, [self.owner(node + span) for span in self._spans])

    # -- what happens

    def fail(self, node: int) -> None:
        """A live node fails."""
        del self._nodes[node]
        self.live.pop(bisect_left(self.live, node))

    def join(self, node: int) -> None:
        """A new node asks a random live one for its successor, takes over that one's list, and tells it."""
        successor = self._find(self.random(), node)[0]
        if successor is None or node in self._nodes:
            return
        above = self._nodes[successor]
        own = self._nodes[node] = _Node([successor, *above.successors][: self._length], [])
        own.fingers = [self._find(node, node + span)[0] or successor for span in self._spans]
        insort(self.live, node)
        self._notify(successor, node)

    def random(self) -> int:
        """A random live node."""
        return self.live[int(self.rng.integers(len(self.live)))]

    def stabilise(self, node: int) -> None:
        """One round: check the successor and the predecessor, and look up one finger, in turn."""
        own = self._nodes[node]
        own.successors = [other for other in own.successors if other in self._nodes][:1]
        if own.predecessor not in self._nodes:
            own.predecessor = None
        if not own.successors:  # its whole list has failed: it is cut off
            return
        successor = own.successors[0]
        between = self._nodes[successor].predecessor
        if between is not None and between in self._nodes and _ahead(node, between) < _ahead(node, successor):
            successor = between
        own.successors = [successor, *self._nodes[successor].successors][: self._length]
        self._notify(successor, node)
        own.next = (own.next + 1) % len(self._spans)
        found = self._find(node, node + self._spans[own.next])[0]
        if found is not None:
            own.fingers[own.next] = found

    def _notify(self, node: int, predecessor: int) -> None:
        own = self._nodes[node]
        before = own.predecessor
        if before is None or before not in self._nodes or _ahead(before, predecessor) < _ahead(before, node):
            own.predecessor = predecessor

    # -- lookups

    def lookup(self, key: int) -> Lookup:
        """Look a key up from a random live node."""
        found, hops, timeouts = self._find(self.random(), key)
        return Lookup(hops, timeouts, found == self.owner(key))

    def _find(self, here: int, key: int) -> tuple[int | None, int, int]:
        """The node that a lookup takes for the owner (None where it gets stuck), the hops before, and timeouts."""
        key %= _SIZE
        hops, dead = 0, set[int]()
        while True:
            own = self._nodes[here]
            successor = next((other for other in own.successors if other not in dead), None)
            if successor is None:
                return None, hops, len(dead)
            if _ahead(here, key) <= _ahead(here, successor):
                there = successor
            else:
                near = [other for other in (*own.fingers, *own.successors) if other not in dead]
                there = max(
                    (other for other in near if _ahead(here, other) < _ahead(here, key)),
                    key=lambda other: _ahead(here, other),
                )
            if there not in self._nodes:
                dead.add(there)
                continue
            if there == successor and _ahead(here, key) <= _ahead(here, successor):
                return there, hops, len(dead)
            hops, here = hops + 1, there

    def wrong_successors(self) -> float:
        """The share of nodes whose first successor is not the next live node."""
        following = dict(zip(self.live, self.live[1:] + self.live[:1], strict=True))
        return sum(self._nodes[node].successors[:1] != [other] for node, other in following.items()) / len(self.live)


def fail_at_once(nodes: int, share: float, lookups: int, successors: int = 20, seed: int = 1) -> list[Lookup]:
    """Lookups after a share of the nodes has failed at once, before anybody stabilises (table II)."""
    ring = ChordRing(nodes, successors, seed)
    for node in ring.rng.choice(ring.live, int(share * len(ring.live)), replace=False).tolist():
        ring.fail(node)
    return [ring.lookup(key) for key in ring.rng.integers(0, _SIZE, lookups).tolist()]


class Churn(NamedTuple):
    """The outcome of churn: the lookups, and the mean share of nodes whose successor was wrong."""

    lookups: list[Lookup]
    wrong: float


def churn(
    nodes: int,
    rate: float,
    lookups: int,
    successors: int = 20,
    period: tuple[float, float] = (15.0, 45.0),
    warm_up: float = 300.0,
    seed: int = 1,
) -> Churn:
    """One lookup per second, while nodes join and others fail at this rate each (1/s), as Poisson processes (table III).

    Each node stabilises after random times of the `period` (s), uniform, or exponential if both are the same, its mean.
    """
    ring, events = ChordRing(nodes, successors, seed), list[tuple[float, int, int]]()
    rng = ring.rng

    def pause() -> float:
        return float(rng.exponential(period[0]) if period[0] == period[1] else rng.uniform(*period))

    stabilise, joins, fails, looks, watches = range(5)
    events = [(float(rng.uniform(0, period[1])), stabilise, node) for node in ring.live]
    gaps = {joins: 1 / rate, fails: 1 / rate, looks: 1.0, watches: 10.0}
    events += [(float(rng.exponential(gap)) + warm_up * (what > fails), what, 0) for what, gap in gaps.items()]
    heapify(events)
    made, wrong = list[Lookup](), list[float]()
    while len(made) < lookups:
        now, what, node = events[0]
        if what == stabilise:
            if node not in ring._nodes:
                heapreplace(events, (math.inf, what, node))
                continue
            ring.stabilise(node)
            heapreplace(events, (now + pause(), what, node))
            continue
        heapreplace(events, (now + float(rng.exponential(gaps[what])), what, 0))
        if what == joins:
            new = int(rng.integers(_SIZE))
            ring.join(new)
            heappush(events, (now + pause(), stabilise, new))
        elif what == fails:
            ring.fail(ring.random())
        elif what == looks:
            made.append(ring.lookup(int(rng.integers(_SIZE))))
        else:
            wrong.append(ring.wrong_successors())
    return Churn(made, float(np.mean(wrong)))
