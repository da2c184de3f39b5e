"""Chord (Stoica et al. 2001) with rendezvous trees, as DYNATOPS uses it (section II.A)."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sim import plugins
from sim.base.errors import ScenarioError
from sim.overlay.geometry import GeometrySetting
from sim.overlay.tree_kernels import chord_last_hops, chord_next_hops, route_lengths
from sim.overlay.trees import RendezvousTrees, TreeState, ascending_links


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


class Chord(RendezvousTrees):
    """A Chord ring with the inclusive hop rule; the rendezvous node of a topic is the first at or after its hash, wrapping."""

    class Parameters(plugins.Parameters):
        ids: Literal["hashed", "even"] = "hashed"
        """Node ids: "hashed" (SHA-1, redrawn in every replication) or "even" (equally spaced)."""
        bits: int = Field(32, ge=1, le=62)
        """Ids live on a ring of 2^bits."""
        state: TreeState = "children"
        """State that brokers keep for a topic's tree: their children on it, or all members below them, as in Bayeux."""

    def __init__(self, parameters: Parameters, setting: GeometrySetting) -> None:
        bits = parameters.bits
        if setting.nodes > 1 << bits:
            raise ScenarioError(
                f"network.geometry.bits: a ring of 2^{bits} ids is too small for {setting.nodes} brokers (got {bits})"
            )
        make = even_ids if parameters.ids == "even" else None
        self.ids = make(setting.nodes, bits) if make else hashed_ids(setting.key, setting.nodes, bits)
        self.fingers = fingers(self.ids, bits)
        super().__init__(chord_roots(self.ids, hashed_topics(setting, bits)), setting.nodes, parameters.state)
        self.positions = self.ids / float(1 << bits)

    def next_hops(self, target: int) -> NDArray[np.int32]:
        """Route by the farthest finger that is not past the target."""
        return chord_next_hops(self.fingers, target)

    def last_hops(self, source: int) -> NDArray[np.int32]:
        """Route by the same rule."""
        return chord_last_hops(self.fingers, source)

    def edges(self) -> NDArray[np.int32]:
        """The links from every node to its fingers."""
        node, finger = np.nonzero(self.fingers < self.nodes)
        there = (node + self.fingers[node, finger]) % self.nodes
        return ascending_links(node, there)
