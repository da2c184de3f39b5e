"""Tapestry's routes against literal prefix routing over texts, and hops and stretch against a direct computation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.overlays import Prefix

from sim.base.errors import ScenarioError
from sim.overlay.chord import Chord, hashed
from sim.overlay.geometry import GeometrySetting
from sim.overlay.tapestry import Tapestry
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def times_of(nodes: int, seed: int = 1) -> Any:
    """Round-trip times (s) between points of a plane, a few of them equal."""
    points = np.random.default_rng(seed).integers(0, 12, (nodes, 2)) / 4
    times = 0.25 + np.hypot(*(points[:, None] - points).T)
    np.fill_diagonal(times, 0.0)
    return times


def tapestry(nodes: int, topics: int = 20, key: int = 5, **parameters: Any) -> Tapestry:
    setting = GeometrySetting(nodes, topics, key, round_trips=times_of(nodes))
    return Tapestry(Tapestry.Parameters(**parameters), setting)


def text(digits: Any) -> str:
    return "".join(ALPHABET[digit] for digit in digits)


def literal(overlay: Tapestry) -> Prefix:
    """The same ids as texts; the neighbour that a node picks follows from times, or from its table, which may hold no other node."""
    ids = [text(row) for row in overlay.prefixes.digits.tolist()]
    times = times_of(len(ids)).tolist()

    def nearest(node: int, having: list[int]) -> int:
        return min(having, key=lambda other: (times[node][other], other))

    def drawn(node: int, having: list[int]) -> int:
        level = next(i for i, digit in enumerate(ids[node]) if digit != ids[having[0]][i])
        found = int(overlay.table[node, level, ALPHABET.index(ids[having[0]][level])])
        assert found in having
        return found

    return Prefix(ids, ALPHABET[: overlay.prefixes.base], nearest if overlay.nodes_are_brokers else drawn)


@given(
    st.integers(1, 40),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([(8, 16), (6, 2), (3, 4), (4, 8), (2, 64)]),
)
@settings(max_examples=25, deadline=None)
def test_routes_roots_and_trees_are_those_of_literal_prefix_routing(
    nodes: int, key: int, pns: bool, shape: tuple[int, int]
) -> None:
    digits, base = shape
    if base > len(ALPHABET):
        base = 32
    overlay = tapestry(nodes, topics=6, key=key, pns=pns, digits=digits, base=base)
    truth, rng = literal(overlay), np.random.default_rng(key)
    for topic in range(6):
        bits = digits * (base.bit_length() - 1)
        name = text(hashed(f"{key}/topic/{topic}", bits) // base**i % base for i in range(digits - 1, -1, -1))
        for source in range(nodes):
            assert overlay.uplink(topic, source).tolist() == truth.surrogate(source, name)  # so all end at one root
        root = overlay.roots[topic]
        members = np.flatnonzero(rng.random(nodes) < 0.4).tolist()
        for node in members:
            overlay.join(topic, node)
        tree = overlay.tree(topic, root)
        found = dict(zip(tree.nodes.tolist(), tree.parents.tolist(), strict=True))
        above = {node: None if place < 0 else int(tree.nodes[place]) for node, place in found.items()}
        assert above == truth.tree(root, members)  # which asserts that no node has two parents
    for u, v in rng.integers(0, nodes, (20, 2)).tolist():
        route = truth.route(u, v)
        assert overlay.route(u, v).tolist() == route
        assert overlay.hops[u, v] == len(route) - 1
        assert overlay.parent[u, v] == (route[-2] if u != v else -1)


@pytest.mark.parametrize("pns", [False, True])
def test_hops_and_stretch_are_those_of_a_direct_computation(pns: bool) -> None:
    """300 nodes, 3,000 pairs: every hop looks the next one up among those that have the prefix."""
    overlay, times = tapestry(300, pns=pns), times_of(300)
    truth, pairs = literal(overlay), np.random.default_rng(2).integers(0, 300, (3000, 2)).tolist()
    routes = [truth.route(u, v) for u, v in pairs if u != v]
    found = [overlay.route(u, v).tolist() for u, v in pairs if u != v]

    def stretch(route: list[int]) -> float:
        return sum(times[a, b] for a, b in itertools.pairwise(route)) / times[route[0], route[-1]]

    assert np.mean([len(route) for route in found]) == np.mean([len(route) for route in routes])
    assert np.mean(list(map(stretch, found))) == np.mean(list(map(stretch, routes)))


def test_nearby_neighbours_shorten_ways_but_take_no_hops_off() -> None:
    times = times_of(400)
    mean = {}
    for pns in (False, True):
        overlay = tapestry(400, pns=pns)
        way = times[0].copy()
        for v in range(400):
            route = overlay.route(0, v).tolist()
            way[v] = sum(times[a, b] for a, b in itertools.pairwise(route))
        mean[pns] = way.mean(), overlay.hops.mean()
    assert mean[True][0] < 0.7 * mean[False][0]
    assert mean[True][1] == pytest.approx(mean[False][1], rel=0.05)


def test_about_as_many_hops_as_digits_to_tell_brokers_apart() -> None:
    """Base 16 at 1,200 nodes: 2.7 hops, where Chord has 5.0."""
    apart = ~np.eye(1200, dtype=bool)
    assert tapestry(1200).hops[apart].mean() == pytest.approx(2.7, abs=0.1)
    assert tapestry(1200, base=2, digits=32).hops[apart].mean() == pytest.approx(0.5 * math.log2(1200), rel=0.15)


def test_each_entry_is_drawn_for_itself_and_the_key_is_all_that_it_depends_on() -> None:
    one, same, other = tapestry(200), tapestry(200), tapestry(200, key=6)
    assert one.table.tolist() == same.table.tolist()
    assert one.prefixes.ids.tolist() != other.prefixes.ids.tolist()
    first = one.table[:, 0, 3]  # whom all nodes know for one first digit
    assert len(set(first.tolist())) > 5


def test_who_is_near_can_be_said_of_brokers_alone() -> None:
    """With proximity neighbours node i is broker i, though ids are as random as ever; without, brokers are mapped."""
    assert tapestry(50, pns=True).nodes_are_brokers
    assert not tapestry(50).nodes_are_brokers
    ids = tapestry(50, pns=True).prefixes.ids
    assert (np.diff(ids) < 0).any()
    assert sorted(ids) == sorted(tapestry(50).prefixes.ids)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"digits": 1}, r"geometry\.digits: 16\^1 ids for 17 brokers \(allowed: at least as many ids as brokers"),
        ({"digits": 16}, r"geometry\.digits: 16\^16 ids .*at most 2\^62"),
    ],
)
def test_ids_that_cannot_be(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        tapestry(17, **parameters)


def test_one_broker_is_the_root_of_everything() -> None:
    overlay = tapestry(1, topics=2, pns=True)
    overlay.join(1, 0)
    assert overlay.roots == [0, 0]
    assert overlay.uplink(1, 0).tolist() == overlay.tree(1, 0).nodes.tolist() == [0]
    assert overlay.control_hops(1, 0) == overlay.tree_state() == 0


# -- what is kept of trees


def test_bayeux_keeps_the_members_below_and_others_the_children() -> None:
    #  1 → 5 → 7 → 0 on the full ring of 8: members 5 and 0
    for state, entries in (("children", 3), ("members", 2 + 1 + 1)):
        ring = Chord(Chord.Parameters(ids="even", bits=3, state=state), GeometrySetting(8, 2, 1))
        ring.roots = [1, 1]
        ring.join(0, 5)
        ring.join(0, 0)
        assert ring.tree_state() == entries
        ring.leave(0, 0)
        ring.leave(0, 5)
        assert ring.tree_state() == 0
    assert Tapestry.Parameters().state == "members"


def test_bayeux_on_tapestry_and_on_chord_in_a_network() -> None:
    """The same users and brokers; joins and leaves go to the root and back, and the fewer hops of Tapestry cost fewer messages."""
    rng = np.random.default_rng(1)
    wants = [set(rng.choice(8, 2, replace=False).tolist()) for _ in range(90)]
    events = [(1.0 + n / 10, n, min(wants[n]), -1) for n in range(90)]
    world = tiny.workload(wants, [(0.1 * n, n % 8, n % 90, 9) for n in range(400)], events, topics=8, horizon=60.0)
    metrics = {}
    for geometry in ({"kind": "tapestry"}, {"kind": "tapestry", "pns": True}, {"kind": "chord", "state": "members"}):
        said = {"brokers": 60, "geometry": geometry, "latency": {"kind": "unit"}}
        scenario = load_scenario({"network": said, "selection": {"kind": "static"}}).base
        network = build(scenario, world, 0)
        network.run()
        overlay = network.setting.overlay
        wanted = np.argwhere(network.subscriptions.wanted.dense())
        subscribed = [(topic, int(network.node_of[b])) for topic, b in wanted]
        depth = sum(int(overlay.hops[overlay.roots[topic], node]) for topic, node in subscribed)
        metrics[str(geometry)] = found = simulate(scenario, world, 0).metrics
        assert found["tree_state"] == depth
        assert found["delivered"] == found["due"] - found["in_flight"] > 1000
    plain, near, ring = metrics.values()
    assert plain["broker_subscription_changes"] == near["broker_subscription_changes"]
    assert max(plain["subscription_overhead"], near["subscription_overhead"]) < ring["subscription_overhead"]
    assert plain["tree_state"] < ring["tree_state"]
