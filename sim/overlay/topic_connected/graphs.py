"""Convert overlays to networkx graphs and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError


def to_graph(interests: Sequence[Iterable[int]], edges: NDArray[np.int32]) -> nx.Graph:
    """A graph of the nodes 0, 1, … with their `topics`, ascending, and the edges with their `order`, from 0."""
    graph = nx.Graph()
    graph.add_nodes_from((node, {"topics": sorted(set(topics))}) for node, topics in enumerate(interests))
    graph.add_edges_from((u, v, {"order": order}) for order, (u, v) in enumerate(edges.tolist()))
    return graph


def from_graph(graph: nx.Graph) -> tuple[list[list[int]], NDArray[np.int32]]:
    """Each node's `topics` and the edges (m, 2), u < v, nodes numbered in the graph's order, edges by their `order` if any.

    Raises InputError where a node has no topics or a link leads to itself.
    """
    number = {node: place for place, node in enumerate(graph)}
    for node, topics in graph.nodes(data="topics"):
        if topics is None:
            raise InputError(f"node {node!r} of the graph has no attribute 'topics' (expected: a list of integers)")
    links = sorted((data.get("order", 0), *sorted((number[a], number[b]))) for a, b, data in graph.edges(data=True))
    for _, u, v in links:
        if u == v:
            raise InputError(f"node {list(graph)[u]!r} of the graph is linked to itself")
    wanted = [list(topics) for _, topics in graph.nodes(data="topics")]
    return wanted, np.array([link[1:] for link in links], np.int32).reshape(-1, 2)
