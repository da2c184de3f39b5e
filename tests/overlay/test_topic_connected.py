"""The six designs of topic-connected overlays, edge for edge against the paper's words, and the paper's own examples."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import topic_connected as oracle

from sim.base.errors import InputError
from sim.overlay.topic_connected.design import ALGORITHMS, design, extend
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips, exactly
from sim.overlay.topic_connected.measures import connected_topics, measure, topic_diameters

GREEDY = ALGORITHMS[:3]
STARS = ALGORITHMS[3:]
FACTORS = [Fraction(text) for text in ("1", "1.1", "5/4", "4/3", "1.5", "2", "7/3", "3")]


def random_interests(rng: random.Random, nodes: int = 14, topics: int = 12) -> list[set[int]]:
    """Small instances of every density, those without nodes, with indifferent nodes and with twins included."""
    n, t, p = rng.randint(0, nodes), rng.randint(1, topics), rng.random()
    rows = [{topic for topic in range(t) if rng.random() < p} for _ in range(n)]
    return [set(rng.choice(rows)) if rng.random() < 0.1 else row for row in rows]


def pairs(edges: NDArray[np.int32]) -> list[tuple[int, int]]:
    return [(u, v) for u, v in edges.tolist()]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_edges_in_the_same_order_as_the_papers_words(algorithm: str) -> None:
    rng = random.Random(f"designs {algorithm}")
    edges = 0
    for _ in range(250):
        rows, k, strict = random_interests(rng), rng.choice(FACTORS), rng.random() < 0.5
        found = pairs(design(BrokerInterests.of(rows), algorithm, k, strict))
        if algorithm in GREEDY:
            assert found == oracle.greedy(rows, algorithm, k, strict), (rows, k, strict)
        else:
            assert found == oracle.constant_diameter(rows, algorithm), rows
        edges += len(found)
    assert edges > 1200


@pytest.mark.parametrize("algorithm", GREEDY)
def test_a_greedy_goes_on_from_edges_that_are_kept(algorithm: str) -> None:
    rng = random.Random(f"kept {algorithm}")
    for _ in range(80):
        rows, k, strict = random_interests(rng, 8, 6), rng.choice(FACTORS), rng.random() < 0.5
        every = list(itertools.combinations(range(len(rows)), 2))
        kept = rng.sample(every, rng.randint(0, len(every) // 2))
        array = np.array(kept, np.int32).reshape(-1, 2)
        found = pairs(extend(BrokerInterests.of(rows), array, algorithm, k, strict))
        assert found == oracle.greedy(rows, algorithm, k, strict, kept), (rows, kept, k, strict)


def test_weights_are_what_the_number_of_components_falls_by() -> None:
    """The oracle's own weights against NC(V, E) - NC(V, E + pair), counted twice."""
    rng = random.Random(5)
    for _ in range(10):
        rows = random_interests(rng, 6, 4)
        edges = oracle.greedy(rows, "gm")[:2]
        before = oracle.component_count(rows, edges)
        for pair, weight in oracle.weights(rows, edges).items():
            assert before - oracle.component_count(rows, [*edges, pair]) == weight


@pytest.mark.parametrize("seed", range(3))
def test_the_ends_of_low_oda(seed: int) -> None:
    interests = coin_flips(120, 30, 8, np.random.default_rng(seed))
    heaviest = max(
        len(np.intersect1d(interests.row(u), interests.row(v))) for u, v in itertools.combinations(range(120), 2)
    )
    gm, minmax = pairs(design(interests, "gm")), pairs(design(interests, "minmax-oda"))
    assert gm != minmax
    assert pairs(design(interests, "low-oda", Fraction(1), strict=True)) == gm
    for k in (heaviest, heaviest + 5, 10**30):
        assert pairs(design(interests, "low-oda", Fraction(k))) == minmax
    assert pairs(design(interests, "low-oda", heaviest - Fraction(1, 10**30))) != gm


