"""Small random networks by number in which groups share subscriptions, with any strategy."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import tiny
from generated import Generated, faulty, generated, guaranteed, network
from test_against_oracle import GRAIN, with_sessions

from sim.brokers.network import Network
from sim.policies.sharing import strategies
from sim.policies.sharing.view import SharingSetting
from sim.workloads.format.workload import Shares

STRATEGIES: dict[str, Any] = {
    "random": strategies.RandomMember,
    "round-robin": strategies.RoundRobin,
    "sticky": strategies.Sticky,
    "hash-client": strategies.HashClient,
    "hash-topic": strategies.HashTopic,
    "local-first": strategies.LocalFirst,
    "least-loaded": strategies.LeastLoaded,
}


def sharing(seed: int) -> Generated:
    """A network of this number on topics: a third with guarantees, a third in which something fails, nothing offloaded."""
    made = (generated, faulty, guaranteed)[seed % 3](seed, *(["tree"] if seed % 3 == 0 and seed % 2 else []))
    return replace(faulty(seed) if made.kind == "content" else made, keeps=False)


def shares(made: Generated, seed: int) -> Shares:
    """Three quarters of all pairs of a topic and a user are shared, by up to three groups each."""
    rng = random.Random(f"shares {seed}")
    groups = rng.choice((1, 1, 2, 3))
    rows = [
        (topic, user, topic * groups + rng.randrange(groups))
        for topic in range(made.case.topics)
        for user in range(len(made.case.wants))
        if rng.random() < 3 / 4
    ]
    return Shares(*(np.array([row[column] for row in rows], np.int32) for column in range(3)))


def shared_network(made: Generated, seed: int, plane: str, strategy: str | None = None, **setting: Any) -> Network:
    """The network before its run; by its number it has one of the strategies."""
    case = made.case
    world = tiny.workload(
        case.wants,
        case.publications,
        case.changes,
        case.movements,
        topics=case.topics,
        horizon=case.horizon + 4 * GRAIN,
    )
    world = replace(with_sessions(case, world), shares=shares(made, seed))
    kind = STRATEGIES[strategy or list(STRATEGIES)[seed // 3 % len(STRATEGIES)]]
    policy = kind(kind.Parameters(), SharingSetting(len(case.wants), case.brokers, seed))
    return network(made, plane, world, sharing=policy, **setting)
