"""Convert overlays to networkx graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray


def to_graph(interests: Sequence[Iterable[int]], edges: NDArray[np.int32]) -> nx.Graph:
    """A graph of the nodes 0, 1, … with their `topics`, ascending, and the edges with their `order`, from 0."""
    graph = nx.Graph()
    graph.add_nodes_from((node, {"topics": sorted(set(topics))}) for node, topics in enumerate(interests))
    graph.add_edges_from((u, v, {"order": order}) for order, (u, v) in enumerate(edges.tolist()))
    return graph
