"""Chord (Stoica et al. 2001) with rendezvous trees, as DYNATOPS uses it (section II.A)."""

from __future__ import annotations

import hashlib
import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim import plugins
from sim.base.errors import refuse
from sim.overlay.geometry import GeometrySetting
from sim.overlay.healing import HealingTrees
from sim.overlay.sites import Sites
from sim.overlay.tree_kernels import chord_last_hops, chord_next_hops, route_lengths
from sim.overlay.trees import TreeState, ascending_links


def hashed(text: str, bits: int) -> int:
    """The top `bits` bits of SHA-1 of the text."""
    return int.from_bytes(hashlib.sha1(text.encode(), usedforsecurity=False).digest(), "big") >> (160 - bits)


def hashed_topics(setting: GeometrySetting, bits: int) -> NDArray[np.int64]:
    """The hash of each topic (topics), from the geometry's key."""
    hashes = (hashed(f"{setting.key}/topic/{topic}", bits) for topic in range(setting.topics))
    return np.fromiter(hashes, np.int64, setting.topics)


def hashed_ids(key: int, nodes: int, bits: int) -> NDArray[np.int64]:
    """Distinct node ids on the ring of 2^bits, ascending; an id that is taken is hashed again."""
    ids: set[int] = set()
    for node in range(nodes):
        attempt = 0
        while (candidate := hashed(f"{key}/node/{node}/{attempt}", bits)) in ids:
            attempt += 1
        ids.add(candidate)
    return np.array(sorted(ids), np.int64)


