"""The greedy policies and the assignment against the paper's algorithms as written, and against all configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles import ssbr as oracle
from test_reconfiguration_cost import case, prefixes, random_problem, ring, trips

from sim.overlay.chord import chord_routes
from sim.policies.reconfiguration.assignment import Lsap
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.greedy import DynatopsGreedy, SsbrGreedy
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem


def solve(policy: Any, problem: ReconfigurationProblem) -> Reconfiguration:
    found: Reconfiguration = policy(policy.Parameters()).reconfigure(problem)
    return found


PROBLEMS = [
    random_problem(seed, n, topics, tables, density, count_rendezvous=seed % 2 == 0, delay_weight=weight)
    for seed, n, topics, tables, density, weight in [
        (1, 1, 3, ring, 0.5, 1),
        (2, 2, 4, ring, 0.5, 1),
        (3, 8, 6, ring, 0.3, 1),
        (4, 16, 10, ring, 0.15, 2),
        (5, 16, 10, prefixes, 0.15, 0),
        (6, 14, 30, prefixes, 0.1, 1),
        (7, 9, 0, ring, 0.1, 1),
    ]
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_algorithm_2_swap_by_swap(problem: ReconfigurationProblem) -> None:
    found = solve(SsbrGreedy, problem)
    path = list(oracle.greedy(case(problem)))
    assert [tuple(swap) for swap in found.swaps] == [(top, with_, oracle.cost(after)) for top, with_, after in path]
    assert found.node_of.tolist() == (path[-1][2] if path else case(problem)).node_of
    assert all(type(swap.cost) is int for swap in found.swaps)


def test_the_problems_have_paths() -> None:
    assert sum(len(solve(SsbrGreedy, problem).swaps) for problem in PROBLEMS) > 20


def test_of_equal_brokers_and_partners_the_first_is_taken() -> None:
    """All of 1 to 4 relay or wait equally; 3 and 4 each stand at a finger of the root with nothing to do."""
    routes = chord_routes(np.arange(8), np.array([0]), bits=3)
    wanted = np.zeros((1, 8), bool)
    wanted[0, [6, 7]] = True
    start = np.array([0, 1, 2, 4, 5, 6, 3, 7], np.int32)
    problem = ReconfigurationProblem(routes.parent, routes.hops, routes.roots, wanted, np.array([1]), start)
    found = solve(SsbrGreedy, problem)
    assert [tuple(swap) for swap in found.swaps] == [
        (top, partner, oracle.cost(after)) for top, partner, after in oracle.greedy(case(problem))
    ]


@pytest.mark.parametrize("problem", PROBLEMS[2:6])
@pytest.mark.parametrize("scale", [1, 10, 100])
@pytest.mark.parametrize("constants", [(1.0, 1.0, 1.0), (20.0, 0.0, 0.0), None])
def test_algorithm_4_stops_where_moving_pays_most(problem: ReconfigurationProblem, scale: int, constants: Any) -> None:
    problem = replace(problem, publications=problem.publications * scale, constants=constants)
    found = solve(DynatopsGreedy, problem)
    path = oracle.cost_driven(case(problem))
    assert [tuple(swap) for swap in found.swaps] == [(top, with_, oracle.cost(after)) for top, with_, after in path]
    assert found.node_of.tolist() == (path[-1][2] if path else case(problem)).node_of


def test_algorithm_4_moves_nobody_for_few_publications_and_all_for_many() -> None:
    few = replace(PROBLEMS[3], publications=np.ones_like(PROBLEMS[3].publications))
    assert solve(DynatopsGreedy, few).swaps == ()
    many = replace(few, publications=few.publications * 10**6)
    assert solve(DynatopsGreedy, many).swaps == solve(SsbrGreedy, many).swaps != ()


@pytest.mark.parametrize("tables", [ring, prefixes])
def test_algorithm_2_by_round_trips(tables: Any) -> None:
    n = 12
    problem = random_problem(8, n, 10, tables, 0.2, round_trips=trips(n, 8), delay_weight=0.5)
    found = solve(SsbrGreedy, problem)
    path = list(oracle.greedy(case(problem)))
    assert [(swap.broker, swap.partner) for swap in found.swaps] == [(top, partner) for top, partner, _ in path]
    assert [swap.cost for swap in found.swaps] == pytest.approx([oracle.cost(after) for _, _, after in path], rel=1e-9)
    assert path


def test_rounding_is_no_improvement() -> None:
    """Swaps that change nothing but the last bit of a sum would go on for ever."""
    n = 30
    problem = random_problem(9, n, 20, round_trips=np.full((n, n), 0.1), delay_weight=0.3)
    hops = replace(problem, round_trips=None, delay_weight=0.03)
    assert [s[:2] for s in solve(SsbrGreedy, problem).swaps] == [s[:2] for s in solve(SsbrGreedy, hops).swaps] != []


@pytest.mark.parametrize("tables", [ring, prefixes])
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_the_assignment_has_the_least_delay_of_all_places(tables: Any, n: int) -> None:
    problem = random_problem(n, n, 4, tables, 0.4)
    objective = CostModel(problem)
    objective.place(solve(Lsap, problem).node_of)
    assert objective.delay == oracle.best(case(problem), oracle.total_delay)


def test_the_assignment_takes_hops_for_round_trips() -> None:
    problem = random_problem(3, 20, 10)
    by_trips = replace(problem, round_trips=trips(20, 3))
    assert solve(Lsap, by_trips).node_of.tolist() == solve(Lsap, problem).node_of.tolist()
