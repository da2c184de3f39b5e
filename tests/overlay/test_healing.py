"""Overlays that route around nodes that are down are those of the nodes that are left, and once these are up again, the first ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sim.overlay.chord import Chord, hashed_topics
from sim.overlay.geographic import Geographic
from sim.overlay.geometry import GeometrySetting
from sim.overlay.healing import Healing, rejoining
from sim.overlay.owner_shard import OwnerShard
from sim.overlay.sites import Sites
from sim.overlay.star import Star
from sim.overlay.tapestry import Tapestry

TOPICS = 6
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (Chord, {"successors": 1024}),
    (Tapestry, {"digits": 4}),
    (Tapestry, {"digits": 4, "pns": True}),
    (Geographic, {}),
    (Geographic, {"representative": "closest"}),
    (Star, {}),
    (OwnerShard, {}),
]


def made(kind: Any, parameters: dict[str, Any], nodes: int, key: int) -> Any:
    rng = np.random.default_rng(key)
    places = rng.uniform(-60, 60, (nodes + TOPICS, 2))
    sites = Sites(tuple(map(str, range(nodes))), places[:nodes, 0], places[:nodes, 1])
    times = rng.uniform(0.01, 0.3, (nodes, nodes))
    np.fill_diagonal(times := times + times.T, 0.0)
    return kind(kind.Parameters(**parameters), GeometrySetting(nodes, TOPICS, key, sites, times, places[nodes:]))


def joined(overlay: Any, rng: np.random.Generator) -> NDArray[np.bool_]:
    members = rng.random((TOPICS, overlay.nodes)) < 0.4
    for topic, node in np.argwhere(members).tolist():
        overlay.join(topic, node)
    return members


def trees(overlay: Any) -> list[tuple[Any, ...]]:
    return [(tree.nodes.tolist(), tree.parents.tolist()) for tree in (overlay.tree(t, -1) for t in range(TOPICS))]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 14), st.integers(0, 10**6), st.floats(0.0, 0.9))
def test_live_nodes_reach_the_root_and_are_reached_whatever_is_down(
    kind: tuple[Any, dict[str, Any]], nodes: int, key: int, share: float
) -> None:
    overlay, rng = made(*kind, nodes, key), np.random.default_rng(key)
    members, whole, links = joined(overlay, rng), made(*kind, nodes, key), overlay.edges().tolist()
    down = rng.random(nodes) < share
    down[rng.integers(nodes)] = False
    assert isinstance(overlay, Healing)
    repair = overlay.heal(down, np.zeros_like(down))
    assert repair.around.tolist() == down.tolist()
    edges = {tuple(edge) for edge in overlay.edges().tolist()}
    assert not down[np.array(sorted(edges), np.int64).reshape(-1, 2)].any()
    for topic in range(TOPICS):
        for source in np.flatnonzero(~down).tolist():
            path = overlay.uplink(topic, source).tolist()
            assert path[0] == source
            assert path[-1] == overlay.roots[topic]
            assert not down[path].any()
            assert edges.issuperset(pairwise(path))
        tree = overlay.tree(topic, overlay.roots[topic])
        assert set(np.flatnonzero(members[topic] & ~down).tolist()) <= set(tree.nodes.tolist())
        assert not down[tree.nodes].any()
    overlay.heal(np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_))
    for topic, node in np.argwhere(members & ~down).tolist():
        whole.join(topic, node)
    assert trees(overlay) == trees(whole)
    assert overlay.roots == whole.roots
    assert overlay.edges().tolist() == links


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.integers(0, 10**6))
def test_a_ring_without_some_nodes_is_the_ring_of_the_others(nodes: int, key: int) -> None:
    """The links of each node, and the roots of all topics."""
    overlay, rng = made(Chord, {"successors": 1024}, nodes, key), np.random.default_rng(key)
    down = rng.random(nodes) < 0.5
    down[rng.integers(nodes)] = False
    overlay.heal(down, np.zeros_like(down))
    live = np.flatnonzero(~down).tolist()
    ids = overlay.ids.tolist()

    def first_at_or_after(point: int) -> int:
        return min(live, key=lambda node: (ids[node] - point) % 2**32)

    links = {(u, first_at_or_after(ids[u] + 2**i)) for u in live for i in range(32)}
    assert overlay.edges().tolist() == sorted([u, v] for u, v in links if u != v)
    hashes = hashed_topics(GeometrySetting(nodes, TOPICS, key), 32).tolist()
    assert overlay.roots == [first_at_or_after(point) for point in hashes]


def test_a_run_as_long_as_a_successor_list_stays_also_across_zero() -> None:
    overlay = made(Chord, {"successors": 2}, 6, 1)
    down = np.array([True, False, True, False, False, True])
    assert overlay.heal(down, np.zeros_like(down)).around.tolist() == [False, False, True, False, False, False]
    down[5] = False
    assert overlay.heal(down, np.zeros_like(down)).around.tolist() == [True, False, True, False, False, False]


def test_nodes_that_leave_as_planned_break_no_ring() -> None:
    overlay = made(Chord, {"successors": 2}, 6, 1)
    down = np.array([True, False, True, False, False, True])
    absent = np.array([True, False, False, False, False, False])
    assert overlay.heal(down, absent).around.tolist() == down.tolist()


def test_a_root_that_leaves_hands_its_topics_over_and_sends_on_what_still_comes() -> None:
    """The message of a topic goes from the former root to the present one, and from there along its tree."""
    overlay, rng = made(Chord, {}, 8, 3), np.random.default_rng(3)
    joined(overlay, rng)
    topic = next(t for t in range(TOPICS) if sum(overlay.joined(node)[t] for node in range(8)) > 2)
    root = overlay.roots[topic]
    leaving = np.arange(8) == root
    repair = overlay.heal(leaving, leaving)
    tree, former = overlay.tree(topic, overlay.roots[topic]), overlay.tree(topic, root)
    assert repair.topics >= 1
    assert repair.trees >= 1
    assert overlay.roots[topic] != root
    assert former.nodes.tolist() == [root, *tree.nodes.tolist()]
    assert former.parents.tolist() == [-1, 0, *(tree.parents[1:] + 1).tolist()]
    assert former.depth.tolist() == [0, *(tree.depth + 1).tolist()]
    assert former.first_child.tolist() == [1, *(tree.first_child + 1).tolist()]


def test_without_a_live_node_nothing_changes() -> None:
    overlay = made(Chord, {}, 4, 1)
    before = overlay.edges().tolist()
    repair = overlay.heal(np.ones(4, np.bool_), np.zeros(4, np.bool_))
    assert (repair.messages, repair.around.any(), overlay.edges().tolist()) == (0, False, before)


@pytest.mark.parametrize(("nodes", "messages"), [(1, 0), (2, 1), (16, 16), (1000, 100)])
def test_rejoining_takes_the_square_of_the_logarithm(nodes: int, messages: int) -> None:
    assert rejoining(nodes, 1) == messages
    assert rejoining(nodes, 3) == 3 * messages


@pytest.mark.parametrize(("kind", "parameters"), KINDS)
def test_a_node_that_is_routed_around_joins_no_tree(kind: Any, parameters: dict[str, Any]) -> None:
    overlay = made(kind, parameters, 8, 1)
    overlay.heal(np.arange(8) == 3, np.zeros(8, np.bool_))
    with pytest.raises(ValueError, match="node 3 is routed around, and on no tree"):
        overlay.join(0, 3)
    overlay.heal(np.zeros(8, np.bool_), np.zeros(8, np.bool_))
    overlay.join(0, 3)
    assert 3 in overlay.tree(0, -1).nodes
