"""The SSBR cost against sets of routes, and incremental swaps against full recounts."""

from __future__ import annotations

import doctest
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import ssbr as oracle

from sim.base.errors import InputError
from sim.overlay.chord import chord_routes, even_ids, hashed_ids
from sim.policies.reconfiguration import cost
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import ReconfigurationProblem

Tables = tuple[NDArray[np.int32], NDArray[np.int32]]


def ring(n: int, seed: int) -> Tables:
    routes = chord_routes(hashed_ids(seed, n, 16) if seed % 2 else even_ids(n, 16), np.zeros(0, np.int64), 16)
    return routes.parent, routes.hops


@cache
def prefixes(n: int, seed: int) -> Tables:
    """Routes as in Tapestry, one digit of the target's number in base 3 more with every hop, to any node that has them."""
    rng = np.random.default_rng(seed)
    digits = np.array([[v // 3**i % 3 for i in range(5)] for v in rng.choice(3**5, n, replace=False)])
    nearer: dict[Any, int] = {}
    parent, hops = np.full((n, n), -1, np.int32), np.zeros((n, n), np.int32)
    for root in range(n):
        for v in range(n):
            here, before = root, root
            while here != v:
                shared = int(np.argmin(digits[here] == digits[v]))
                alike = np.flatnonzero((digits[:, : shared + 1] == digits[v, : shared + 1]).all(axis=1))
                before, here = here, nearer.setdefault((here, *digits[v, : shared + 1]), int(rng.choice(alike)))
                hops[root, v] += 1
            parent[root, v] = before if root != v else -1
    return parent, hops


def random_problem(
    seed: int, n: int, topics: int, tables: Any = ring, density: float = 0.3, **more: Any
) -> ReconfigurationProblem:
    rng = np.random.default_rng(seed)
    parent, hops = tables(n, seed)
    wanted = rng.random((topics, n)) < rng.uniform(0, 2 * density, topics)[:, None]
    return ReconfigurationProblem(
        parent,
        hops,
        rng.integers(0, n, topics).astype(np.int32),
        wanted,
        more.pop("publications", rng.integers(0, 50, topics)),
        rng.permutation(n).astype(np.int32),
        **more,
    )


def case(problem: ReconfigurationProblem, node_of: NDArray[np.int32] | None = None) -> oracle.Case:
    return oracle.Case(
        problem.parent.tolist(),
        problem.roots.tolist(),
        [set(np.flatnonzero(wants).tolist()) for wants in problem.wanted.T],
        problem.publications.tolist(),
        (problem.node_of if node_of is None else node_of).tolist(),
        problem.delay_weight,
        None if problem.round_trips is None else problem.round_trips.tolist(),
        problem.count_rendezvous,
        problem.constants,
    )


def trips(n: int, seed: int) -> NDArray[np.float64]:
    """Times that need not be the same in both directions."""
    return np.random.default_rng([seed, 1]).uniform(0.01, 3, (n, n))


@pytest.mark.parametrize("tables", [ring, prefixes])
@pytest.mark.parametrize("count_rendezvous", [False, True])
@pytest.mark.parametrize("by_trips", [False, True])
def test_all_figures_equal_those_of_sets_of_routes(tables: Any, count_rendezvous: bool, by_trips: bool) -> None:
    for seed in range(6):
        n = (1, 2, 5, 9, 16, 21)[seed]
        given = random_problem(
            seed,
            n,
            topics=seed * 3,
            tables=tables,
            delay_weight=(1, 0, 3)[seed % 3],
            count_rendezvous=count_rendezvous,
            round_trips=trips(n, seed) if by_trips else None,
        )
        objective, literal = CostModel(given), case(given)
        assert objective.external == oracle.external(literal)
        assert objective.internal == oracle.internal(literal)
        assert objective.delay == pytest.approx(oracle.total_delay(literal), rel=1e-12)
        assert objective.cost == pytest.approx(oracle.cost(literal), rel=1e-12)
        assert objective.broker_costs.tolist() == pytest.approx(
            [oracle.broker_cost(literal, broker) for broker in literal.brokers], rel=1e-12
        )
        for topic, links in enumerate(objective.trees()):
            assert sorted(map(tuple, links.tolist())) == sorted(oracle.tree(literal, topic))
        if not by_trips:
            assert {type(x) for x in (objective.cost, objective.external, objective.internal, objective.delay)} == {int}


@pytest.mark.parametrize(("n", "topics", "density"), [(40, 30, 0.15), (100, 100, 0.05), (7, 40, 0.6)])
@pytest.mark.parametrize("tables", [ring, prefixes])
@pytest.mark.parametrize("count_rendezvous", [False, True])
def test_swaps_equal_counting_anew_exactly(
    tables: Any, n: int, topics: int, density: float, count_rendezvous: bool
) -> None:
    """500 random swaps each; costs are whole numbers, and what the swap was said to change is what it changed."""
    given = random_problem(3, n, topics, tables, density, delay_weight=2, count_rendezvous=count_rendezvous)
    live, anew = CostModel(given), CostModel(given)
    rng = np.random.default_rng(5)
    for first, second in rng.integers(0, n, (500, 2)).tolist():
        before, change = live.cost, live.swap_change(first, second)
        assert live.cost == before
        live.swap(first, second)
        anew.place(live.node_of)
        assert isinstance(live.cost, int)
        assert live.cost == before + change == anew.cost == live.broker_costs.sum()
        assert (live.external, live.internal, live.delay) == (anew.external, anew.internal, anew.delay)
    assert (live.state.counts == anew.state.counts).all()
    assert live.cost == oracle.cost(case(given, live.node_of))


@pytest.mark.parametrize("tables", [ring, prefixes])
@pytest.mark.parametrize("symmetric", [False, True])
def test_swaps_equal_counting_anew_by_round_trips(tables: Any, symmetric: bool) -> None:
    n = 60
    times = trips(n, 1)
    given = random_problem(
        4, n, 50, tables, 0.1, delay_weight=0.7, round_trips=(times + times.T) if symmetric else times
    )
    live, anew = CostModel(given), CostModel(given)
    rng = np.random.default_rng(6)
    for first, second in rng.integers(0, n, (1250, 2)).tolist():
        change = live.swap_change(first, second)
        before = live.cost
        live.swap(first, second)
        anew.place(live.node_of)
        assert live.cost == pytest.approx(anew.cost, rel=1e-9)
        assert live.cost == pytest.approx(before + change, rel=1e-12)
        assert live.broker_costs.sum() == pytest.approx(live.cost, rel=1e-9)
        assert live.external == anew.external
    assert live.state.flows == pytest.approx(anew.state.flows)
    assert live.cost == pytest.approx(oracle.cost(case(given, live.node_of)), rel=1e-9)


def test_topics_that_neither_wants_are_priced_anew_by_round_trips_only() -> None:
    """Brokers 1 and 2 want nothing, but the tree to broker 3 leads over one of them."""
    parent, hops = ring(4, 0)
    wanted = np.array([[False, False, False, True]])
    start = np.array([0, 2, 1, 3], np.int32)  # routes from node 0 to node 3 lead over node 2
    given = ReconfigurationProblem(parent, hops, np.array([0], np.int32), wanted, np.array([10]), start)
    assert CostModel(given).swap_change(1, 2) == 0
    times = np.ones((4, 4))
    times[0, 2] = times[2, 3] = 5.0
    far = ReconfigurationProblem(
        parent, hops, np.array([0], np.int32), wanted, np.array([10]), start, round_trips=times
    )
    assert CostModel(far).delay == 20
    assert CostModel(far).swap_change(1, 2) == 80
    assert CostModel(far).swap_change(1, 1) == 0


def test_what_moving_costs() -> None:
    given = random_problem(1, 8, 10, constants=(1.0, 2.0, 0.5))
    objective = CostModel(given)
    assert (objective.moved, objective.move_cost(0)) == (0, 0.0)
    objective.swap(2, 5)
    assert objective.moved == 2
    assert objective.move_cost(2) == 8 + (2 * 3**2 + 0.5 * 10 * 3) * 2  # log2 8 = 3
    assert objective.max_move_cost == 8 + (2 * 3**2 + 0.5 * 10 * 3) * 8
    objective.swap(5, 2)
    assert objective.moved == 0
    assert CostModel(random_problem(1, 8, 10, constants=None)).max_move_cost == 0
    assert CostModel(random_problem(1, 1, 1)).max_move_cost == 1


def test_weights_that_are_no_whole_numbers() -> None:
    for more in ({"delay_weight": 0.1}, {"publications": np.array([0.5, 2.25, 3.0])}):
        given = random_problem(2, 12, 3, **more)
        objective = CostModel(given)
        for first, second in np.random.default_rng(1).integers(0, 12, (50, 2)).tolist():
            objective.swap(first, second)
        assert isinstance(objective.cost, float)
        assert objective.cost == pytest.approx(oracle.cost(case(given, objective.node_of)), rel=1e-12)


def test_costs_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match=r"costs may reach 1.38e.20, allowed: below 2\^63"):
        CostModel(random_problem(1, 10, 3, publications=np.array([2**60] * 3)))


def test_places_that_are_no_permutation_are_refused() -> None:
    with pytest.raises(ValueError, match="not a permutation of 4 nodes"):
        CostModel(random_problem(1, 4, 3)).place(np.array([0, 1, 1, 2], np.int32))


@pytest.mark.parametrize("broker", [-1, 4])
def test_brokers_that_do_not_exist_are_refused(broker: int) -> None:
    objective = CostModel(random_problem(1, 4, 3))
    for ask in (objective.swap_change, objective.swap):
        with pytest.raises(IndexError, match="expected numbers from 0 to 3"):
            ask(0, broker)
    with pytest.raises(IndexError):
        objective.best_partner(broker)


def test_the_example_of_the_objective() -> None:
    failed, attempted = doctest.testmod(cost)
    assert attempted > 5
    assert failed == 0
