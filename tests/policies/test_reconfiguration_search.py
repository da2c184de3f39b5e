"""Sweeps, annealing, the cost-aware walk and the integer programme against single steps, and against all configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ssbr as oracle
from pydantic import ValidationError
from test_reconfiguration_cost import case, prefixes, random_problem, ring, trips
from test_reconfiguration_greedy import PROBLEMS, solve

from sim import plugins
from sim.base.errors import InputError
from sim.policies.reconfiguration import search
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.greedy import DynatopsGreedy, SsbrGreedy
from sim.policies.reconfiguration.integer import Ilp
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem
from sim.policies.reconfiguration.search import Anneal, CostAware, LsapSweep, Sweep

SEARCHES = [Sweep, LsapSweep, Anneal, CostAware]


def cost(problem: ReconfigurationProblem, decision: Reconfiguration) -> int | float:
    objective = CostModel(problem)
    objective.place(decision.node_of)
    return objective.cost


def utility(problem: ReconfigurationProblem, decision: Reconfiguration) -> float:
    """Eq. 10 less eq. 11."""
    objective = CostModel(problem)
    before = objective.cost
    objective.place(decision.node_of)
    return before - objective.cost - objective.move_cost(objective.moved)


def test_policies_go_by_their_names() -> None:
    names = {"sweep": Sweep, "lsap-sweep": LsapSweep, "anneal": Anneal, "cost-aware": CostAware, "ilp": Ilp}
    assert {name: plugins.load("reconfiguration", name) for name in names} == names


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_sweep_swap_by_swap(problem: ReconfigurationProblem) -> None:
    found = solve(Sweep, problem)
    path = list(oracle.sweep(case(problem)))
    assert [tuple(swap) for swap in found.swaps] == [(a, b, oracle.cost(after)) for a, b, after in path]
    assert found.node_of.tolist() == (path[-1][2] if path else case(problem)).node_of


@pytest.mark.parametrize("policy", [Sweep, LsapSweep])
@pytest.mark.parametrize("by_trips", [False, True])
def test_no_swap_helps_after_a_sweep(policy: Any, by_trips: bool) -> None:
    for seed in range(3):
        problem = random_problem(seed, 14, 12, round_trips=trips(14, seed) if by_trips else None)
        end = case(problem, solve(policy, problem).node_of)
        least = min(oracle.cost(end.swapped(a, b)) for a in end.brokers for b in end.brokers)
        assert least >= oracle.cost(end) * (1 - 1e-9)


@pytest.mark.parametrize("policy", [Sweep, SsbrGreedy])
def test_rounding_keeps_no_search_from_its_end(policy: Any) -> None:
    """Costs of a few subscribers fall to 0, where swaps gain what sums of float64 are off by, again and again."""
    ends = []
    for seed in range(30):
        problem = random_problem(seed, 9, 4, density=0.1, delay_weight=0.3, round_trips=trips(9, seed))
        ends.append(cost(problem, solve(policy, problem)))
    assert 0 in ends


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 12),
    topics=st.integers(0, 10),
    weight=st.sampled_from([0.0, 1.0, 0.3, 5.0]),
    by_trips=st.booleans(),
    count_rendezvous=st.booleans(),
)
def test_searches_never_lose(
    seed: int, n: int, topics: int, weight: float, by_trips: bool, count_rendezvous: bool
) -> None:
    """Places stay a permutation, and cost no more than those at the start."""
    problem = random_problem(
        seed,
        n,
        topics,
        prefixes if seed % 3 == 0 else ring,
        delay_weight=weight,
        round_trips=trips(n, seed) if by_trips else None,
        count_rendezvous=count_rendezvous,
        key=seed,
    )
    staying = CostModel(problem).cost
    for policy in SEARCHES:
        decision = solve(policy, problem)
        assert sorted(decision.node_of) == list(range(n))
        assert cost(problem, decision) <= staying * (1 + 1e-12)
    assert utility(problem, decision) >= 0  # of the last, which is cost-aware


def test_walks_draw_by_the_key_of_the_problem_alone() -> None:
    """The same key gives the same bytes, whatever was drawn in between; another gives another walk."""
    problem = random_problem(4, 40, 30, density=0.1)
    first = solve(Anneal, problem)
    others = [solve(Anneal, replace(problem, key=key)).node_of.tobytes() for key in range(1, 6)]
    assert solve(Anneal, problem).node_of.tobytes() == first.node_of.tobytes()
    assert len({first.node_of.tobytes(), *others}) > 1


def test_a_walk_must_cool() -> None:
    assert Anneal.Parameters(hot=0.1, cold=0.1)
    with pytest.raises(ValidationError, match=r"cold is above hot \(0.5 and 0.1\)"):
        Anneal.Parameters(cold=0.5)


@pytest.mark.parametrize("scale", [1, 30, 100, 1000])
def test_what_is_aware_of_the_cost_of_moving_gains_most(scale: int) -> None:
    """Few publications leave everybody in place; many move nearly all. Moves are counted from where brokers stood at first."""
    gains = {}
    given = random_problem(11, 48, 40, density=0.08, publications=np.full(40, scale), key=3)
    for policy in (CostAware, DynatopsGreedy, Anneal):
        gains[policy] = utility(given, decision := solve(policy, given))
        if policy is CostAware:
            moved = np.count_nonzero(decision.node_of != given.node_of)
    assert gains[CostAware] >= max(0, gains[DynatopsGreedy], 0.98 * gains[Anneal])
    assert (scale == 1) == (moved == 0)
    assert gains[Anneal] < 0 or scale >= 100


@pytest.mark.parametrize("count_rendezvous", [False, True])
@pytest.mark.parametrize(
    ("seed", "n", "topics", "tables", "weight"),
    [(1, 5, 6, ring, 1), (2, 5, 4, prefixes, 0), (3, 4, 6, ring, 2), (4, 6, 4, ring, 0), (5, 5, 5, prefixes, 0.5)],
)
def test_the_integer_programme_finds_the_least_cost_of_all_places(
    seed: int, n: int, topics: int, tables: Any, weight: float, count_rendezvous: bool
) -> None:
    problem = random_problem(seed, n, topics, tables, delay_weight=weight, count_rendezvous=count_rendezvous)
    found = solve(Ilp, problem)
    assert found.optimal
    assert cost(problem, found) == pytest.approx(oracle.best(case(problem)), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_annealing_finds_what_the_integer_programme_proves(seed: int) -> None:
    problem = random_problem(seed, 9, 10, density=0.2, publications=np.ones(10, np.int64))
    least = cost(problem, solve(Ilp, problem))
    assert [cost(problem, solve(Anneal, replace(problem, key=key))) for key in range(3)] == [least] * 3


def test_equation_16_as_printed_lets_trees_lose_their_edges() -> None:
    """Right constraints count the edges of all trees. The printed ones count an edge only if all nodes behind it subscribe, so that
    they are content with places that cost more than need be."""
    problem = random_problem(8, 5, 4, publications=np.ones(4, np.int64), delay_weight=0, density=0.2)
    literal = case(problem)
    for seed in range(10):
        placed = replace(literal, node_of=np.random.default_rng(seed).permutation(5).tolist())
        total = sum(len(oracle.tree(placed, topic)) for topic in range(4))
        assert oracle.edges(placed) == total == oracle.external(placed) + oracle.internal(placed)
        assert oracle.edges(placed, printed=True) <= total
    placed = replace(literal, node_of=solve(Ilp, problem).node_of.tolist())
    least = oracle.best(literal, oracle.external)
    assert oracle.external(placed) == least
    assert oracle.best(literal, lambda x: oracle.edges(x, printed=True)) < oracle.best(literal, oracle.edges)


def test_the_integer_programme_refuses_what_is_too_large_for_it() -> None:
    assert solve(Ilp, random_problem(1, 12, 20, density=0.04)).optimal
    with pytest.raises(InputError) as error:
        solve(Ilp, random_problem(1, 1000, 100))
    assert str(error.value) == (
        "policy ilp: 1,000 brokers and 100 topics give n (n + t) = 1,100,000 variables, "
        "allowed: up to 600, as 12 brokers and 20 topics have (policy anneal takes any number)"
    )
    with pytest.raises(
        InputError, match=r"delay in round-trip times is not a linear function .* \(allowed: delay in hops\)"
    ):
        solve(Ilp, random_problem(1, 4, 3, round_trips=trips(4, 1)))


def test_the_integer_programme_out_of_time_proves_nothing() -> None:
    problem = random_problem(3, 14, 28, density=0.2)
    found = Ilp(Ilp.Parameters(time_limit=1e-3)).reconfigure(problem)
    assert not found.optimal
    assert cost(problem, found) <= CostModel(problem).cost


@pytest.mark.parametrize(("each", "proposals"), [(100, 50_000), (20_000, 20_000 * 6)])
def test_a_walk_is_as_long_as_is_said_for_each_broker_and_never_short(
    each: int, proposals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[int] = []
    monkeypatch.setattr(
        search.search_kernels, "anneal", lambda state, places, *rest: (walked.append(rest[-2]), places)[1]
    )
    Anneal(Anneal.Parameters(proposals=each)).reconfigure(random_problem(1, 6, 8))
    assert walked == [proposals]
