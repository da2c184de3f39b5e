"""The interface of overlay geometries: uplink paths and topic trees, rooted at a rendezvous node or at the publisher's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites


@dataclass(frozen=True, eq=False)
class GeometrySetting:
    """What a geometry is built from: the number of nodes and topics, and the key for its random draws.

    `sites` of the brokers and `round_trips` (n, n; s) between them are for geometries whose nodes are the brokers themselves. In a
    run, the times are PairTimes. `topic_places` (topics, 2): latitude and longitude of each topic, NaN where it has no place.
    """

    nodes: int
    topics: int
    key: int
    sites: Sites | None = None
    round_trips: NDArray[np.float64] | PairTimes | None = None
    topic_places: NDArray[np.float64] | None = None


NO_HOP_LIMIT = 2**31 - 1
"""The hop limit that stands for none."""


@dataclass(frozen=True, eq=False)
class TopicTree:
    """A snapshot of a dissemination tree over the k nodes that are on it, in top-down order.

    `nodes` (k): overlay nodes, the root first; `parents` (k): position of each one's parent, -1 for the root;
    `first_child` (k + 1): the children of position i are the positions `first_child[i]:first_child[i + 1]`; `depth` (k): hops
    below the root. A topic that nobody wants has an empty tree. Where topics are flooded, `neighbours` (k) holds the positions of
    each node's neighbours in the topic, and the tree is that of a flood in which all hops take the same time; a copy travels at
    most `hop_limit` hops below the root.
    """

    nodes: NDArray[np.int32]
    parents: NDArray[np.int32]
    first_child: NDArray[np.int32]
    depth: NDArray[np.int32]
    neighbours: Sequence[Sequence[int]] = ()
    hop_limit: int = NO_HOP_LIMIT

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def child_bounds(self) -> list[int]:
        """`first_child` as a list, for walking the tree hop by hop."""
        bounds: list[int] = self.first_child.tolist()
        return bounds

    @cached_property
    def next_hops(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The positions that each position forwards to, as CSR: its children, or its neighbours where topics are flooded."""
        if not self.neighbours:
            return self.first_child, np.arange(len(self), dtype=np.int32)
        sizes = [len(linked) for linked in self.neighbours]
        return np.cumsum([0, *sizes], dtype=np.int32), np.array(list(chain.from_iterable(self.neighbours)), np.int32)

    def pruned(self, due: NDArray[np.bool_]) -> TopicTree:
        """The root and the nodes at or below which something is `due` (k); all nodes where topics are flooded."""
        if self.neighbours or not len(self):
            return self
        kept = due.copy()
        kept[0] = True
        for position in range(len(kept) - 1, 0, -1):
            kept[self.parents[position]] |= kept[position]
        if kept.all():
            return self
        parents = np.where(self.parents[kept] < 0, -1, (np.cumsum(kept) - 1)[self.parents[kept]]).astype(np.int32)
        first_child = np.searchsorted(parents[1:], np.arange(len(parents) + 1)) + 1
        return TopicTree(self.nodes[kept], parents, first_child.astype(np.int32), self.depth[kept])


EMPTY_TREE = TopicTree(np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.int32))
"""The tree of a topic that nobody wants."""


def broker_degrees(nodes: int, edges: NDArray[np.int32]) -> NDArray[np.int64]:
    """The degree of each node (nodes) in edges (m, 2), regardless of their direction."""
    links = np.unique(np.sort(edges, axis=1).astype(np.int64) @ np.array([nodes, 1]))
    here, there = np.divmod(links, nodes)
    degree: NDArray[np.int64] = np.bincount(here, minlength=nodes) + np.bincount(there[there != here], minlength=nodes)
    return degree


class Dissemination(Protocol):
    """A geometry: how a publication gets from its publisher's node to the root, and from there to all subscribing nodes.

    Where links follow interests, a join or leave costs nothing by itself, but `adjust` returns what the links cost.

    Plug-in group `brokersim.geometry`: a class with a nested `Parameters(sim.plugins.Parameters)`, created by `Geometry(parameters,
    setting)` with a GeometrySetting.
    """

    @property
    def nodes_are_brokers(self) -> bool:
        """Whether node i is always broker i; otherwise brokers are mapped to nodes."""

    @property
    def single_root(self) -> bool:
        """Whether a topic has one root for all publishers, to which joins and leaves can be sent."""

    @property
    def floods(self) -> bool:
        """Whether a node forwards a publication to all its neighbours in the topic, instead of to its children on the tree."""

    @property
    def positions(self) -> NDArray[np.float64] | None:
        """The position of each node on the ring, in [0, 1); None where the geometry is not a ring."""

    @property
    def round_trips(self) -> NDArray[np.float64] | PairTimes | None:
        """Round-trip times between brokers (n, n; s) that replace those of the latency model; None where it has none."""

    @property
    def period(self) -> float | None:
        """How often (s) `adjust` is called where links follow interests periodically; until then trees reach only connected nodes.

        None: after every join or leave.
        """

    def edges(self) -> NDArray[np.int32]:
        """The overlay's links (m, 2), from node to node, in both directions where a link has no direction."""

    def topic_diameters(self) -> NDArray[np.int64] | None:
        """The diameter of each topic's own links, over topics with at least two subscribers; None where topics have none."""

    def tree_state(self) -> int | None:
        """The number of entries that nodes keep for forwarding along the present trees; None where they need none."""

    def uplink(self, topic: int, source: int) -> NDArray[np.int32]:
        """The nodes from `source` to the root, both included; the root alone where the source is the root.

        It is valid until the topic's subscribers change; with `single_root`, permanently.
        """

    def tree(self, topic: int, root: int) -> TopicTree:
        """The present tree of the topic from the root that an uplink led to; later changes do not modify the returned tree."""

    def join(self, topic: int, node: int) -> None:
        """Subscribe the node. Raises ValueError where it subscribes already."""

    def leave(self, topic: int, node: int) -> None:
        """Unsubscribe the node. Raises ValueError where it does not subscribe."""

    def control_hops(self, topic: int, node: int) -> int:
        """How many messages between brokers a join or leave of the node takes, each hop counted."""

    def control_requests(self, topic: int, node: int) -> int:
        """The number of `control_hops` with each message counted once, regardless of its hops."""

    def adjust(self) -> int:
        """Update the links after joins and leaves since the last call; returns the messages between brokers that this takes."""

    def control_path(self, topic: int, node: int) -> NDArray[np.int32]:
        """The nodes on the path of a join or leave request and its answer: from the node to the root and back to the node.

        Only with `single_root`.
        """


def link_metrics(nodes: int, overlay: Dissemination) -> dict[str, float | int | None]:
    """The present metrics of an overlay's links, and of the state that nodes keep for trees."""
    degree, diameters = broker_degrees(nodes, overlay.edges()), overlay.topic_diameters()
    spans = [] if diameters is None else diameters.tolist()
    return {
        "edges": int(degree.sum()) // 2,
        "average_degree": float(degree.mean()),
        "maximum_degree": int(degree.max()),
        "diameter": max(spans, default=None),
        "mean_topic_diameter": sum(spans) / len(spans) if spans else None,
        "tree_state": overlay.tree_state(),
    }
