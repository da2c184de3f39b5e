"""Writes the graphs of mesh-degree.toml beside it: random graphs of 64 brokers in which all have the same number of neighbours.

Run it as `python scenarios/what-if/meshes.py`.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx

BROKERS = 64
DEGREES = 3, 4, 6, 10
FOLDER = Path(__file__).parent / "meshes"


def edge_list(degree: int) -> str:
    """A random graph of a degree in which everybody can reach everybody, as an edge list."""
    seed = 1
    while not nx.is_connected(graph := nx.random_regular_graph(degree, BROKERS, seed=seed)):
        seed += 1
    links = sorted((min(link), max(link)) for link in graph.edges)
    return "source,target\n" + "".join(f"{a},{b}\n" for a, b in links)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for degree in DEGREES:
        (FOLDER / f"degree-{degree}.csv").write_text(edge_list(degree))
