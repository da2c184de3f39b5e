"""The paper on exact targets: both of its tables reproduce, and its errors are shown."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, show
from oracles import targets as oracle

from sim.papers.content.page import PAPER
from sim.papers.content.runs import MATCHES, PRINTED, Printed
from sim.papers.page import Reproduction
from sim.papers.reproduce import PAGE, ReproductionRequest, reproduce
from sim.workloads.content import diversity
from sim.workloads.content.designs import design_subsets
from sim.workloads.content.sizes import constant, poisson


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduction, Path]:
    folder = tmp_path_factory.mktemp("reproduction")
    return reproduce(ReproductionRequest("content", 0.1), folder), folder


def test_all_72_values_of_the_tables_come_out(made: tuple[Reproduction, Path]) -> None:
    values = [judged for judged in made[0].claims if re.match(r"[αβ]\(\d\) (of (dis|an)|for)", judged.claim.statement)]
    assert [judged.literal.verdict for judged in values] == ["reproduces"] * 72
    others = [judged for judged in made[0].claims if judged not in values]
    assert [judged.claim.statement for judged in others if judged.literal.verdict != "reproduces"] == [
        "A publication of algorithm 2 matches its target and nothing else",
        "Overlap only increases β(z)",
    ]


def test_counting_and_formulas_agree_and_nothing_is_missed(made: tuple[Reproduction, Path]) -> None:
    table = made[0].tables["table-2"]
    known = table[table["variant"] != "grid"]
    assert (known["alpha"] == known["alpha_formula"]).all()
    assert (table["beta"] == table["beta_formula"]).all()
    assert (table["missed"] == 0).all()
    assert (table["tried"] > 0).all()
    betas = table[table["replication"] == 0].groupby("variant", sort=False)["beta"].agg(list).to_dict()
    assert betas == {
        "v = 0": [96, 48, 24, 24, 12, 12, 12, 12],
        "v = 1": [99, 49, 28, 21, 14, 14, 14, 7],
        "v = 2": [98, 49, 32, 24, 16, 16, 11, 8],
        "v = 3": [98, 49, 32, 24, 19, 15, 10, 10],
        "v = 4": [100, 50, 33, 25, 20, 16, 12, 12],
        "grid": [100, 50, 33, 25, 20, 16, 14, 12],
    }


def test_sets_across_subsets_are_targets_too(made: tuple[Reproduction, Path]) -> None:
    across = made[0].tables["across"]
    design = design_subsets(12, 5, 9, constant(2), np.random.default_rng(1), 1)
    wanted = design.conjunctions
    subscriptions = oracle.rows(wanted.indptr, wanted.field, wanted.value)
    pairs = [
        pair
        for pair in itertools.combinations(range(12), 2)
        if all(subscriptions[pair[1]].get(f, v) == v for f, v in subscriptions[pair[0]].items())
    ]
    published = design.publish(pairs, np.random.default_rng(1))
    assert oracle.matches(subscriptions, published) == [list(pair) for pair in pairs]
    assert len(pairs) > design.alpha(2)
    overlapping = across[across["variant"] != "v = 0"]
    assert (across["compatible"] >= across["alpha"]).all()
    assert (overlapping["compatible"] > 0.6 * overlapping["optimal_alpha"]).all()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_draws_all_figures(made: tuple[Reproduction, Path], tmp_path: Path) -> None:
    shown = show(made[1] / PAGE, 1200, tmp_path)
    assert (shown.undrawn, shown.console) == ([], [])
    names = [chart["name"] for chart in shown.charts]
    assert {"fig-7-1-0", "fig-7-2-0", "fig-7-2-1"} <= {name.removeprefix("chart-") for name in names}
    assert shown.scroll <= shown.inner


def test_one_figure_alone(tmp_path: Path) -> None:
    made = reproduce(ReproductionRequest("content", 0.1, figure="7.2"), tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["7.2.html", "figures", "tables"]
    assert [claim.statement[:14] for claim in made.paper.claims] == ["β(2) of 22 sub", "β(2) of 21 sub"]


def test_the_printed_algorithm_misses_targets() -> None:
    three = Printed([{1: 0, 2: 0, 3: 0, 4: 0}, {1: 0, 2: 0, 3: 0, 5: 0}, {1: 0, 2: 0, 4: 0, 6: 0}], [[0, 1, 2]])
    assert three.matched([1, 2]) == [0, 1, 2]
    missed = {}
    for name, sizes in PRINTED.items():
        generator = np.random.default_rng(1)
        printed = Printed.made(100, 11, sizes, generator)
        assert len(printed.subscriptions) == 100
        targets = [
            sorted(generator.choice(subset, match, replace=False).tolist())
            for subset in printed.subsets
            for match in MATCHES
            if match <= len(subset)
        ]
        assert all(set(target) <= set(printed.matched(target)) for target in targets)
        missed[name] = np.mean([printed.matched(target) != target for target in targets])
    assert all(0.07 < share < 0.7 for share in missed.values())


def test_the_example_of_section_7_is_not_perfectly_compatible() -> None:
    assert Printed([{1: 1, 2: 1}, {2: 1, 3: 1}, {3: 1, 4: 1}], []).matched([0, 2]) == [0, 1, 2]


def test_binomials_are_upside_down() -> None:
    printed = [claim.target.low for claim in PAPER.claims if claim.statement.endswith("of disjoint subsets")][:8]
    assert printed == [12 * math.comb(8, z) for z in MATCHES]
    assert [math.comb(z, 8) for z in MATCHES] == [0] * 7 + [1]


def test_counting_predicates_ends_too_early() -> None:
    printed = Printed.made(100, 11, constant(4), np.random.default_rng(1))
    predicates = list(itertools.accumulate(len(printed.subsets[0]) + 3 for _ in printed.subsets))
    subsets = next(number for number, reached in enumerate(predicates, 1) if reached >= 100)
    assert 8 * subsets == 80  # "while |A| < h", A being attribute/value pairs


def test_a_lost_size_makes_subscriptions_smaller() -> None:
    def sizes(carried_over: bool) -> Iterator[int]:
        drawn = iter(np.minimum(poisson(4)(np.random.default_rng(1), 60_000), 11).tolist())
        following = next(drawn)
        for _ in range(9_000):
            longest, count = following, 0
            while 11 - longest + 1 > count:
                yield following
                count += 1
                following = next(drawn)
                longest = max(longest, following)
            if not carried_over:
                following = next(drawn)

    truth = 4 / (1 - math.exp(-4))
    lost, kept = (np.fromiter(itertools.islice(sizes(carried), 40_000), float) for carried in (False, True))
    error = 3 * lost.std() / math.sqrt(40_000)
    assert abs(kept.mean() - truth) < error
    assert 0.01 < 1 - lost.mean() / truth < 0.04


def test_the_formula_for_small_overlap_lacks_one_subset() -> None:
    printed = (100 - 8) // (8 - 1)
    assert diversity.full_subsets(100, 8, 1) == printed + 1 == 14
    assert diversity.alpha(14, 8, 3, 1) == 784 != printed * math.comb(8, 3)


def test_overlap_can_lower_beta() -> None:
    beta: Callable[[int], int] = lambda v: diversity.beta(diversity.full_subsets(100, 8, v), 8, 8, v)  # noqa: E731
    assert (beta(0), beta(1)) == (12, 7)
