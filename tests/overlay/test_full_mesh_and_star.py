"""Meshes and stars: their links, delays and messages against theory, and names of hubs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny

from sim.base.errors import ScenarioError
from sim.overlay.broadcast import Broadcast
from sim.overlay.chord import hashed
from sim.overlay.full_mesh import FullMesh
from sim.overlay.geometry import GeometrySetting
from sim.overlay.owner_shard import OwnerShard
from sim.overlay.sites import Sites
from sim.overlay.star import Star
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate

PLACES = [(0.5, 0.5), (0.5, 3.5), (0.5, 5.5), (0.5, 9.5)]


def setting(nodes: int, topics: int = 2, round_trips: Any = None, names: Sequence[str] = "abcdefgh") -> GeometrySetting:
    nowhere = np.full(nodes, np.nan)
    times = np.where(np.eye(nodes), 0.0, 0.02) if round_trips is None else np.array(round_trips)
    return GeometrySetting(nodes, topics, 1, Sites(tuple(names[:nodes]), nowhere, nowhere), times)


def star(nodes: int, hub: str = "central", **more: Any) -> Star:
    return Star(Star.Parameters(hub=hub), setting(nodes, **more))


def scenario(assign: str = "random", **network: Any) -> Scenario:
    network = {"latency": {"kind": "distance"}, **network}
    return load_scenario({"network": network, "selection": {"kind": "static", "assign": assign}, "seed": 4}).base


def everybody_wants_everything(publications: int = 40) -> Any:
    """Four cells, each with a user at home there; publications by all of them, on all topics, while nothing changes."""
    return tiny.workload(
        [set(range(4))] * 4,
        [(0.1 * n, n % 4, n // 4 % 4, 100) for n in range(publications)],
        topics=4,
        places=PLACES,
        cell=1.0,
    )


# -- who is linked to whom


def test_a_mesh_links_all_pairs_and_its_trees_are_one_hop_deep() -> None:
    mesh = FullMesh(FullMesh.Parameters(), setting(4))
    assert mesh.edges().tolist() == [[u, v] for u in range(4) for v in range(4) if u != v]
    for node in (3, 1, 2):
        mesh.join(0, node)
    for source, nodes in ((0, [0, 1, 2, 3]), (2, [2, 1, 3])):
        tree = mesh.tree(0, source)
        assert tree.nodes.tolist() == nodes
        assert tree.depth.tolist() == [0] + [1] * (len(nodes) - 1)
        assert mesh.uplink(0, source).tolist() == [source]


def test_a_star_links_all_to_its_hub() -> None:
    overlay = star(4, "c")
    assert overlay.edges().tolist() == [[0, 2], [1, 2], [2, 0], [2, 1], [2, 3], [3, 2]]
    assert overlay.roots == [2, 2]
    assert overlay.uplink(0, 3).tolist() == [3, 2]
    assert overlay.uplink(0, 2).tolist() == [2]
    assert overlay.control_path(0, 0).tolist() == [0, 2, 0]
    overlay.join(1, 3)
    overlay.join(1, 0)
    assert overlay.tree(1, 3).nodes.tolist() == [2, 0, 3]


def owner_shard(nodes: int, topics: int = 2) -> OwnerShard:
    return OwnerShard(OwnerShard.Parameters(), setting(nodes, topics))


def broadcast(nodes: int) -> Broadcast:
    return Broadcast(Broadcast.Parameters(), setting(nodes))


def test_an_owner_sends_straight_to_all_that_want_its_topic() -> None:
    overlay = owner_shard(4)
    (owner, other), everybody = overlay.roots, set(range(4))
    assert owner != other
    assert overlay.edges().tolist() == FullMesh(FullMesh.Parameters(), setting(4)).edges().tolist()
    one, two, neither = sorted(everybody - {owner})
    for node in (two, one):
        overlay.join(0, node)
    tree = overlay.tree(0, neither)
    assert (tree.nodes.tolist(), tree.parents.tolist(), tree.depth.tolist()) == (
        [owner, one, two],
        [-1, 0, 0],
        [0, 1, 1],
    )
    assert overlay.uplink(0, neither).tolist() == [neither, owner]
    assert overlay.uplink(0, owner).tolist() == [owner]
    assert overlay.control_path(0, one).tolist() == [one, owner, one]
    assert overlay.tree_state() == 2  # whom the owner sends to; nobody else keeps anything
    overlay.join(0, owner)
    assert overlay.tree_state() == 2


def test_owners_have_equal_parts_of_the_hashes_of_topics() -> None:
    overlay = owner_shard(5, 2000)
    shares = np.bincount(overlay.roots, minlength=5)
    assert overlay.roots[:50] == [hashed(f"1/topic/{topic}", 32) // (2**32 / 5) for topic in range(50)]
    assert abs(shares - 400).max() < 4 * np.sqrt(2000 * 0.2 * 0.8)  # four standard deviations


def test_a_broadcast_reaches_everybody_whoever_wants_the_topic() -> None:
    overlay, trees = broadcast(4), []
    for act in (lambda: None, lambda: overlay.join(0, 3), lambda: overlay.join(1, 1), lambda: overlay.leave(0, 3)):
        act()
        trees += [overlay.tree(topic, 2) for topic in (0, 1)]
    assert all(tree is trees[0] for tree in trees)  # no change of interests makes another
    assert trees[0].nodes.tolist() == [2, 0, 1, 3]
    assert trees[0].depth.tolist() == [0, 1, 1, 1]
    assert overlay.uplink(0, 2).tolist() == [2]
    assert overlay.tree_state() is None


def test_joining_takes_two_messages_where_a_topic_has_an_owner_and_one_for_each_broker_that_is_told() -> None:
    hub, mesh = star(6, "a"), FullMesh(FullMesh.Parameters(), setting(6))
    assert [(hub.control_hops(0, node), hub.control_requests(0, node)) for node in (0, 5)] == [(0, 2), (2, 2)]
    assert (mesh.control_hops(0, 3), mesh.control_requests(0, 3)) == (5, 5)
    shard, everybody = owner_shard(6), broadcast(6)
    owner = shard.roots[0]
    nodes = owner, (owner + 1) % 6
    assert [(shard.control_hops(0, node), shard.control_requests(0, node)) for node in nodes] == [(0, 2), (2, 2)]
    assert (everybody.control_hops(0, 3), everybody.control_requests(0, 3)) == (0, 0)


def test_a_single_broker_is_mesh_and_star() -> None:
    for overlay in (star(1), FullMesh(FullMesh.Parameters(), setting(1)), owner_shard(1), broadcast(1)):
        overlay.join(0, 0)
        assert overlay.uplink(0, 0).tolist() == overlay.tree(0, 0).nodes.tolist() == [0]
        assert overlay.edges().shape == (0, 2)
        assert overlay.control_hops(0, 0) == 0


# -- the hub


def test_the_central_broker_has_the_least_sum_of_times() -> None:
    line = np.abs(np.subtract.outer([0.0, 3.0, 4.0, 10.0, 11.0], [0.0, 3.0, 4.0, 10.0, 11.0]))
    assert star(5, round_trips=line).hub == 2


@pytest.mark.parametrize("time", [0.1, 0.02, 1 / 3])
def test_the_lowest_of_equals_is_central_whatever_sums_of_floats_come_to(time: float) -> None:
    """Rows that hold the same times in another order: a plain sum may tell them apart."""
    for nodes in range(2, 60):
        times = np.where(np.eye(nodes), 0.0, time)
        assert star(nodes, round_trips=times, names=[str(n) for n in range(nodes)]).hub == 0


def test_a_broker_that_is_called_central_is_meant_by_its_name() -> None:
    assert star(3, names=["north", "south", "central"]).hub == 2


def test_a_hub_that_nobody_is_called() -> None:
    with pytest.raises(
        ScenarioError,
        match=r"geometry\.hub: unknown broker 'Frankfrt', did you mean 'Frankfurt'\? \(there are 3, such as 'Dublin'\)"
        r" \(allowed: a broker's name, 'central'\)",
    ):
        star(3, "Frankfrt", names=["Dublin", "Frankfurt", "Oregon"])


# -- in a network


def test_in_a_mesh_delays_are_direct_latencies_and_nobody_relays() -> None:
    """Every broker is due on every topic: each publication goes to the three others in one hop of half the round-trip time."""
    used = scenario(geometry={"kind": "full-mesh"})
    network = build(used, everybody_wants_everything(), 0)
    assert network.node_of.tolist() == [0, 1, 2, 3]  # nodes_are_brokers: node i is broker i
    metrics = simulate(used, everybody_wants_everything(), 0).metrics
    hops = network.setting.hop_delay
    homes = network.users.host  # after joining, for good
    network.run()
    direct = [hops[homes[n // 4 % 4], broker] for n in range(40) for broker in set(homes.tolist())]
    assert metrics["notification_delay"] == pytest.approx(np.mean(direct), rel=1e-9)
    assert metrics["notification_delay_max"] == pytest.approx(max(direct), rel=1e-9)
    assert metrics["tree_delay"] == metrics["notification_delay"]
    assert metrics["path_stretch"] == pytest.approx(1.0, rel=1e-9)
    assert metrics["external_overhead"] == metrics["uplink_messages"] == 0
    assert metrics["notification_overhead"] == 40 * (len(set(homes.tolist())) - 1)
    assert metrics["delivered"] == metrics["due"]


def test_in_a_broadcast_delays_are_those_of_a_mesh_and_all_others_relay() -> None:
    """Only the first of four brokers wants topic 0: each publication takes three messages, those to the others in vain."""
    world = tiny.workload(
        [{0}, {1}, {1}, {1}], [(0.1 * n, 0, n % 4, 100) for n in range(40)], topics=2, places=PLACES, cell=1.0
    )
    found, mesh = (
        simulate(scenario("in-order", geometry={"kind": kind}), world, 0).metrics for kind in ("broadcast", "full-mesh")
    )
    assert (found["notification_overhead"], found["internal_overhead"], found["external_overhead"]) == (120, 30, 90)
    assert (mesh["notification_overhead"], mesh["external_overhead"]) == (30, 0)
    assert (found["bootstrap_messages"], mesh["bootstrap_messages"]) == (0, 12)
    for name in ("due", "delivered", "notification_delay", "notification_delay_p99", "path_stretch"):
        assert found[name] == mesh[name]
    assert found["delivered"] == found["due"] == 40


def test_where_topics_have_owners_everything_is_two_hops_by_them() -> None:
    used = scenario(geometry={"kind": "owner-shard"}, join="message")
    network = build(used, everybody_wants_everything(), 0)
    network.run()
    owners, hops, homes = network.setting.overlay.roots, network.setting.hop_delay, network.users.host
    delays = [
        hops[homes[n // 4 % 4], owners[n % 4]] + hops[owners[n % 4], broker]
        for n in range(40)
        for broker in set(homes.tolist())
    ]
    metrics = network.metrics()
    assert metrics["notification_delay"] == pytest.approx(np.mean(delays), rel=1e-9)
    assert metrics["notification_delay_max"] == pytest.approx(max(delays), rel=1e-9)
    assert metrics["uplink_messages"] == sum(homes[n // 4 % 4] != owners[n % 4] for n in range(40))
    assert metrics["delivered"] == metrics["due"] == 40 * len(set(homes.tolist()))


@pytest.mark.parametrize("hub", ["t0", "t2", "central"])
def test_in_a_star_everything_is_two_hops_by_the_hub(hub: str) -> None:
    used = scenario(geometry={"kind": "star", "hub": hub}, hop_cost="rtt")
    network = build(used, everybody_wants_everything(), 0)
    network.run()
    middle = network.setting.overlay.hub
    assert middle == {"t0": 0, "t2": 2, "central": 1}[hub]
    hops, homes = network.setting.hop_delay, network.users.host
    delays = [
        hops[homes[n // 4 % 4], middle] + hops[middle, broker] for n in range(40) for broker in set(homes.tolist())
    ]
    metrics = network.metrics()
    assert metrics["notification_delay"] == pytest.approx(np.mean(delays), rel=1e-9)
    assert metrics["notification_delay_max"] == pytest.approx(max(delays), rel=1e-9)
    publishers_at_hub = sum(homes[n // 4 % 4] == middle for n in range(40))
    assert metrics["uplink_messages"] == 40 - publishers_at_hub
    assert metrics["notification_overhead"] == 40 * len(set(homes.tolist()) - {middle})
    assert metrics["path_stretch"] >= 1.0


def test_joins_by_message_need_a_root_to_ask() -> None:
    with pytest.raises(
        ScenarioError,
        match=r'network\.join: "message" asks .* "full-mesh" has a tree for each publisher \(allowed: "ins',
    ):
        build(scenario(geometry={"kind": "full-mesh"}, join="message"), everybody_wants_everything(), 0)
    build(scenario(geometry={"kind": "star"}, join="message"), everybody_wants_everything(), 0).run()
    with pytest.raises(ScenarioError, match=r'network\.join: trees .* no single root to ask \(allowed: "instant"\)'):
        FullMesh(FullMesh.Parameters(), setting(3)).control_path(0, 1)
