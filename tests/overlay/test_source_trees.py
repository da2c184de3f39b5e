"""Publisher-rooted trees: the unions of shortest paths, cached exactly until the topic changes."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from oracles.overlays import Links
from test_trees import as_lists, check_shape

from sim.files.inputs import File
from sim.overlay import source_trees
from sim.overlay.edges import Edge
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.overlay.graph import Graph
from sim.overlay.path_kernels import fastest_paths
from sim.overlay.sites import Sites

TOPICS = 3


def graph(nodes: int, links: Iterable[tuple[int, int, float]]) -> Graph:
    """Links with times of their own; brokers are called by their numbers."""
    nowhere = np.full(nodes, np.nan)
    sites = Sites(tuple(map(str, range(nodes))), nowhere, nowhere)
    edges = tuple(Edge(str(a), str(b), time, "") for a, b, time in links)
    return Graph(
        Graph.Parameters(file=File("links.csv", "", edges)),
        GeometrySetting(nodes, TOPICS, 1, sites, np.where(np.eye(nodes), 0.0, 1.0)),
    )


@st.composite
def random_links(draw: st.DrawFn, most: int = 8) -> tuple[int, list[tuple[int, int, float]]]:
    """A connected graph of few nodes; times of quarters, so that many paths are equally quick, and some take no time."""
    nodes = draw(st.integers(2, most))
    tree = {(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)}
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    more = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=nodes)) if pair[0] != pair[1]}
    times = st.integers(0, 5).map(lambda quarters: quarters / 4)
    return nodes, [(*link, draw(times)) for link in sorted(tree | more)]


class Membership(RuleBasedStateMachine):
    """Nodes join and leave in any order, and any of them publishes."""

    @initialize(world=random_links())
    def build(self, world: tuple[int, list[tuple[int, int, float]]]) -> None:
        self.nodes, links = world
        self.overlay = graph(*world)
        self.routes = Links({(u, v): time for a, b, time in links for u, v in ((a, b), (b, a))})
        self.members: list[set[int]] = [set() for _ in range(TOPICS)]

    @rule(topic=st.integers(0, TOPICS - 1), pick=st.integers(0, 7))
    def change(self, topic: int, pick: int) -> None:
        node = pick % self.nodes
        if node in self.members[topic]:
            with pytest.raises(ValueError, match=f"node {node} is on the tree of topic {topic} already"):
                self.overlay.join(topic, node)
            self.overlay.leave(topic, node)
        else:
            with pytest.raises(ValueError, match=f"node {node} is not on the tree of topic {topic}"):
                self.overlay.leave(topic, node)
            self.overlay.join(topic, node)
        self.members[topic] ^= {node}

    @invariant()
    def trees_are_unions_of_the_quickest_paths(self) -> None:
        for topic, members in enumerate(self.members):
            for source in range(self.nodes):
                tree = self.overlay.tree(topic, source)
                assert self.overlay.tree(topic, source) is tree
                check_shape(tree, source)
                nodes = tree.nodes.tolist()
                above = [None if parent < 0 else nodes[parent] for parent in tree.parents.tolist()]
                assert dict(zip(nodes, above, strict=True)) == self.routes.tree(source, members)
                children = [nodes[a:b] for a, b in zip(tree.child_bounds, tree.child_bounds[1:], strict=False)]
                assert all(siblings == sorted(siblings) for siblings in children)


TestMembership = Membership.TestCase
TestMembership.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)


def test_paths_of_a_large_graph_are_as_long_as_those_of_networkx() -> None:
    rng = np.random.default_rng(2)
    graph = nx.connected_watts_strogatz_graph(150, 6, 0.3, seed=2)
    for _, _, data in graph.edges(data=True):
        data["time"] = float(rng.uniform(0.001, 0.1))
    links = np.array(sorted([*graph.edges, *(edge[::-1] for edge in graph.edges)]))
    times = np.array([graph.edges[link]["time"] for link in links.tolist()])
    csr = np.searchsorted(links[:, 0], np.arange(151)), links[:, 1].copy(), times, np.zeros(len(links), np.bool_)
    parent = np.stack([fastest_paths(source, *csr) for source in range(150)])
    for source, lengths in nx.all_pairs_dijkstra_path_length(graph, weight="time"):
        for node, length in lengths.items():
            along, at = 0.0, node
            while at != source:
                along += graph.edges[at, parent[source, at]]["time"]
                at = int(parent[source, at])
            assert along == pytest.approx(length, rel=1e-12)


def test_what_is_out_of_reach_has_no_node_before_it() -> None:
    csr = np.array([0, 1, 2, 2]), np.array([1, 0]), np.array([1.0, 1.0]), np.zeros(2, np.bool_)
    assert [fastest_paths(source, *csr).tolist() for source in range(3)] == [[-1, 0, -1], [1, -1, -1], [-1, -1, -1]]


def test_equally_quick_paths_go_by_fewest_hops_and_then_by_the_lowest_broker() -> None:
    """From 0 to 3 in a second, by 1 or 2; from 0 to 4 in as long, by 3 or directly."""
    overlay = graph(5, [(0, 2, 0.5), (0, 1, 0.5), (1, 3, 0.5), (2, 3, 0.5), (0, 4, 1.0), (3, 4, 0.0)])
    assert overlay.parents(0, 0)[1:].tolist() == [0, 0, 1, 0]
    assert overlay.parents(0, 3)[[0, 4]].tolist() == [1, 3]


def test_a_tree_is_the_same_object_until_its_topic_changes() -> None:
    mesh = FullMesh(FullMesh.Parameters(), GeometrySetting(5, TOPICS, 1))
    for topic in (0, 1):
        mesh.join(topic, 3)
    one, other = mesh.tree(0, 2), mesh.tree(1, 2)
    then = as_lists(one)
    mesh.join(0, 4)
    assert mesh.tree(0, 2) is not one
    assert mesh.tree(1, 2) is other
    assert as_lists(one) == then == [[2, 3], [-1, 0], [1, 2, 2], [0, 1]]
    mesh.leave(0, 4)
    mesh.leave(0, 3)
    assert len(mesh.tree(0, 2)) == 0


def test_topics_times_brokers_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many trees as the cache may hold: it never holds more, and changes free what they held."""
    monkeypatch.setattr(source_trees, "_REMEMBERED", 5000)
    nodes = 40
    mesh = FullMesh(FullMesh.Parameters(), GeometrySetting(nodes, 30, 1))
    for topic in range(30):
        for node in range(0, nodes, 2):
            mesh.join(topic, node)
    most = 0
    for topic in range(30):
        for source in range(nodes):
            assert mesh.tree(topic, source) is mesh.tree(topic, source)
            most = max(most, sum(len(trees) for trees in mesh._snapshots.values()))
    assert 50 < most < 110
    for topic in range(30):
        mesh.leave(topic, 0)
    assert (mesh._remembered, mesh._snapshots) == (0, {})
