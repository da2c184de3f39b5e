"""Topic trees kept up to date join by join: always equal to a new build and to the union of literal routes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from oracles import chord as oracle

from sim.overlay.chord import Chord
from sim.overlay.geometry import GeometrySetting, TopicTree

TOPICS = 3


def chord(nodes: int, bits: int = 16, key: int = 3, ids: str = "hashed") -> Chord:
    return Chord(Chord.Parameters(ids=ids, bits=bits), GeometrySetting(nodes, TOPICS, key))


def as_lists(tree: TopicTree) -> list[list[int]]:
    return [array.tolist() for array in (tree.nodes, tree.parents, tree.first_child, tree.depth)]


def check_shape(tree: TopicTree, root: int) -> None:
    """All arrays of a tree tell the same story, in top-down order."""
    nodes, parents, first_child, depth = as_lists(tree)
    assert len(tree) == len(nodes) == len(parents) == len(depth) == len(first_child) - 1
    assert tree.child_bounds == first_child
    if not nodes:
        return
    assert (nodes[0], parents[0], depth[0]) == (root, -1, 0)
    assert len(set(nodes)) == len(nodes)
    children = [list(range(first_child[i], first_child[i + 1])) for i in range(len(nodes))]
    assert [child for below in children for child in below] == list(range(1, len(nodes)))
    for i, below in enumerate(children):
        assert all(parents[child] == i and depth[child] == depth[i] + 1 for child in below)


class Membership(RuleBasedStateMachine):
    """Nodes join and leave in any order; snapshots are taken on the way."""

    snapshots = Bundle("snapshots")

    @initialize(nodes=st.integers(1, 24), key=st.integers(0, 50), ids=st.sampled_from(["hashed", "even"]))
    def build(self, nodes: int, key: int, ids: str) -> None:
        self.make = lambda: chord(nodes, 5, key, ids)
        self.overlay = self.make()
        self.members: list[set[int]] = [set() for _ in range(TOPICS)]

    @rule(topic=st.integers(0, TOPICS - 1), pick=st.integers(0, 23))
    def change(self, topic: int, pick: int) -> None:
        node = pick % len(self.overlay.ids)
        if node in self.members[topic]:
            with pytest.raises(ValueError, match=f"node {node} is on the tree of topic {topic} already"):
                self.overlay.join(topic, node)
            self.overlay.leave(topic, node)
        else:
            with pytest.raises(ValueError, match=f"node {node} is not on the tree of topic {topic}"):
                self.overlay.leave(topic, node)
            self.overlay.join(topic, node)
        self.members[topic] ^= {node}

    @rule(target=snapshots, topic=st.integers(0, TOPICS - 1))
    def take(self, topic: int) -> tuple[TopicTree, list[list[int]]]:
        tree = self.overlay.tree(topic, 0)
        return tree, as_lists(tree)

    @rule(snapshot=snapshots)
    def kept(self, snapshot: tuple[TopicTree, list[list[int]]]) -> None:
        """What left the root earlier travels by the tree as it stood then."""
        tree, then = snapshot
        assert as_lists(tree) == then

    @invariant()
    def trees_are_right(self) -> None:
        fresh = self.make()
        ring = fresh.ids.tolist()
        for topic, members in enumerate(self.members):
            for node in sorted(members, reverse=True):
                fresh.join(topic, node)
            tree, root = self.overlay.tree(topic, 0), self.overlay.roots[topic]
            assert as_lists(tree) == as_lists(fresh.tree(topic, 0))
            check_shape(tree, root)
            ids = fresh.ids[tree.nodes].tolist()
            edges = {(ids[parent], ids[i]) for i, parent in enumerate(tree.parents.tolist()) if i}
            assert edges == oracle.tree(ring, 5, ring[root], [ring[node] for node in members])
            assert set(ids) == {node for edge in edges for node in edge} | ({ring[root]} if members else set())


TestMembership = Membership.TestCase
TestMembership.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_large_trees_after_many_changes() -> None:
    """300 nodes, thousands of joins and leaves: the tree equals a fresh one, and its cost the number of nodes below the root."""
    overlay, rng = chord(300), np.random.default_rng(4)
    members: set[int] = set()
    for node in rng.integers(0, 300, 4000).tolist():
        (overlay.leave if node in members else overlay.join)(1, node)
        members ^= {node}
        if rng.random() < 0.02:
            overlay.tree(1, 0)
    fresh = chord(300)
    for node in members:
        fresh.join(1, node)
    tree = overlay.tree(1, 0)
    assert as_lists(tree) == as_lists(fresh.tree(1, 0))
    check_shape(tree, overlay.roots[1])
    assert (tree.depth == overlay.hops[overlay.roots[1]][tree.nodes]).all()
    for node in members:
        overlay.leave(1, node)
    assert len(overlay.tree(1, 0)) == 0


def test_nobody_and_the_root_alone() -> None:
    overlay = chord(20)
    root = overlay.roots[0]
    assert as_lists(overlay.tree(0, 5)) == [[], [], [0], []]
    overlay.join(0, root)
    assert as_lists(overlay.tree(0, 5)) == [[root], [-1], [1, 1], [0]]
    overlay.leave(0, root)
    assert as_lists(overlay.tree(0, 5)) == [[], [], [0], []]


def test_a_node_that_leaves_stays_as_a_relay_while_others_are_below_it() -> None:
    #  1 → 5 → 7 → 0 on the full ring of 8
    overlay = chord(8, 3, ids="even")
    overlay.roots = [1] * TOPICS
    for node in (0, 5):
        overlay.join(0, node)
    before = as_lists(overlay.tree(0, 0))
    assert before[0] == [1, 5, 7, 0]
    overlay.leave(0, 5)
    assert as_lists(overlay.tree(0, 0)) == before
    overlay.leave(0, 0)
    assert len(overlay.tree(0, 0)) == 0


def test_topics_do_not_touch_each_other() -> None:
    overlay = chord(30)
    overlay.join(0, 7)
    overlay.join(2, 9)
    before = as_lists(overlay.tree(0, 0))
    overlay.leave(2, 9)
    overlay.join(1, 7)
    assert as_lists(overlay.tree(0, 0)) == before


def test_uplink_and_control_path_are_routes() -> None:
    overlay = chord(64)
    ring = overlay.ids.tolist()
    for topic in range(TOPICS):
        root = overlay.roots[topic]
        for node in range(64):
            up = oracle.route(ring, 16, ring[node], ring[root])
            back = oracle.route(ring, 16, ring[root], ring[node])
            assert overlay.ids[overlay.uplink(topic, node)].tolist() == up
            assert overlay.ids[overlay.control_path(topic, node)].tolist() == up + back[1:]
            hops = int(overlay.hops[node, root] + overlay.hops[root, node])
            assert len(overlay.control_path(topic, node)) - 1 == hops
    assert overlay.uplink(0, overlay.roots[0]) == overlay.control_path(0, overlay.roots[0]) == [overlay.roots[0]]


def test_failed_changes_change_nothing() -> None:
    overlay = chord(10)
    overlay.join(0, 4)
    before = as_lists(overlay.tree(0, 0))
    with pytest.raises(ValueError, match="already"):
        overlay.join(0, 4)
    with pytest.raises(ValueError, match="is not on the tree"):
        overlay.leave(0, 5)
    assert as_lists(overlay.tree(0, 0)) == before
    overlay.leave(0, 4)
    with pytest.raises(ValueError, match="is not on the tree"):
        overlay.leave(0, 4)
