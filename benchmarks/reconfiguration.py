"""Reconfiguration: CPU time of the policies at the bars' sizes, and of a swap's change beside counting all anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim import plugins
from sim.overlay.chord import chord_routes, hashed_ids
from sim.policies.reconfiguration.cost import Objective
from sim.policies.reconfiguration.problem import Problem, Reconfiguration


def problem(brokers: int, topics: int, per_broker: int = 5, seed: int = 1, round_trips: bool = False) -> Problem:
    """Each broker wants topics drawn uniformly, one publication each, on a ring of 2^32 with hashed ids."""
    rng = np.random.default_rng(seed)
    routes = chord_routes(hashed_ids(seed, brokers, 32), rng.integers(0, 1 << 32, topics), 32)
    wanted = np.zeros((topics, brokers), np.bool_)
    for broker in range(brokers):
        wanted[rng.choice(topics, per_broker, replace=False), broker] = True
    return Problem(
        routes.parent,
        routes.hops,
        routes.roots,
        wanted,
        np.ones(topics, np.int64),
        rng.permutation(brokers).astype(np.int32),
        round_trips=rng.uniform(0.01, 0.3, (brokers, brokers)) if round_trips else None,
    )


def decide(policy: str, given: Problem) -> Reconfiguration:
    """What a policy with its default parameters decides."""
    found = plugins.load("reconfiguration", policy)
    decision: Reconfiguration = found(found.Parameters()).reconfigure(given)
    return decision


def saved(given: Problem, decision: Reconfiguration) -> float:
    """The share of the cost that a decision saves."""
    objective = Objective(given)
    before = objective.cost
    objective.place(decision.node_of)
    return 1 - objective.cost / before


def figures() -> Iterator[Figure]:
    """The greedy policies and the assignment; then single swaps."""
    for policy, brokers, topics, bar in (
        ("ssbr-greedy", 100, 100, 0.02),
        ("ssbr-greedy", 1000, 100, 3.0),
        ("ssbr-greedy", 100, 5000, 1.5),
        ("lsap", 1000, 100, 1.0),
    ):
        given = problem(brokers, topics)
        share = saved(given, decide(policy, given))  # compiles the kernels, too
        seconds = min(cpu_seconds(partial(decide, policy, given)) for _ in range(5))
        name = f"{policy}, {brokers:,} brokers, {topics:,} topics, 5 each: CPU time"
        yield Figure(name, f"{_time(seconds)}, saves {100 * share:.1f} %", f"≤ {_time(bar)}", seconds <= bar)
    for round_trips in (False, True):
        yield _swaps(round_trips)


def _swaps(round_trips: bool) -> Figure:
    """The changes of all swaps with one broker, against counting all anew for one of them."""
    brokers = 1200
    objective = Objective(problem(brokers, 1200, round_trips=round_trips))
    objective.best_partner(0)

    def swaps() -> float:
        return cpu_seconds(lambda: [objective.best_partner(broker) for broker in range(20)]) / (20 * (brokers - 1))

    def anew() -> float:
        start = objective.node_of
        return cpu_seconds(partial(objective.place, start))

    whole, single, ratio = alternate(anew, swaps)
    unit = "round-trip times" if round_trips else "hops"
    text = f"{ratio:,.0f} times faster ({1e6 * single:.2f} µs against {1000 * whole:.1f} ms)"
    return Figure(
        f"a swap's change, 1,200 brokers and topics, {unit}: beside counting anew", text, "≥ 100 times", ratio >= 100
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"
