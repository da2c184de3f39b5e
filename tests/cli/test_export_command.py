"""`brokersim export`: what it writes, and the messages where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx

Brokersim = Callable[..., tuple[int, str, str]]

SCENARIO = """
workload = { kind = "poisson", users = 40, topics = 4, topics_per_user = 2, horizon = "1h" }
network = { brokers = 6 }
[[variant]]
name = "ring"
[[variant]]
name = "mesh"
network.geometry.kind = "full-mesh"
"""


def test_overlay_and_tree(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    assert brokersim("export", "s.toml", "--variant", "mesh", "--graphml", "o.graphml") == (
        0,
        "o.graphml: overlay, 6 nodes, 30 edges\n",
        "",
    )
    assert len(nx.read_graphml(tmp_path / "o.graphml")) == 6
    tree = ("export", "s.toml", "--variant", "mesh", "--topic", "0", "--from", "3", "--graphml", "t.graphml")
    status, out, _ = brokersim(*tree, "--set", "network.brokers=4")
    assert (status, out) == (0, "t.graphml: tree of 0, 4 nodes, 3 edges\n")
    read = nx.read_graphml(tmp_path / "t.graphml")
    assert [(read.nodes[node]["name"], degree) for node, degree in read.in_degree() if not degree] == [("3", 0)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.graphml", "s.toml", "t.graphml"]


def test_mistakes(brokersim: Brokersim, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    assert brokersim("export", "s.toml", "--graphml", "no/o.graphml") == (
        2,
        "",
        "brokersim: error: --graphml: no such folder: no\n",
    )
    status, out, err = brokersim("export", "s.toml", "--graphml", "o.graphml", "--variant", "rng")
    assert (status, out) == (2, "")
    assert err == "brokersim: error: unknown variant 'rng', did you mean 'ring'? (allowed: mesh, ring)\n"
    status, out, err = brokersim("export", "s.toml", "--graphml", ".")
    assert (status, out, err) == (2, "", "brokersim: error: --graphml: expected a file to write, '.' is a folder\n")
    status, out, err = brokersim("export", "s.toml", "--graphml", f"{'x' * 300}.graphml")
    assert (status, out) == (2, "")
    assert err.endswith(": cannot be written (File name too long)\n")
    assert not list(tmp_path.glob("*.graphml"))
