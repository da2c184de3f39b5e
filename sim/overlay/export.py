"""Overlays and topic trees as networkx graphs."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sim.base.naming import Raw
from sim.overlay.geometry import Dissemination, TopicTree
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites


@dataclass(frozen=True, eq=False)
class PlacedOverlay:
    """The brokers on an overlay's nodes: `broker_of` (nodes), their sites, and the times between them (brokers, brokers; s).

    Graphs have a node for each overlay node, by number, with its `broker` (a number), `name`, and, where there are any, `latitude`,
    `longitude`, `region` and `position` on the ring; edges have `rtt_ms`. What a node lacks is left out: GraphML has no null.
    """

    overlay: Dissemination
    broker_of: NDArray[np.int32]
    sites: Sites
    round_trips: PairTimes

    def overlay_graph(self) -> nx.DiGraph:
        """The graph of all links, in both directions where a link has no direction."""
        graph = nx.DiGraph()
        graph.add_nodes_from((node, self._about(node)) for node in range(len(self.broker_of)))
        graph.add_edges_from(self._edge(*link) for link in self.overlay.edges().tolist())
        return graph

    def tree_graph(self, tree: TopicTree, subscribes: NDArray[np.bool_]) -> nx.DiGraph:
        """A topic's tree, edges away from the root; nodes also have their `depth`, and whether their broker `subscribes` (brokers)."""
        graph = nx.DiGraph()
        nodes, depths = tree.nodes.tolist(), tree.depth.tolist()
        for node, depth in zip(nodes, depths, strict=True):
            graph.add_node(node, **self._about(node), depth=depth, subscribes=bool(subscribes[self.broker_of[node]]))
        parents = tree.parents.tolist()
        graph.add_edges_from(
            self._edge(nodes[parent], node) for node, parent in zip(nodes, parents, strict=True) if parent >= 0
        )
        return graph

    def _about(self, node: int) -> Raw:
        broker, sites, positions = int(self.broker_of[node]), self.sites, self.overlay.positions
        about = {
            "broker": broker,
            "name": sites.names[broker],
            "latitude": float(sites.latitude[broker]),
            "longitude": float(sites.longitude[broker]),
            "region": None if sites.regions is None else sites.regions[broker],
            "position": None if positions is None else float(positions[node]),
        }
        return {key: value for key, value in about.items() if value is not None and value == value}

    def _edge(self, source: int, target: int) -> tuple[int, int, dict[str, float]]:
        time = float(self.round_trips[self.broker_of[source], self.broker_of[target]])
        return source, target, {"rtt_ms": 1000 * time}
