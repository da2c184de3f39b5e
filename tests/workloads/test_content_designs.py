"""Designed subscriptions: any chosen target is matched, and nothing else; in the requested number, with the sizes drawn."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import targets as oracle

from sim.base.errors import WorkloadError
from sim.workloads.content import diversity
from sim.workloads.content.designs import Design, Subsets, design_grid, design_subsets
from sim.workloads.content.sizes import Sizes, constant, poisson, uniform_sizes, weighted_sizes

Make = Callable[[np.random.Generator], Design]


def subsets(overlap: int, sizes: Sizes, values: int) -> Make:
    return lambda generator: design_subsets(100, 11, values, sizes, generator, overlap)


def grid(sizes: Sizes) -> Make:
    return lambda generator: design_grid(100, 11, 20, sizes, generator)


LAYOUTS = {
    **{f"v = {v}, Poisson": subsets(v, poisson(4), 40) for v in range(4)},
    **{f"v = {v}, m = 4": subsets(v, constant(4), 20) for v in range(5)},
    "grid, m = 4": grid(constant(4)),
    "grid, 1 to 5": grid(uniform_sizes(1, 5)),
}


def subscriptions_of(design: Design) -> list[oracle.Subscription]:
    wanted = design.conjunctions
    return oracle.rows(wanted.indptr, wanted.field, wanted.value)


def subsets_of(design: Subsets) -> list[list[int]]:
    bounds, members = design.indptr.tolist(), design.members.tolist()
    return [members[start:stop] for start, stop in itertools.pairwise(bounds)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_publications_match_their_targets_and_none_of_all_the_others(layout: str) -> None:
    wrong = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        design = LAYOUTS[layout](generator)
        drawn = (1 + k % design.most for k in range(seed, seed + 10))
        targets = [
            target for match in drawn for target in design.targets(match, 3, generator, likely="targets").tolist()
        ]
        found = oracle.matches(subscriptions_of(design), design.publish(targets, generator))
        wrong += sum(one != other for one, other in zip(found, targets, strict=True))
    assert wrong == 0


@given(
    st.integers(2, 5),
    st.integers(2, 3),
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.integers(0, 3),
    st.integers(0, 99),
)
@settings(max_examples=60)
def test_every_set_that_does_not_contradict_itself_is_a_target(
    fields: int, values: int, drawn: list[int], overlap: int, seed: int
) -> None:
    def sizes(_: np.random.Generator, count: int) -> np.ndarray:
        return np.array(drawn[:count])

    try:
        design = design_subsets(len(drawn), fields, values, sizes, np.random.default_rng(seed), overlap)
    except WorkloadError:
        assert len(drawn) > values - 1  # of every field one value may be taken, so that many there is always room for
        return
    subscriptions = subscriptions_of(design)
    viable = oracle.viable(subscriptions, fields, values)
    for subset in subsets_of(design):
        for size in range(len(subset) + 1):
            assert {frozenset(chosen) for chosen in itertools.combinations(subset, size)} <= viable
    for one, other in itertools.combinations(range(len(drawn)), 2):
        agree = all(subscriptions[other].get(field, value) == value for field, value in subscriptions[one].items())
        assert (frozenset({one, other}) in viable) == agree
    lengths = [len(subscription) for subscription in subscriptions]
    assert design.clamped == sum(length < size for length, size in zip(lengths, drawn, strict=True))
    assert all(length <= size for length, size in zip(lengths, drawn, strict=True))


@pytest.mark.parametrize("overlap", [0, 2])
@pytest.mark.parametrize("sizes", [constant(4), poisson(4)])
def test_exactly_as_many_as_asked_for(overlap: int, sizes: Callable[..., np.ndarray]) -> None:
    for wanted in range(1, 201):
        generator = np.random.default_rng(wanted)
        design = design_subsets(wanted, 11, 60, sizes, generator, overlap)
        members = design.members
        assert len(design.conjunctions) == wanted
        assert sorted(set(members.tolist())) == list(range(wanted))
        assert len(members) == wanted + int(design.carried.sum())
        drawn = sizes(np.random.default_rng(wanted), wanted)
        assert np.diff(design.conjunctions.indptr).tolist() == np.minimum(drawn, 11).tolist()
        if wanted < 152:
            assert len(design_grid(wanted, 11, 20, constant(4), generator).conjunctions) == wanted


def test_sizes_have_the_mean_of_the_truncated_distribution() -> None:
    truth = 4 / (1 - math.exp(-4))
    deviation = math.sqrt(truth * (1 + 4 - truth))
    for overlap in (0, 2):
        design = design_subsets(100_000, 20, 20_000, poisson(4), np.random.default_rng(overlap), overlap)
        sizes = np.diff(design.conjunctions.indptr)
        assert design.clamped == 0
        assert abs(sizes.mean() - truth) < 3 * deviation / math.sqrt(len(sizes))
    drawn = weighted_sizes([0, 1, 3])(np.random.default_rng(1), 10_000)
    assert set(drawn.tolist()) == {2, 3}
    assert abs((drawn == 3).mean() - 0.75) < 0.02
    assert set(uniform_sizes(2, 4)(np.random.default_rng(1), 100).tolist()) == {2, 3, 4}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda g: design_subsets(153, 11, 20, constant(4), g), "subscriptions is 153, but .* have room for 152 of"),
        (
            lambda g: design_subsets(10**9, 11, 20, constant(4), g),
            "subscriptions is 1,000,000,000, but .* room for 152 of",
        ),
        (lambda g: design_subsets(10**9, 20, 10**5, poisson(4), g, 2), "have room for fewer than 1,999,980 of"),
        (lambda g: design_subsets(10**6, 20, 100, poisson(4), g, 2), "subscriptions is 1,000,000, but"),
        (lambda g: design_grid(153, 11, 20, constant(4), g), "a grid has room for 152: .* 8 of 11 fields are left"),
        (lambda g: design_subsets(3, 11, 20, lambda *_: np.array([1, 0, 2]), g), "expected 3 whole numbers above 0"),
        (lambda g: design_subsets(9, 11, 20, constant(4), g).targets(9, 1, g), "no target has more than 8"),
        (lambda g: design_subsets(9, 11, 20, constant(4), g).publish([[0, 9]], g), "targets are subscriptions 0 to 8"),
        (
            lambda g: design_grid(9, 11, 20, constant(4), g).publish([[1], [0, 8]], g),
            r"target 1 \(subscriptions 0, 8\)",
        ),
    ],
)
def test_what_cannot_be_is_told_at_once(asked: Callable[[np.random.Generator], object], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        asked(np.random.default_rng(1))
    for design in (design_subsets, design_grid):  # as many as there is room for
        assert len(design(152, 11, 20, constant(4), np.random.default_rng(1)).conjunctions) == 152


@pytest.mark.parametrize("overlap", range(4))
@pytest.mark.parametrize("likely", ["subsets", "targets"])
def test_all_that_should_be_equally_likely_is(overlap: int, likely: str) -> None:
    generator = np.random.default_rng(overlap)
    design = design_subsets(9, 5, 9, weighted_sizes([1, 1]), generator, overlap)
    subsets, draws = subsets_of(design), 20_000
    for match in (1, 2):
        possible = oracle.within(subsets, match)
        drawn = design.targets(match, draws, generator, likely=likely)  # type: ignore[arg-type]
        found = Counter(map(frozenset, drawn.tolist()))
        enough = [subset for subset in subsets if len(subset) >= match]
        expected = {target: draws / len(possible) for target in possible}
        if likely == "subsets":
            expected = {
                target: sum(draws / len(enough) / math.comb(len(s), match) for s in enough if target <= set(s))
                for target in possible
            }
        assert set(found) <= possible
        assert sum((found[t] - mean) ** 2 / mean for t, mean in expected.items()) < len(possible) + 6 * math.sqrt(
            2 * len(possible)
        )


def test_all_targets_of_a_grid_are_equally_likely() -> None:
    generator = np.random.default_rng(1)
    design, draws = design_grid(7, 4, 9, constant(2), generator), 20_000
    classes = [[s for s in range(7) if s % 3 == place] for place in range(3)]
    for match in (1, 2, 3):
        possible = {
            frozenset(chosen) for c in itertools.combinations(classes, match) for chosen in itertools.product(*c)
        }
        assert design.alpha(match) == len(possible)
        assert design.beta(match) == oracle.most_disjoint(possible) == 7 // match
        assert {frozenset(target) for target in design.disjoint_targets(match).tolist()} <= possible
        found = Counter(map(frozenset, design.targets(match, draws, generator, likely="targets").tolist()))
        mean = draws / len(possible)
        assert set(found) == possible
        assert sum((count - mean) ** 2 / mean for count in found.values()) < len(possible) + 6 * math.sqrt(
            2 * len(possible)
        )


def test_targets_are_repeated_at_random_or_in_between() -> None:
    design = design_subsets(100, 11, 20, constant(4), np.random.default_rng(1))
    for repeat in (0.0, 0.7, 1.0):
        drawn = design.targets(3, 5_000, np.random.default_rng(2), repeat=repeat)
        same = (drawn[1:] == drawn[:-1]).all(axis=1).mean()
        assert abs(same - max(repeat, 1 / 672)) < 0.03
    assert design.targets(0, 4, np.random.default_rng(1)).shape == (4, 0)
    assert design.targets(3, 0, np.random.default_rng(1)).shape == (0, 3)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=4),
    st.integers(1, 4),
)
@settings(max_examples=60)
def test_disjoint_targets_against_all_that_there_are(steps: list[tuple[int, int]], match: int) -> None:
    subsets: list[list[int]] = []
    carried: list[int] = []
    new: list[int] = []
    ids = itertools.count()
    for fresh, wanted in steps:
        keep = new[:wanted]
        new = [next(ids) for _ in range(fresh)]
        carried.append(len(keep))
        subsets.append(keep + new)
    targets = oracle.within(subsets, match)
    counts = diversity.dealt([len(s) for s in subsets], carried, match)
    assert sum(count // match for count in counts) == oracle.most_disjoint(targets)


@pytest.mark.parametrize("overlap", range(5))
def test_alpha_and_beta_are_those_of_the_targets(overlap: int) -> None:
    generator = np.random.default_rng(overlap)
    design = design_subsets(9, 5, 9, uniform_sizes(1, 3), generator, overlap)
    for match in range(1, design.most + 1):
        targets = oracle.within(subsets_of(design), match)
        disjoint = {frozenset(target) for target in design.disjoint_targets(match).tolist()}
        assert design.alpha(match) == len(targets)
        assert disjoint <= targets
        assert len(disjoint) == design.beta(match) == oracle.most_disjoint(targets)
        assert len(frozenset().union(*disjoint)) == match * len(disjoint)


@pytest.mark.parametrize("overlap", range(5))
def test_formulas_hold_of_full_subsets(overlap: int) -> None:
    members = diversity.subset_size(11, 4)
    subsets = diversity.full_subsets(100, members, overlap)
    subscriptions = members + (subsets - 1) * (members - overlap)
    design = design_subsets(subscriptions, 11, 20, constant(4), np.random.default_rng(1), overlap)
    assert np.diff(design.indptr).tolist() == [members] * subsets
    assert design.carried.tolist() == [0] + [overlap] * (subsets - 1)
    for match in range(1, members + 1):
        assert design.alpha(match) == diversity.alpha(subsets, members, match, overlap)
        assert design.beta(match) == diversity.beta(subsets, members, match, overlap)
    assert diversity.full_subsets(7, members) == 0 == diversity.alpha(0, members, 3)


def test_same_stream_same_bytes() -> None:
    for make in LAYOUTS.values():
        one, other = (make(np.random.default_rng(3)) for _ in range(2))
        assert one.conjunctions.value.tobytes() == other.conjunctions.value.tobytes()
        drawn = [design.targets(2, 50, np.random.default_rng(4)) for design in (one, other)]
        assert drawn[0].tobytes() == drawn[1].tobytes()
