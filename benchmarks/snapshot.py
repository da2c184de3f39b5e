"""Annealing by round-trip times on the full location model: what brokers want at the start, and after two weeks of visits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Figure
from benchmarks.reconfiguration import decide, problem, timed
from sim.overlay.chord import Chord
from sim.policies.reconfiguration.cost import CostModel
from sim.policies.reconfiguration.problem import ReconfigurationProblem
from sim.scenario.model import Scenario
from sim.simulation import build, prepare_workload

USERS = 40_000
WEIGHT = 1.0
"""What the mean round-trip time counts, where a message to a relay counts 1."""
DAYS = 14


def snapshot(days: int) -> ReconfigurationProblem:
    """Users of the mobility model on a broker for each of some 1,200 cells, in clusters of 10, brokers at random on a Chord ring.

    Publications are the visits of all 92 days; subscriptions those when all have joined, or a number of days later.
    """
    scenario = Scenario.model_validate(
        {
            "seed": 1,
            "horizon": f"{max(days, 1)}d",
            "workload": {"kind": "mobility", "users": USERS},
            "network": {"brokers": "cells", "geometry": {"kind": "chord"}, "latency": {"kind": "distance"}},
            "selection": {"kind": "similarity", "cluster_size": 10},
        }
    )
    workload = prepare_workload(scenario, 0, None)
    network = build(scenario, workload, 0)
    if days:
        network.run()
    else:
        network.users.join_all()
    overlay, times = network.setting.overlay, np.asarray(network.setting.hop_delay)
    assert isinstance(overlay, Chord)
    apart = ~np.eye(len(times), dtype=np.bool_)
    return ReconfigurationProblem(
        overlay.parent,
        overlay.hops,
        np.array(overlay.roots, np.int32),
        network.subscriptions.all_serving(),
        workload.published(),
        network.setting.node_of,
        delay_weight=WEIGHT,
        round_trips=times / times[apart].mean(),
    )


def figures() -> Iterator[Figure]:
    """Tree delay, messages per publication and CPU time, against the places at the start."""
    decide("anneal", problem(10, 10, round_trips=True))  # compiles the kernels
    for days in (0, DAYS):
        given = snapshot(days)
        objective = CostModel(given)
        delay, messages = objective.delay, objective.external + objective.internal
        decision, seconds = timed("anneal", given)
        objective.place(decision.node_of)
        less = 1 - objective.delay / delay
        fewer = 1 - (objective.external + objective.internal) / messages
        when = f"after {days} days" if days else "at the start"
        name = f"anneal by round-trip times, {USERS:,} users {when}"
        yield Figure(f"{name}: tree delay", f"{100 * less:.1f} % less", "≥ 50 % less", less >= 0.5)
        yield Figure(f"{name}: messages per publication", f"{100 * fewer:.1f} % fewer", "≥ 30 % fewer", fewer >= 0.3)
        yield Figure(f"{name}: CPU time", f"{seconds:.1f} s", "≤ 60 s", seconds <= 60)