def even_ids(nodes: int, bits: int) -> NDArray[np.int64]:
    """Node ids floor(i · 2^bits / nodes)."""
    return np.array([(i << bits) // nodes for i in range(nodes)], np.int64)


def chord_roots(ids: NDArray[np.int64], topic_hashes: NDArray[np.int64]) -> NDArray[np.int32]:
    """The rendezvous node (topics) of each topic on a ring with nodes at `ids`, ascending: the first at or after its hash, wrapping."""
    return (np.searchsorted(ids, topic_hashes) % len(ids)).astype(np.int32)


def fingers(ids: NDArray[np.int64], bits: int) -> NDArray[np.int32]:
    """Distinct fingers of every node of a ring, as places clockwise from it (nodes, most): ascending in each row, padded with `nodes`.

    Finger i of u is the first node at or after u + 2^i; only the last ones can wrap round to u, and are left out.
    """
    n = len(ids)
    offsets = np.empty((n, bits), np.int32)
    places = np.arange(n)
    for i in range(bits):
        offsets[:, i] = (np.searchsorted(ids, (ids + (1 << i)) % (1 << bits)) - places) % n
    again = np.diff(offsets, axis=1, prepend=0) <= 0
    offsets[again] = n
    offsets.sort(axis=1)
    return np.ascontiguousarray(offsets[:, : max(int((~again).sum(axis=1).max()), 1)])


class Routes(NamedTuple):
    """All routes of a ring: `roots` (topics), and `parent` and `hops` (nodes, nodes) as `RendezvousTrees` has them."""

    roots: NDArray[np.int32]
    parent: NDArray[np.int32]
    hops: NDArray[np.int32]


def chord_routes(ids: NDArray[np.int64], topic_hashes: NDArray[np.int64], bits: int) -> Routes:
    """The routes of a ring of 2^bits with nodes at `ids`, distinct and ascending."""
    known = fingers(ids, bits)
    parent = np.stack([chord_last_hops(known, source) for source in range(len(ids))])
    return Routes(chord_roots(ids, topic_hashes), parent, np.stack([route_lengths(row) for row in parent]))


SUCCESSORS = 20


class Chord(HealingTrees):
    """A Chord ring with the inclusive hop rule; the rendezvous node of a topic is the first at or after its hash, wrapping.

    A node that is down is replaced by its successor, unless the whole successor list of a node before it is down: then the ring is
    broken there until one of these nodes is up again.
    """

    class Parameters(plugins.Parameters):
        ids: Literal["hashed", "even"] = "hashed"
        """Node ids: "hashed" (SHA-1, redrawn in every replication) or "even" (equally spaced)."""
        bits: int = Field(32, ge=1, le=62)
        """Ids live on a ring of 2^bits."""
        state: TreeState = "children"
        """State that brokers keep for a topic's tree: their children on it, or all members below them, as in Bayeux."""
        successors: int = Field(SUCCESSORS, ge=1, le=1024, exclude_if=lambda number: number == SUCCESSORS)
        """The length of nodes' successor lists: as many consecutive nodes that crash before the others notice break the ring."""

        def unfit(self, brokers: int | None, _sites: Sites | None) -> str | None:
            if brokers is None or brokers <= 1 << self.bits:
                return None
            return f"network.geometry.bits: a ring of 2^{self.bits} ids is too small for {brokers} brokers (found {self.bits})"

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        """Raises ScenarioError where the ring is too small for all brokers."""
        refuse(parameters.unfit(setting.nodes, setting.sites))
        bits = parameters.bits
        make = even_ids if parameters.ids == "even" else None
        self.ids = make(setting.nodes, bits) if make else hashed_ids(setting.key, setting.nodes, bits)
        self._bits, self._successors = bits, parameters.successors
        self._hashes = hashed_topics(setting, bits)
        self._live = np.arange(setting.nodes, dtype=np.int32)  # nodes of the ring, ascending
        self.fingers = fingers(self.ids, bits)
        super().__init__(chord_roots(self.ids, self._hashes), setting.nodes, parameters.state)
        self.positions = self.ids / float(1 << bits)

    def next_hops(self, target: int) -> NDArray[np.int32]:
        """Route by the farthest finger that is not past the target."""
        return self._spread(chord_next_hops(self.fingers, self._place(target)))

    def last_hops(self, source: int) -> NDArray[np.int32]:
        """Route by the same rule."""
        return self._spread(chord_last_hops(self.fingers, self._place(source)))

    def _place(self, node: int) -> int:
        return int(np.searchsorted(self._live, node))

    def _spread(self, hops: NDArray[np.int32]) -> NDArray[np.int32]:
        """Hops by place on the ring as hops by node (nodes); -1 for nodes that are not on the ring."""
        if len(self._live) == self.nodes:
            return hops
        spread = np.full(self.nodes, -1, np.int32)
        spread[self._live] = np.where(hops < 0, -1, self._live[hops])
        return spread

    def edges(self) -> NDArray[np.int32]:
        """The links from every node to its fingers."""
        place, finger = np.nonzero(self.fingers < len(self._live))
        there = (place + self.fingers[place, finger]) % len(self._live)
        return ascending_links(self._live[place], self._live[there])

    def maintenance(self, down: NDArray[np.bool_]) -> int:
        """One round of each node: stabilise, check predecessor, and fix a finger.

        It asks its successor for that node's predecessor, is answered and notifies it (3 messages), checks its predecessor, which
        answers (2), and looks one finger up: over half of log₂ n hops, the mean, rounded up, and an answer.
        """
        live = int(np.count_nonzero(~down))
        return live * (3 + 2 + math.ceil(math.log2(live) / 2) + 1) if live > 1 else 0

    def out_of_reach(self, down: NDArray[np.bool_], absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The nodes (n) of the ring in runs of consecutive nodes that are down, which are at least as long as a successor list."""
        broken = np.zeros_like(down)
        ring = np.flatnonzero(~(down & (self.around | absent)))
        fallen = down[ring]
        if fallen.all():
            return broken
        first = int(np.argmin(fallen))  # a run does not go over it
        ring, fallen = np.roll(ring, -first), np.roll(fallen, -first)
        edges = np.flatnonzero(np.diff(fallen, prepend=False, append=False))
        for start, end in edges.reshape(-1, 2).tolist():
            broken[ring[start:end]] = end - start >= self._successors
        return broken

    def route_around(self, nodes: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The ring of all other nodes."""
        self._live = np.flatnonzero(~nodes).astype(np.int32)
        ids = self.ids[self._live]
        self.fingers = fingers(ids, self._bits)
        return self._live[chord_roots(ids, self._hashes)]
