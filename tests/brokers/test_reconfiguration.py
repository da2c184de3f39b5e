"""Brokers change places while users publish, subscribe and move: nothing is lost or delivered twice, and trees are as if built anew."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from test_against_oracle import Case, built, cases, reproducible
from test_folded import NOTHING_CONTENDS, tables

from sim.brokers.network import Network
from sim.brokers.reconfiguration import ReconfigurationSetting
from sim.policies.reconfiguration.problem import Problem, Reconfiguration
from sim.policies.reconfiguration.process import ProcessParameters
from sim.randomness import uniform

PAYS = (-1e9, 0.0, 0.0)  # what moving costs, so that it always pays


class Shuffle:
    """A policy that puts so many brokers on each other's nodes, at random."""

    def __init__(self, brokers: int) -> None:
        self.brokers = brokers

    def reconfigure(self, problem: Problem) -> Reconfiguration:
        n = len(problem.node_of)
        order = sorted(range(n), key=lambda broker: uniform(problem.key, broker))[: self.brokers]
        node_of = problem.node_of.copy()
        node_of[order] = np.roll(node_of[order], 1)
        return Reconfiguration(node_of)


def reconfigured(case: Case, **parameters: Any) -> dict[str, Any]:
    """Settings of a network that shuffles brokers every few seconds."""
    parameters = {"period": 2.0, "threshold": 1.0, "constants": PAYS, "timeout": 1.0, **parameters}
    brokers = parameters.pop("shuffled", 3)
    setting = ReconfigurationSetting(Shuffle(brokers), ProcessParameters(**parameters), case.seed)
    return {"reconfiguration": setting}


def ran(case: Case, plane: str, **parameters: Any) -> Network:
    network = built(case, plane=plane, subscribers=True, **reconfigured(case, **parameters))
    network.run()
    return network


def all_tables(network: Network) -> dict[str, bytes]:
    return tables(network) | {
        name: repr({key: np.asarray(value).tolist() for key, value in columns.items()}).encode()
        for name, columns in (("moves", network.configurations()), ("decisions", network.reconfigurations() or {}))
    }


def test_planes_agree_to_the_last_bit() -> None:
    tally: Counter[str] = Counter()

    @reproducible(150)
    @given(cases(geometry="chord", join="instant", **NOTHING_CONTENDS))
    def run(case: Case) -> None:
        one, other = (ran(case, plane) for plane in ("messages", "folded"))
        mine, others = all_tables(one), all_tables(other)
        assert [name for name in mine if mine[name] != others[name]] == []
        metrics = one.metrics()
        tally.update({name: metrics[name] for name in ("delivered", "reconfigurations", "in_flight")})

    run()
    print(tally)
