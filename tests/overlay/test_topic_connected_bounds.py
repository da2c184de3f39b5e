"""Lower bounds and the optimum by integer programming, against trying all sets of edges."""

from __future__ import annotations

import random

import numpy as np
import pytest
from oracles import topic_connected as oracle

from sim.overlay.topic_connected.bounds import lower_bounds, optimum
from sim.overlay.topic_connected.design import ALGORITHMS, design
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips
from sim.overlay.topic_connected.measures import connected_topics


def test_the_optimum_is_the_best_of_all_overlays() -> None:
    rng = random.Random(2)
    sizes = set()
    for _ in range(60):
        n, t = rng.randint(0, 6), rng.randint(1, 6)
        rows = [{topic for topic in range(t) if rng.random() < 0.4} for _ in range(n)]
        interests = BrokerInterests.of(rows)
        best = optimum(interests)
        assert connected_topics(interests, best).all()
        assert len(best) == oracle.optimum(rows), rows
        assert max(lower_bounds(interests).values()) <= len(best)
        sizes.add(len(best))
    assert sizes >= {0, 1, 2, 3, 4, 5}


def test_a_ring_of_three_topics_needs_more_than_every_lower_bound() -> None:
    """Six nodes in three chains that share their ends two by two."""
    rows = [{0}, {0, 1}, {1}, {1, 2}, {2}, {2, 0}]
    interests = BrokerInterests.of(rows)
    assert lower_bounds(interests) == {"largest_topic": 2, "spanning_forest": 5, "heaviest_pairs": 6}
    assert len(optimum(interests)) == oracle.optimum(rows) == 6


def test_lower_bounds_by_hand() -> None:
    interests = BrokerInterests.of([{1, 2, 3}, {1, 2}, {1}, {3}, {4}, {4}, {5}, set()])
    # joins to make: topic 1 two, topics 2, 3 and 4 one each; pairs: one of weight 2, the others of weight 1
    assert lower_bounds(interests) == {"largest_topic": 2, "spanning_forest": 4, "heaviest_pairs": 4}
    assert lower_bounds(BrokerInterests.of([])) == {"largest_topic": 0, "spanning_forest": 0, "heaviest_pairs": 0}


@pytest.mark.parametrize("seed", range(4))
def test_bounds_optimum_and_designs_in_order(seed: int) -> None:
    interests = coin_flips(12, 14, 4, np.random.default_rng(seed))
    best = len(optimum(interests))
    assert max(lower_bounds(interests).values()) <= best
    for algorithm in ALGORITHMS:
        assert best <= len(design(interests, algorithm))
    assert len(design(interests, "gm")) <= 1.25 * best