def test_k_is_exact() -> None:
    """1.4 · 45 is 63, though not in floating point: (3, 4) leaves the maximum degree as it is, (1, 2) is heavier by just that."""
    first, second, third = range(64), range(100, 163), range(200, 245)
    interests = BrokerInterests.of([first, {*first, *second}, second, third, third])
    assert pairs(design(interests, "low-oda", Fraction("1.4"))) == [(0, 1), (3, 4), (1, 2)]
    assert pairs(design(interests, "low-oda", Fraction("1.4"), strict=True)) == [(0, 1), (1, 2), (3, 4)]


def test_more_common_topics_than_a_byte_counts() -> None:
    many, few = range(300), range(300, 556)
    interests = BrokerInterests.of([few, many, {*few, *many}])
    for algorithm in GREEDY:
        assert pairs(design(interests, algorithm)) == [(1, 2), (0, 2)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(2))
def test_every_topic_is_connected_and_stars_are_flat(algorithm: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for interests in (
        coin_flips(200, 40, 6, rng),
        exactly(150, 60, 5, rng),
        exactly(150, 300, 5, rng, exponent=1.0),
        coin_flips(30, 500, 2, rng),
    ):
        edges = design(interests, algorithm)
        assert connected_topics(interests, edges).all()
        assert (edges[:, 0] < edges[:, 1]).all()
        assert len(set(pairs(edges))) == len(edges)
        if algorithm in STARS:
            assert topic_diameters(interests, edges).max() <= 2


# The paper's examples. Node 0 is u; then v and w where there are any.


def example_1(n: int) -> list[set[int]]:
    return [{1, 2}] * n


def example_2(a: int) -> list[set[int]]:
    return [{1, 2, 3, 4, 5}, *([{1, 2}] * a + [{2, 3}] * a + [{3, 4}] * a + [{4, 5}] * a)]


def example_3(a: int) -> list[set[int]]:
    groups = [{1, 5, 9}, {2, 6, 10}, {3, 7, 11}, {4, 8, 12}]
    return [{1, 2, 3, 4}, groups[0] | groups[1], groups[2] | groups[3], *(group for group in groups for _ in range(a))]


def example_4(k: int, a: int) -> list[set[int]]:
    """x_i is topic i, y_i is topic k + i; the sets A_i first, then the sets B_i, each of a nodes."""
    one = [{i, k + i} for i in range(k) for _ in range(a)]
    return [set(range(k)), *one, *({k + i} for i in range(k) for _ in range(a))]


def count(rows: list[set[int]], algorithm: str) -> int:
    return len(design(BrokerInterests.of(rows), algorithm))


@pytest.mark.parametrize("a", [1, 2, 3, 5, 10])
def test_examples_1_and_2_every_star_design_is_optimal(a: int) -> None:
    for algorithm in STARS:
        assert count(example_1(4 * a), algorithm) == 4 * a - 1
        assert count(example_2(a), algorithm) == 4 * a


@pytest.mark.parametrize("a", [2, 3, 5, 10])
def test_example_3_cd_oda_makes_three_stars_where_two_would_do(a: int) -> None:
    n = 4 * a + 3
    assert count(example_3(a), "cd-oda") == 2 * n - 4
    assert count(example_3(a), "cd-oda-i") == n - 1
    assert count(example_3(a), "cd-oda-ii") == n - 1


@pytest.mark.parametrize(("k", "a"), [(3, 1), (3, 2), (4, 3), (5, 6), (8, 2)])
def test_example_4_only_the_densest_node_is_the_right_centre(k: int, a: int) -> None:
    n = 2 * k * a + 1
    assert count(example_4(k, a), "cd-oda") == 3 * (n - 1) // 2 - k
    assert count(example_4(k, a), "cd-oda-i") == 3 * (n - 1) // 2 - k
    assert count(example_4(k, a), "cd-oda-ii") == n - 1


@pytest.mark.parametrize(("n", "edges"), [(4, 5), (6, 11), (8, 21), (10, 31)])
def test_lemma_3_1_minmax_oda_makes_many_edges_where_a_star_would_do(n: int, edges: int) -> None:
    """The counts that the paper prints, n (n - 2) / 2 + 1, come out of filling up with useless edges."""
    rows = [{*range(n * n)}] + [{i * n + j for j in range(n)} | {j * n + i for j in range(n)} for i in range(1, n)]
    assert count(rows, "minmax-oda") == edges
    assert count(rows, "gm") == n - 1


# What is at the edge of the problem


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_to_connect(algorithm: str) -> None:
    for rows in ([], [set()], [{1}], [set(), set()], [{1}, {2}], [{1}, set(), {2}]):
        interests = BrokerInterests.of(rows)
        edges = design(interests, algorithm)
        assert edges.shape == (0, 2)
        assert connected_topics(interests, edges).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_topic_duplicates_and_any_integers(algorithm: str) -> None:
    tree = design(BrokerInterests.of([[7]] * 5), algorithm)
    assert len(tree) == 4
    interests = BrokerInterests.of([[7, 7, -3], [10**30], [], [-3, 10**30, 7, -3]])
    assert interests.topics == 3
    assert pairs(design(interests, algorithm)) == [(0, 3), (1, 3)]


def test_k_below_one_and_too_many_nodes_are_refused() -> None:
    with pytest.raises(InputError, match=r"k is 1/2, allowed: at least 1"):
        design(BrokerInterests.of([[1], [1]]), "low-oda", Fraction(1, 2))
    crowd = BrokerInterests.of([[0]] * 200_000)
    with pytest.raises(InputError, match=r"200,000 nodes have 19,999,900,000 pairs.*needs 20\.0 GB.*the CD-ODA family"):
        design(crowd, "gm")
    assert len(design(crowd, "cd-oda-ii")) == 199_999


def test_measures_of_a_chain() -> None:
    interests = BrokerInterests.of([{0, 1}, {0, 1}, {0}, {0, 2}, {3}])
    edges = np.array([[0, 1], [1, 2], [2, 3]], np.int32)
    found = measure(interests, edges)
    assert (found.average_degree, found.maximum_degree, found.diameter, found.mean_topic_diameter) == (1.2, 2, 3, 2.0)
    assert topic_diameters(interests, edges[:2]).tolist() == [-1, 1, 0, 0]
    assert not connected_topics(interests, edges[:2]).all()
    with pytest.raises(ValueError, match="topic 0 is not connected"):
        measure(interests, edges[:2])


def test_diameters_of_random_graphs() -> None:
    rng = random.Random(8)
    seen = set()
    for _ in range(150):
        rows = [row | {0} for row in random_interests(rng, 8, 4)]
        every = list(itertools.combinations(range(len(rows)), 2))
        edges = rng.sample(every, rng.randint(0, len(every)))
        interests = BrokerInterests.of(rows)
        expected = oracle.topic_diameters(rows, edges)
        topics = sorted(oracle.active(rows))
        array = np.array(edges, np.int32).reshape(-1, 2)
        found = dict(zip(topics, topic_diameters(interests, array).tolist(), strict=True))
        assert {topic: -1 if span is None else span for topic, span in expected.items()} == {
            t: found[t] for t in expected
        }
        assert connected_topics(interests, array).all() == (None not in expected.values())
        seen |= set(found.values())
    assert seen >= {-1, 0, 1, 2, 3}


def test_random_interests_have_the_shape_asked_for() -> None:
    rng = np.random.default_rng(3)
    flips = coin_flips(2000, 100, 10, rng)
    wants = np.diff(flips.indptr)
    assert wants.mean() == pytest.approx(10, abs=0.3)
    assert wants.std() == pytest.approx(3, abs=0.2)
    same = exactly(2000, 100, 10, rng)
    assert (np.diff(same.indptr) == 10).all()
    assert np.abs(same.sizes - 200).max() < 70
    skewed = exactly(4000, 100, 1, rng, exponent=1.0)
    weights = 1 / np.arange(1, 101)
    assert np.abs(skewed.sizes / 4000 - weights / weights.sum()).max() < 0.03
    for interests in (flips, same, skewed):
        assert all((np.diff(interests.row(node)) > 0).all() for node in range(interests.nodes))
