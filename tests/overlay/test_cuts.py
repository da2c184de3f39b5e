"""Trees that avoid cut links, beside the oracle, and their ties."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.overlays import avoiding

from sim.overlay.cuts import Cuts, hung_elsewhere


def test_of_equally_near_nodes_the_lowest_is_the_new_parent() -> None:
    star = np.zeros(4, np.int32)
    cuts = Cuts(np.zeros(4, np.int64), np.array([0 * 4 + 3, 3 * 4 + 0]))
    assert hung_elsewhere(star, 0, np.zeros(4, np.bool_), cuts).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("seed", range(100))
def test_trees_avoid_cut_links_as_the_oracle_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    order = rng.permutation(n).tolist()
    before = np.empty(n, np.int32)
    for place, node in enumerate(order):
        before[node] = order[rng.integers(0, place)] if place else node
    pairs = frozenset(frozenset((u, v)) for u in range(n) for v in range(u) if rng.random() < 0.35)
    links = np.array(sorted(u * n + v for pair in pairs for u in pair for v in pair if u != v), np.int64)
    found = hung_elsewhere(before, order[0], np.zeros(n, np.bool_), Cuts(np.zeros(n, np.int64), links))
    above = {node: None if node == order[0] else int(before[node]) for node in range(n)}
    expected = avoiding(above, order[0], pairs)
    assert {node: int(found[node]) for node in order[1:]} == {node: expected[node] for node in order[1:]}
