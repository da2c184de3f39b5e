"""The reconstruction of GeoPS: quadrants by repeatedly halving the map, and geocast into those in which a broker wants the topic."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.overlays import Prefix

from sim.base.errors import ScenarioError
from sim.overlay.geographic import Geographic
from sim.overlay.geometry import GeometrySetting
from sim.overlay.sites import Sites
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import build, simulate

Place = tuple[float, float]
UNITED_STATES = [(row + 30.5, column - 125.5) for row in range(20) for column in range(60)]


def geographic(places: list[Place], topics: list[Place] | None = None, times: Any = None, **said: Any) -> Geographic:
    n = len(places)
    sites = Sites(tuple(f"b{i}" for i in range(n)), *np.array(places, float).reshape(-1, 2).T)
    times = np.where(np.eye(n), 0.0, 1.0) if times is None else times
    where = np.array(places if topics is None else topics, float).reshape(-1, 2)
    setting = GeometrySetting(n, len(where), 3, sites, times, where)
    return Geographic(Geographic.Parameters(**said), setting)


def halved(place: Place, box: tuple[Place, Place], levels: int) -> str:
    """The path to a place: at each level, is it in the upper half, and in the right one?"""
    path = ""
    for _ in range(levels):
        middle = [(low + high) / 2 for low, high in zip(*box, strict=True)]
        upper = [x >= m for x, m in zip(place, middle, strict=True)]
        path += str(2 * upper[0] + upper[1])
        low = [m if u else b for m, u, b in zip(middle, upper, box[0], strict=True)]
        high = [b if u else m for m, u, b in zip(middle, upper, box[1], strict=True)]
        box = (low[0], low[1]), (high[0], high[1])
    return path


def agreeing(one: str, other: str) -> int:
    """The number of levels that two paths share."""
    return next(level for level, pair in enumerate(zip(one, other, strict=True)) if len(set(pair)) > 1)


def middle_of(path: str, box: tuple[Place, Place]) -> Place:
    """The centre of the quadrant at the end of a path."""
    low, side = list(box[0]), [high - low for low, high in zip(*box, strict=True)]
    for digit in map(int, path):
        side = [s / 2 for s in side]
        low = [low[0] + side[0] * (digit // 2), low[1] + side[1] * (digit % 2)]
    return low[0] + side[0] / 2, low[1] + side[1] / 2


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=2, max_size=14, unique=True),
    st.sampled_from(["centre", "closest", "random"]),
    st.integers(0, 10**6),
)
@settings(max_examples=25, deadline=None)
def test_routes_are_those_of_literal_prefix_routing_on_paths_of_quadrants(
    points: list[Place], representative: str, seed: int
) -> None:
    """Points of a grid of 9 × 9 lie on the lines between quadrants, or not; the corners are taken, so that the box is known."""
    points = list(dict.fromkeys([*points, (0, 0), (8, 8)]))
    box, rng = ((0.0, 0.0), (8.0, 8.0)), np.random.default_rng(seed)
    times = rng.integers(1, 5, (len(points), len(points))) / 4
    np.fill_diagonal(times, 0.0)
    overlay = geographic(points, times=times, representative=representative)
    ids = [halved(point, box, overlay.levels) for point in points]
    assert len(set(ids)) == len(ids)
    shorter = {path[:-1] for path in ids}
    assert len(shorter) < len(ids)  # one level less would not do

    def pick(node: int, having: list[int]) -> int:
        level = next(i for i, digit in enumerate(ids[node]) if digit != ids[having[0]][i])
        if representative == "closest":
            return min(having, key=lambda other: (times[node, other], other))
        if representative == "centre":
            middle = middle_of(ids[having[0]][: level + 1], box)
            return min(having, key=lambda other: (math.dist(points[other], middle), other))
        found = [v for v in having if overlay.route(node, v).tolist()[1] == v]
        assert len(found) == 1  # the one that it knows there is where all others of the quadrant are reached through
        return found[0]

    truth = Prefix(ids, "0123", pick)
    for u in range(len(points)):
        for v in range(len(points)):
            assert overlay.route(u, v).tolist() == truth.route(u, v)
            assert overlay.hops[u, v] == len(truth.route(u, v)) - 1
    assert overlay.roots == list(range(len(points)))  # topics that are cells, each at its broker
    members = np.flatnonzero(rng.random(len(points)) < 0.5).tolist()
    for node in members:
        overlay.join(0, node)
    tree = overlay.tree(0, 0)
    above = [None if place < 0 else int(tree.nodes[place]) for place in tree.parents.tolist()]
    assert dict(zip(tree.nodes.tolist(), above, strict=True)) == truth.tree(0, members)


def test_one_copy_enters_each_quadrant_with_interest_and_none_enters_others() -> None:
    rng = np.random.default_rng(4)
    for representative in ("centre", "random", "closest"):
        overlay = geographic(UNITED_STATES, representative=representative)
        ids = [halved(place, ((30.5, -125.5), (49.5, -66.5)), overlay.levels) for place in UNITED_STATES]
        for topic in rng.choice(1200, 5, replace=False).tolist():
            members = rng.choice(1200, 40, replace=False).tolist()
            for node in members:
                overlay.join(topic, node)
            tree = overlay.tree(topic, topic)
            edges = [(ids[tree.nodes[p]], ids[v]) for v, p in zip(tree.nodes, tree.parents, strict=True) if p >= 0]
            addressed = {there[: agreeing(here, there) + 1] for here, there in edges}
            assert len(addressed) == len(edges)
            for level in range(1, overlay.levels + 1):
                entered = Counter(there[:level] for here, there in edges if here[:level] != there[:level])
                wanted = {ids[node][:level] for node in members}
                assert max(entered.values()) == 1
                assert wanted - {ids[topic][:level]} <= entered.keys()
                assert {quadrant for quadrant in addressed if len(quadrant) == level} <= wanted


def test_the_united_states_by_degrees_take_six_levels() -> None:
    overlay = geographic(UNITED_STATES)
    assert overlay.levels == 6
    assert len(set(overlay.ids.tolist())) == 1200
    assert geographic(UNITED_STATES, levels=7).levels == 7
    with pytest.raises(
        ScenarioError, match=r"levels: with 2\^5 cells a side, brokers share cells \(allowed: 6 or more\)"
    ):
        geographic(UNITED_STATES, levels=5)


def test_quadrants_without_brokers_are_passed_by() -> None:
    """Two brokers close together in one corner, one in the other: most quadrants of the six levels are empty."""
    overlay = geographic([(0, 0), (0.02, 0.02), (1, 1)], levels=6)
    assert overlay.edges().tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 1]]
    assert overlay.route(2, 0).tolist() == [
        2,
        1,
        0,
    ]  # 1 is the nearest to the middle of the lower left


def test_a_topic_between_brokers_belongs_to_the_nearest() -> None:
    overlay = geographic([(0, 0), (0, 10), (10, 0)], topics=[(1, 4), (1, 6), (80, 5), (0, 5)])
    assert overlay.roots == [0, 1, 2, 0]
    assert overlay.uplink(1, 2).tolist() == [2, 1]


def test_brokers_in_a_line_and_one_broker_alone() -> None:
    line = geographic([(5, float(x)) for x in range(8)])
    assert line.levels == 3
    alone = geographic([(5, 5)], topics=[(6, 6)])
    assert (alone.levels, alone.roots, alone.uplink(0, 0).tolist()) == (0, [0], [0])


def test_brokers_at_one_place_have_no_grid() -> None:
    with pytest.raises(ScenarioError, match=r"one broker per cell, but broker 'b2' stands where another does"):
        geographic([(0, 0), (1, 1), (0, 0)])


# -- in a network

CELLS = [(row + 0.5, column + 0.5) for row in range(3) for column in range(4)]


def scenario(**network: Any) -> Scenario:
    said = {"brokers": "cells", "geometry": {"kind": "geographic"}, "latency": {"kind": "distance"}, **network}
    return load_scenario({"network": said, "selection": {"kind": "location"}}).base


def world(users: int = 30) -> Any:
    """Users at home in cells, who want their own cell and another; half of them move once; all publish on their first cell."""
    rng = np.random.default_rng(users)
    home = rng.integers(0, 12, users).tolist()
    movements = [(0.0, user, *CELLS[home[user]]) for user in range(users)]
    movements += [(5.0 + user / 8, user, *CELLS[(home[user] + 1) % 12]) for user in range(0, users, 2)]
    wants = [{home[user], (home[user] + 5) % 12} for user in range(users)]
    publications = [(1.0 + 0.1 * n, home[n % users], n % users, 10) for n in range(200)]
    return tiny.workload(wants, publications, (), movements, topics=12, horizon=30.0, places=CELLS, cell=1.0)


def test_users_hand_over_when_they_leave_their_cell_and_everything_arrives() -> None:
    metrics = simulate(scenario(), world(), 0).metrics
    assert metrics["handovers"] >= 15
    assert metrics["lost"] == 0
    assert metrics["delivered"] == metrics["due"] - metrics["in_flight"] > 300
    assert metrics["tree_state"] > 0


def test_brokers_are_their_cells_and_topics_are_rooted_there() -> None:
    network = build(scenario(), world(), 0)
    assert network.node_of.tolist() == list(range(12))
    assert network.setting.overlay.roots == list(range(12))
    few = build(scenario(brokers=3), world(), 0)
    assert set(few.setting.overlay.roots) == {0, 1, 2}


def test_topics_without_places_are_refused() -> None:
    nowhere = tiny.workload([{0}], [(1.0, 0, 0, 1)], topics=2, horizon=3.0)
    used = load_scenario(
        {"network": {"brokers": 3, "geometry": {"kind": "geographic"}, "latency": {"kind": "unit"}}}
    ).base
    with pytest.raises(ScenarioError, match=r'geometry: kind "geographic" needs positions of all brokers and topics'):
        build(used, nowhere, 0)
