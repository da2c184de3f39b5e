"""The counting index finds what is found by looking at every predicate of every subscription."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
import tiny
from oracles import content as oracle

from sim.content.matching import MatchingIndex


def drawn(seed: int) -> tuple[list[oracle.Subscription], list[list[int]], int, int]:
    """Subscriptions and publications, of fields and values so few that many match, or so many that counters are wide."""
    rng = random.Random(seed)
    fields, values = rng.choice((1, 2, 3, 5, 300)), rng.choice((1, 2, 3, 2**31 - 1))
    drawn_values = [rng.randrange(values) for _ in range(4)]
    few = rng.choice((0, 1, 7, 8, 9, 40))
    subscriptions: list[tuple[int, Mapping[int, int]]] = [
        (rng.randrange(5), {f: rng.choice(drawn_values) for f in rng.sample(range(fields), rng.randint(1, fields))})
        for _ in range(few)
    ]
    published = [[rng.choice(drawn_values) for _ in range(fields)] for _ in range(rng.randrange(6))]
    if subscriptions:
        wanted = rng.choice(subscriptions)[1]  # one that is hit, however many predicates it has
        published.append([wanted.get(field, 0) for field in range(fields)])
    return subscriptions, published, fields, values


def test_the_same_matches_as_by_brute_force_on_hundreds_of_random_instances() -> None:
    matched = 0
    for seed in range(400):
        subscriptions, published, fields, values = drawn(seed)
        index = MatchingIndex(tiny.conjunctions(subscriptions, fields, values))
        rows = np.array(published, np.int32).reshape(-1, fields)
        found = index.match_all(rows)
        batch = [found.subscription[a:b].tolist() for a, b in pairwise(found.indptr.tolist())]
        assert batch == [oracle.matching(subscriptions, row) for row in published]
        assert found.increments.tolist() == [
            sum(oracle.holding(wanted, row) for _, wanted in subscriptions) for row in published
        ]
        single = [index.match(row) for row in rows]
        assert [ids.tolist() for ids, _ in single] == batch
        assert [increments for _, increments in single] == found.increments.tolist()
        matched += len(found.subscription)
    assert matched > 1000


def test_what_cannot_be_matched_is_refused() -> None:
    index = MatchingIndex(tiny.conjunctions([(0, {1: 2})], 2, 3))
    with pytest.raises(ValueError, match=r"publications of shape \(1, 3\), expected a row of 2 values for each"):
        index.match(np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="subscription 1 has no predicate"):
        MatchingIndex(tiny.conjunctions([(0, {1: 2}), (0, {})], 2, 3))
