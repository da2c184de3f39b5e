"""The errors in the paper on overlay design, and the shipped examples against its drawings."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from oracles import topic_connected as oracle

from sim.overlay.topic_connected.design import design
from sim.overlay.topic_connected.interests import BrokerInterests, coin_flips, exactly
from sim.papers.overlays.runs import EXAMPLES

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "overlays"
Rows = list[set[int]]


def example_3(a: int) -> Rows:
    groups = [{1, 5, 9}, {2, 6, 10}, {3, 7, 11}, {4, 8, 12}]
    return [{1, 2, 3, 4}, groups[0] | groups[1], groups[2] | groups[3], *(group for group in groups for _ in range(a))]


def example_4(k: int, a: int) -> Rows:
    one = [{i, k + i} for i in range(1, k + 1) for _ in range(a)]
    return [set(range(1, k + 1)), *one, *({k + i} for i in range(1, k + 1) for _ in range(a))]


def lemma(n: int) -> Rows:
    return [set(range(n * n))] + [{i * n + j for j in range(n)} | {j * n + i for j in range(n)} for i in range(1, n)]


def links(rows: Rows, algorithm: str) -> int:
    return len(design(BrokerInterests.of(rows), algorithm))  # type: ignore[arg-type]


def test_the_shipped_examples_are_those_of_the_paper() -> None:
    drawn = {
        "example I": [{1, 2}] * 20,
        "example II": [{1, 2, 3, 4, 5}, *([{1, 2}] * 5 + [{2, 3}] * 5 + [{3, 4}] * 5 + [{4, 5}] * 5)],
        "example III": example_3(5),
        "example IV": example_4(4, 3),
        **{f"lemma 3.1, n = {n}": lemma(n) for n in (4, 6, 8, 10)},
    }
    for name, (file, nodes) in EXAMPLES.items():
        rows = json.loads((SCENARIOS / f"{file}.json").read_text())["interests"]
        assert [set(row) for row in rows] == drawn[name], name
        assert len(rows) == nodes


def test_example_3_needs_groups_of_two() -> None:
    assert (links(example_3(2), "cd-oda-i"), links(example_3(1), "cd-oda-i")) == (11 - 1, 2 * 7 - 4)


def test_example_4_needs_three_groups() -> None:
    for a in (2, 3, 5):
        assert links(example_4(2, a), "cd-oda-i") == 4 * a < 6 * a - 2
        assert links(example_4(3, a), "cd-oda-i") == 9 * a - 3


def test_a_node_that_is_its_own_neighbour_spoils_example_4() -> None:
    """CD-ODA-II with n_u and w_u as printed, over every v with a topic in common with u."""
    rows = example_4(8, 2)
    topics, made = {topic for topic in oracle.active(rows) if len(oracle.subscribers(rows, topic)) > 1}, 0

    def density(u: int) -> Fraction:
        common = [len(rows[u] & row & topics) for row in rows]
        return Fraction(sum(common), sum(count > 0 for count in common) or 1)

    while topics:
        centre = min(range(len(rows)), key=lambda u: (-density(u), u))
        made += sum(v != centre and bool(rows[centre] & row & topics) for v, row in enumerate(rows))
        topics -= rows[centre]
    assert (made, links(rows, "cd-oda-ii")) == (40, len(rows) - 1)


def mean_links(model: str, nodes: int, each: int, algorithm: str) -> float:
    draw = {"coin flips": coin_flips, "exactly": exactly}[model]
    drawn = [draw(nodes, 100, each, np.random.default_rng(seed)) for seed in range(3)]
    return fmean(len(design(interests, algorithm)) for interests in drawn)  # type: ignore[arg-type]


def test_the_ratio_of_figure_1a_tells_the_readings_apart() -> None:
    flips, exact = (
        mean_links(model, 1000, 10, "cd-oda-ii") / mean_links(model, 1000, 10, "gm")
        for model in ("coin flips", "exactly")
    )
    assert flips == pytest.approx(2.3, abs=0.1)
    assert exact > 2.5


def test_the_gain_of_the_abstract_is_that_of_figure_2_alone() -> None:
    def gain(nodes: int, each: int) -> float:
        return 100 * (
            1 - mean_links("coin flips", nodes, each, "cd-oda-ii") / mean_links("coin flips", nodes, each, "cd-oda")
        )

    assert max(gain(nodes, 10) for nodes in (100, 500, 1000)) < 10
    assert fmean(gain(100, each) for each in (30, 40, 50)) > 20
