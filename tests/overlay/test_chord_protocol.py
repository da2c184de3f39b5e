"""Chord under failures and churn, at small size, against what theory says of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.overlay.chord_protocol import ChordRing, churn, fail_at_once


@pytest.mark.parametrize("successors", [1, 8])
def test_a_ring_at_rest_finds_every_key_within_the_logarithm_of_its_nodes(successors: int) -> None:
    lookups = fail_at_once(128, 0.0, 1000, successors)
    assert all(lookup.found and not lookup.timeouts for lookup in lookups)
    assert max(lookup.hops for lookup in lookups) <= math.log2(128) + 1


def test_with_one_successor_half_of_the_bits_are_hops() -> None:
    """Half of log₂ n to the predecessor of the key, at which the lookup ends."""
    hops = [lookup.hops for lookup in fail_at_once(1024, 0.0, 2000, successors=1)]
    assert np.mean(hops) == pytest.approx(math.log2(1024) / 2, rel=0.1)


def test_half_of_the_nodes_may_fail_at_once() -> None:
    """A list of 20 successors fails with a chance of 2^-20; lookups take more hops, and time out at failed nodes."""
    before, after = (fail_at_once(256, share, 1000) for share in (0.0, 0.5))
    assert all(lookup.found for lookup in after)
    assert np.mean([lookup.hops for lookup in after]) > np.mean([lookup.hops for lookup in before])
    assert np.mean([lookup.timeouts for lookup in after]) > 2


def test_a_node_without_a_live_successor_is_stuck() -> None:
    ring = ChordRing(16, 2, seed=1)
    first, second, third, *_, last = ring.live
    ring.fail(second)
    ring.fail(third)
    assert ring._find(first, second)[0] is None
    assert ring._find(last, first)[0] == first


def test_rounds_make_a_ring_correct_again() -> None:
    ring = ChordRing(64, 8, seed=2)
    for node in ring.live[::3]:
        ring.fail(node)
    for new in ring.rng.integers(0, 1 << 32, 20).tolist():
        ring.join(new)
    assert ring.wrong_successors() > 0.2
    for _ in range(8):
        for node in list(ring.live):
            ring.stabilise(node)
    assert ring.wrong_successors() == 0
    assert all(ring._nodes[after].predecessor == node for node, after in zip(ring.live, ring.live[1:], strict=False))


def test_successors_are_as_often_wrong_as_the_master_equation_says() -> None:
    """A join or a failure makes a successor wrong, a round mends it: 2 / (3 + r), for r rounds per node and join."""
    nodes, rate, mean = 200, 0.5, 20.0
    wrong = churn(nodes, rate, 1200, period=(mean, mean)).wrong
    assert wrong == pytest.approx(2 / (3 + nodes / (rate * mean)), rel=0.15)
