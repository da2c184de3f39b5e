"""Reconfiguration: CPU time of the policies at the bars' sizes, and of a swap's change against a full recount."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import fmean, median

import numpy as np

from benchmarks.measure import Figure, alternate, cpu_seconds
from sim import plugins
from sim.overlay.chord import chord_routes, hashed_ids
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import Reconfiguration, ReconfigurationProblem

MODE = 10
"""Topics of a mode."""
SEEDS = 10


def problem(
    brokers: int, topics: int, per_broker: int = 5, seed: int = 1, round_trips: bool = False, multimodal: bool = False
) -> ReconfigurationProblem:
    """Each broker wants topics, one publication each, on a ring of 2^32 with hashed ids.

    Topics are drawn uniformly from all, or from one of the modes, ten topics that stand side by side.
    """
    rng = np.random.default_rng(seed)
    routes = chord_routes(hashed_ids(seed, brokers, 32), rng.integers(0, 1 << 32, topics), 32)
    wanted = np.zeros((topics, brokers), np.bool_)
    for broker in range(brokers):
        first, choice = (MODE * rng.integers(topics // MODE), MODE) if multimodal else (0, topics)
        wanted[first + rng.choice(choice, per_broker, replace=False), broker] = True
    return ReconfigurationProblem(
        routes.parent,
        routes.hops,
        routes.roots,
        wanted,
        np.ones(topics, np.int64),
        rng.permutation(brokers).astype(np.int32),
        round_trips=rng.uniform(0.01, 0.3, (brokers, brokers)) if round_trips else None,
    )


def decide(policy: str, given: ReconfigurationProblem) -> Reconfiguration:
    """The decision of a policy with its default parameters."""
    found = plugins.load("reconfiguration", policy)
    decision: Reconfiguration = found(found.Parameters()).reconfigure(given)
    return decision


def timed(policy: str, given: ReconfigurationProblem) -> tuple[Reconfiguration, float]:
    """The decision, and the CPU time (s) that it takes."""
    decisions: list[Reconfiguration] = []
    seconds = cpu_seconds(lambda: decisions.append(decide(policy, given)))
    return decisions[0], seconds


def saved(given: ReconfigurationProblem, decision: Reconfiguration) -> float:
    """The share of the cost that a decision saves."""
    objective = CostModel(given)
    before = objective.cost
    objective.place(decision.node_of)
    return 1 - objective.cost / before


def figures() -> Iterator[Figure]:
    """The greedy policies and the assignment; annealing, beside what is proven to be least; then single swaps."""
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
    for brokers, multimodal, least, bar in (
        (100, False, 0.33, 0.05),
        (100, True, 0.36, 0.05),
        (1000, False, 0.38, 1.0),
        (1000, True, 0.38, 1.0),
    ):
        yield _annealed(brokers, multimodal, least, bar)
    yield _optima()
    for round_trips in (False, True):
        yield _swaps(round_trips)


def _annealed(brokers: int, multimodal: bool, least: float, bar: float) -> Figure:
    """Annealing on problems of several seeds."""
    all_given = [problem(brokers, 100, seed=seed, multimodal=multimodal) for seed in range(SEEDS)]
    share = fmean(saved(given, decide("anneal", given)) for given in all_given)
    seconds = median(cpu_seconds(partial(decide, "anneal", given)) for given in all_given)
    pattern = "multimodal" if multimodal else "uniform"
    return Figure(
        f"anneal, {brokers:,} brokers, 100 topics, 5 each, {pattern}: saved, means of {SEEDS} problems, and CPU time",
        f"{100 * share:.1f} %, {_time(seconds)}",
        f"≥ {100 * least:.0f} %, ≤ {_time(bar)}",
        share >= least and seconds <= bar,
    )


def _optima() -> Figure:
    """How often annealing ends where the integer programme proves that there is nothing better, by ten starts each."""
    reached, seconds = [], 0.0
    for seed in range(SEEDS):
        given = problem(12, 20, seed=seed, multimodal=seed % 2 == 1)
        proven, taken = timed("ilp", given)
        seconds += taken
        if proven.optimal:
            least = saved(given, proven)
            starts = [replace(given, key=key) for key in range(10)]
            reached += [saved(given, decide("anneal", start)) == least for start in starts]
    share = fmean(reached)
    name = "anneal, 12 brokers, 20 topics, 5 each: starts that end at the least cost, as ilp proves it"
    text = f"{100 * share:.0f} % of {len(reached)} (ilp: {seconds / SEEDS:.1f} s of CPU each)"
    return Figure(name, text, "≥ 90 %", share >= 0.9)


def _swaps(round_trips: bool) -> Figure:
    """The changes of all swaps with one broker, against recounting all for one of them."""
    brokers = 1200
    objective = CostModel(problem(brokers, 1200, round_trips=round_trips))
    objective.best_partner(0)

    def swaps() -> float:
        return cpu_seconds(lambda: [objective.best_partner(broker) for broker in range(20)]) / (20 * (brokers - 1))

    def recounted() -> float:
        start = objective.node_of
        return cpu_seconds(partial(objective.place, start))

    whole, single, ratio = alternate(recounted, swaps)
    unit = "round-trip times" if round_trips else "hops"
    text = f"{ratio:,.0f} times faster ({1e6 * single:.2f} µs against {1000 * whole:.1f} ms)"
    return Figure(
        f"a swap's change, 1,200 brokers and topics, {unit}: against recounting", text, "≥ 100 times", ratio >= 100
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"
