"""Overlays under changes of interest: repaired as the paper's greedy would continue, pruned, rebuilt; and DCB-M."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import topic_connected as oracle

from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips
from sim.overlay.topic_connected.measures import connected_topics
from sim.overlay.topic_connected.repair import Dcbm, RepairedOverlay

Edge = tuple[int, int]


def pairs(edges: NDArray[np.int32]) -> set[Edge]:
    return {(u, v) for u, v in edges.tolist()}


def interests_of(rows: list[set[int]], topics: int) -> BrokerInterests:
    return BrokerInterests.where(np.array([[topic in row for topic in range(topics)] for row in rows], np.bool_))


def useless(rows: list[set[int]], edges: set[Edge], node: int) -> set[Edge]:
    """The links of a node that go, lowest neighbour first: all topics stay connected without."""
    gone: set[Edge] = set()
    for edge in sorted((edge for edge in edges if node in edge), key=lambda edge: sum(edge) - node):
        if not any(oracle.weights(rows, sorted(edges - gone - {edge})).values()):
            gone.add(edge)
    return gone


@pytest.mark.parametrize("algorithm", ["gm", "minmax-oda", "low-oda"])
def test_repair_is_the_greedy_from_the_links_that_are_there_then_a_prune(algorithm: str) -> None:
    rng = random.Random(f"repair {algorithm}")
    costs, pruned = [], 0
    for _ in range(12):
        n, t = rng.randint(2, 9), rng.randint(2, 6)
        rows = [{topic for topic in range(t) if rng.random() < 0.5} for _ in range(n)]
        overlay = RepairedOverlay(interests_of(rows, t), algorithm, slack=100)
        edges = set(oracle.greedy(rows, algorithm, overlay.k))
        for _ in range(12):
            node = rng.randrange(n)
            add = rng.sample(sorted(set(range(t)) - rows[node]), min(rng.randint(0, 1), t - len(rows[node])))
            drop = rng.sample(sorted(rows[node]), min(rng.randint(0, 1), len(rows[node])))
            rows[node] = (rows[node] | set(add)) - set(drop)
            change = overlay.change(node, add, drop)
            before = edges
            edges = edges | set(oracle.greedy(rows, algorithm, overlay.k, kept=sorted(edges)))
            gone = useless(rows, edges, node)
            edges = edges - gone
            assert pairs(overlay.edges) == edges
            assert (pairs(change.added), pairs(change.removed)) == (edges - before, before - edges)
            assert not change.rebuilt
            costs.append(change.cost)
            pruned += len(gone)
    assert max(costs) >= 2
    assert pruned > 5


@pytest.mark.parametrize("algorithm", ["gm", "low-oda"])
def test_connected_after_every_change_and_never_far_from_a_fresh_design(algorithm: str) -> None:
    rng = np.random.default_rng(4)
    overlay = RepairedOverlay(coin_flips(150, 40, 6, rng), algorithm)
    edges, costs, rebuilds = pairs(overlay.edges), [], 0
    for _ in range(150):
        node = int(rng.integers(150))
        wants = overlay.interests.row(node).tolist()
        lacks = sorted(set(range(40)) - set(wants))
        change = overlay.change(node, [int(rng.choice(lacks))], [int(rng.choice(wants))] if wants else [])
        assert connected_topics(overlay.interests, overlay.edges).all()
        assert len(overlay.edges) <= 1.05 * len(design(overlay.interests, algorithm))
        assert pairs(change.removed) <= edges
        assert not pairs(change.added) & edges
        edges = (edges | pairs(change.added)) - pairs(change.removed)
        assert edges == pairs(overlay.edges)
        if change.rebuilt:
            rebuilds += 1
            assert edges == pairs(design(overlay.interests, algorithm))
        else:
            costs.append(change.cost)
    assert 1 <= rebuilds < 30
    assert np.mean(costs) <= 3


def test_everybody_leaves_and_comes_back() -> None:
    rng = np.random.default_rng(1)
    start = coin_flips(30, 8, 3, rng)
    overlay = RepairedOverlay(start)
    for node in range(30):
        overlay.change(node, drop=start.row(node).tolist())
    assert len(overlay.edges) == 0
    for node in reversed(range(30)):
        overlay.change(node, add=start.row(node).tolist())
    assert connected_topics(start, overlay.edges).all()


def test_changes_that_cannot_be_are_refused_and_change_nothing() -> None:
    overlay = RepairedOverlay(interests_of([{0, 1}, {0}, {1}], 3))
    before = pairs(overlay.edges)
    with pytest.raises(ValueError, match="node 0 already wants topic 1"):
        overlay.change(0, add=[2, 1])
    with pytest.raises(ValueError, match="node 1 does not want topic 2"):
        overlay.change(1, add=[1], drop=[0, 2])
    assert pairs(overlay.edges) == before
    assert [overlay.interests.row(node).tolist() for node in range(3)] == [[0, 1], [0], [1]]


def test_dcbm_is_the_greedy_inside_parts_and_then_between_them() -> None:
    rng = random.Random(6)
    for seed in range(20):
        n, t, parts = rng.randint(1, 9), 5, rng.randint(1, 4)
        rows = [{topic for topic in range(t) if rng.random() < 0.5} for _ in range(n)]
        overlay = Dcbm(interests_of(rows, t), parts, np.random.default_rng(seed))
        members = [[node for node in range(n) if overlay.part[node] == part] for part in range(parts)]
        assert max(map(len, members)) - min(map(len, members)) <= 1

        def inside(part: list[int], rows: list[set[int]] = rows) -> list[Edge]:
            return [(part[u], part[v]) for u, v in oracle.greedy([rows[node] for node in part], "gm")]

        edges = [edge for part in members for edge in inside(part)]
        edges += oracle.greedy(rows, "gm", kept=edges)
        assert [tuple(edge) for edge in overlay.edges.tolist()] == edges

        for _ in range(4):
            nodes = rng.sample(range(n), min(2, n))
            for node in nodes:
                rows[node] ^= {rng.randrange(t)}
            change = overlay.change(interests_of(rows, t))
            old = set(edges)
            anew = [part for part in members if set(part) & set(nodes)]
            edges = [edge for edge in edges if not any(set(edge) <= set(part) for part in anew)]
            edges += [edge for part in anew for edge in inside(part)]
            edges += oracle.greedy(rows, "gm", kept=edges)
            assert [tuple(edge) for edge in overlay.edges.tolist()] == edges
            assert (pairs(change.added), pairs(change.removed)) == (set(edges) - old, old - set(edges))


def test_dcbm_does_nothing_where_nothing_changed() -> None:
    interests = coin_flips(60, 20, 4, np.random.default_rng(2))
    overlay = Dcbm(interests, 6, np.random.default_rng(3), "low-oda")
    assert connected_topics(interests, overlay.edges).all()
    assert overlay.change(interests).cost == 0
