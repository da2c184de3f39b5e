"""Overlays converted to networkx graphs."""

from __future__ import annotations

import networkx as nx

from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.graphs import to_graph
from sim.overlay.topic_connected.interests import BrokerInterests

ROWS = [[5, 7], [7, 7], [5], [], [7, 5]]


def test_a_graph_has_the_topics_of_nodes_and_the_order_of_edges() -> None:
    edges = design(BrokerInterests.of(ROWS), "low-oda")
    graph = to_graph(ROWS, edges)
    assert list(graph) == [0, 1, 2, 3, 4]
    assert dict(graph.nodes(data="topics")) == {0: [5, 7], 1: [7], 2: [5], 3: [], 4: [5, 7]}
    assert [graph.edges[u, v]["order"] for u, v in edges.tolist()] == list(range(len(edges)))
    assert all(nx.is_connected(graph.subgraph(v for v, wants in enumerate(ROWS) if topic in wants)) for topic in (5, 7))
