"""Overlays and trees as networkx graphs: the links that messages take, with names, places and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from oracles import chord as oracle

import sim
from sim.base.errors import InputError, ScenarioError
from sim.overlay.chord import Chord
from sim.overlay.geometry import GeometrySetting
from sim.scenario.reader import load_scenario
from sim.simulation import build, prepare_workload

BROKERS = "broker,latitude,longitude,region\na,10,10,north\nb,10,20,north\nc,-10,10,south\nd,-10,20,south\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "brokers.csv").write_text(BROKERS)
    (tmp_path / "links.csv").write_text("source,target,rtt_ms\na,b,10\nb,c,20\nc,d,5\n")
    path = tmp_path / "s.toml"
    path.write_text(
        """
        workload = { kind = "poisson", users = 30, topics = 5, topics_per_user = 2, horizon = "1h" }
        [network]
        brokers = "brokers.csv"
        latency = { kind = "distance" }
        [[variant]]
        name = "ring"
        [[variant]]
        name = "mesh"
        network.geometry.kind = "full-mesh"
        [[variant]]
        name = "star"
        network = { geometry = { kind = "star", hub = "c" }, hop_cost = "rtt" }
        [[variant]]
        name = "line"
        network.geometry = { kind = "graph", file = "links.csv" }
        """
    )
    return path


def named(graph: nx.DiGraph) -> set[tuple[str, str]]:
    names = graph.nodes(data="name")
    return {(names[u], names[v]) for u, v in graph.edges}


def test_nodes_say_which_broker_stands_there(scenario: Path) -> None:
    line, ring = sim.export(scenario, "line"), sim.export(scenario)
    assert dict(line.nodes[2]) == {"broker": 2, "name": "c", "latitude": -10.0, "longitude": 10.0, "region": "south"}
    assert sorted(data["broker"] for _, data in ring.nodes(data=True)) == [0, 1, 2, 3]
    positions = [data["position"] for _, data in sorted(ring.nodes(data=True))]
    assert positions == sorted(positions)


def test_links_of_each_geometry(scenario: Path) -> None:
    everybody = {(u, v) for u in "abcd" for v in "abcd" if u != v}
    assert named(sim.export(scenario, "mesh")) == everybody
    assert named(sim.export(scenario, "star")) == {pair for pair in everybody if "c" in pair}
    line = {("a", "b"), ("b", "c"), ("c", "d")}
    assert named(sim.export(scenario, "line")) == line | {(v, u) for u, v in line}


def test_edges_have_round_trip_times_whatever_a_hop_costs(scenario: Path) -> None:
    line, star, mesh = (sim.export(scenario, variant) for variant in ("line", "star", "mesh"))
    assert line.edges[0, 1]["rtt_ms"] == line.edges[1, 0]["rtt_ms"] == pytest.approx(10)
    assert line.edges[2, 3]["rtt_ms"] == pytest.approx(5)
    assert star.edges[2, 3]["rtt_ms"] == mesh.edges[2, 3]["rtt_ms"] > 20


@pytest.mark.parametrize(
    ("nodes", "ids", "bits"), [(1, "hashed", 8), (2, "hashed", 8), (17, "hashed", 32), (8, "even", 3)]
)
def test_links_of_a_ring_are_the_fingers(nodes: int, ids: str, bits: int) -> None:
    overlay = Chord(Chord.Parameters(ids=ids, bits=bits), GeometrySetting(nodes, 0, 5))
    ring = overlay.ids.tolist()
    expected = {(u, v) for u in ring for v in oracle.fingers(ring, bits, u) if u != v}
    assert {(ring[u], ring[v]) for u, v in overlay.edges().tolist()} == expected


@pytest.mark.parametrize("variant", ["ring", "mesh", "star", "line"])
def test_a_tree_leads_from_its_root_to_all_subscribers(scenario: Path, variant: str) -> None:
    experiment = load_scenario(scenario)
    world = prepare_workload(experiment.base, 1, None)
    network = build(experiment.variants[variant], world, 1)
    network.users.join_all()
    for topic, name in enumerate(world.topics.names.to_pylist()):
        tree = sim.export(experiment, variant, replication=1, topic=name, publisher="b")
        wanted = np.flatnonzero(network.subscriptions.wanted.row(topic)).tolist()
        assert sorted(d["broker"] for _, d in tree.nodes(data=True) if d["subscribes"]) == wanted
        assert nx.is_arborescence(tree)
        assert set(tree.edges) <= set(sim.export(experiment, variant, replication=1).edges)
        (root,) = (node for node, degree in tree.in_degree() if not degree)
        assert dict(tree.nodes(data="depth")) == nx.single_source_shortest_path_length(tree, root)
        if variant in ("mesh", "line"):
            assert tree.nodes[root]["name"] == "b"


def test_an_exported_overlay_is_a_graph_to_run_on(scenario: Path, tmp_path: Path) -> None:
    """GraphML knows no None; what was written is read again, by networkx and as the geometry `graph`."""
    for variant in ("ring", "mesh", "star", "line"):
        nx.write_graphml(sim.export(scenario, variant), tmp_path / f"{variant}.graphml")
        graph = nx.read_graphml(tmp_path / f"{variant}.graphml", node_type=int)
        before = sim.export(scenario, variant)
        assert dict(graph.nodes(data=True)) == dict(before.nodes(data=True))
        assert list(graph.edges(data=True)) == list(before.edges(data=True))
        over = f'network.geometry={{ kind = "graph", file = "{tmp_path / variant}.graphml" }}'
        again = sim.export(scenario, "ring", overrides=[over, f"variant.ring.{over}"])
        assert named(again) == named(before) | {(v, u) for u, v in named(before)}
        assert again.size("rtt_ms") >= before.size("rtt_ms") * (1 - 1e-12)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"variant": "mash"}, r"unknown variant 'mash', did you mean 'mesh'\? \(allowed: line, mesh, ring, star\)"),
        ({"topic": "nosuch"}, r"unknown topic 'nosuch' \(there are 5, such as '"),
        ({"topic": "0", "publisher": "e"}, r"unknown broker 'e' \(there are 4, such as 'a'\)"),
        ({"publisher": "a"}, "a publisher only applies to a topic's tree"),
        ({"replication": -1}, r"replication: expected 0 or more \(found -1\)"),
        ({"overrides": ["variant.ring.network.brokers=5", "workload.users=0"]}, "workload.users"),
    ],
)
def test_what_cannot_be_exported(scenario: Path, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        sim.export(scenario, **arguments)


def test_a_topic_that_nobody_wants_has_no_tree(scenario: Path) -> None:
    alone = ["workload.users=1", "workload.topics_per_user=1"]
    world = prepare_workload(load_scenario(scenario, alone).base, 0, None)
    unwanted = next(n for i, n in enumerate(world.topics.names.to_pylist()) if i not in world.interests.indices)
    with pytest.raises(InputError, match=rf"topic '{unwanted}': no broker subscribes to it"):
        sim.export(scenario, topic=unwanted, overrides=alone)


def test_a_geometry_that_does_not_tell_its_links_still_has_trees(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sim.overlay.chord import Chord
    from sim.overlay.trees import RendezvousTrees

    monkeypatch.delattr(Chord, "edges")
    monkeypatch.delattr(RendezvousTrees, "edges")
    monkeypatch.setattr(Chord, "__abstractmethods__", frozenset())
    with pytest.raises(ScenarioError, match=r"kind 'chord' does not report its links \(allowed: a topic's tree\)"):
        sim.export(scenario)
    assert len(sim.export(scenario, topic="0"))
