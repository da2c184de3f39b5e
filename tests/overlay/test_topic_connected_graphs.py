"""Overlays converted to networkx graphs and back."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from sim.base.errors import InputError
from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.graphs import from_graph, to_graph
from sim.overlay.topic_connected.interests import BrokerInterests

ROWS = [[5, 7], [7, 7], [5], [], [7, 5]]


def test_there_and_back() -> None:
    edges = design(BrokerInterests.of(ROWS), "low-oda")
    graph = to_graph(ROWS, edges)
    assert list(graph) == [0, 1, 2, 3, 4]
    assert graph.nodes[1]["topics"] == [7]
    assert [graph.edges[u, v]["order"] for u, v in edges.tolist()] == list(range(len(edges)))
    assert all(nx.is_connected(graph.subgraph(v for v, wants in enumerate(ROWS) if topic in wants)) for topic in (5, 7))
    rows, back = from_graph(graph)
    assert rows == [sorted(set(row)) for row in ROWS]
    assert back.tolist() == edges.tolist()


def test_a_graph_of_somebody_else() -> None:
    graph = nx.Graph()
    graph.add_nodes_from([("c", {"topics": [1]}), ("a", {"topics": (1, 2)}), ("b", {"topics": {2}})])
    graph.add_edges_from([("b", "a"), ("a", "c")])
    rows, edges = from_graph(graph)
    assert rows == [[1], [1, 2], [2]]
    assert edges.tolist() == [[0, 1], [1, 2]]
    assert edges.dtype == np.int32


def test_what_is_no_overlay_is_said() -> None:
    graph = nx.Graph()
    graph.add_node("a", topics=[1])
    graph.add_edge("a", "a")
    with pytest.raises(InputError, match="node 'a' of the graph is linked to itself"):
        from_graph(graph)
    graph.add_node("b")
    with pytest.raises(InputError, match="node 'b' of the graph has no attribute 'topics'"):
        from_graph(graph)
