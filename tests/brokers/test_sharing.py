"""Shared subscriptions: against the oracle, on all engines, and by arithmetic and statistics."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
from generated import difference
from oracles.draws import uniform
from oracles.sharing import Outcome, Shared
from scipy.stats import chisquare
from sharing_cases import STRATEGIES, shared_network, sharing
from test_against_oracle import Case, expected_clients, random_clients

from sim.base.errors import ScenarioError
from sim.brokers.network import Network
from sim.brokers.statistics.ledger import DELIVERED, DUE, IN_FLIGHT, LOST
from sim.brokers.users.legs import ClientSetting, Speed
from sim.policies.sharing.view import SharingSetting
from sim.scenario.reader import load_scenario
from sim.workloads.format.workload import Absences, Shares

KEY = 5
KINDS = ("none", "resumed", "over")  # of sessions
CASES, ALL = 60, 1000
AGREEING, ALL_AGREEING = 21, 1500


def policy(strategy: str, users: int = 99, brokers: int = 9) -> Any:
    kind = STRATEGIES[strategy]
    return kind(kind.Parameters(), SharingSetting(users, brokers, KEY))


def columns(rows: list[tuple[int, int, int]]) -> Shares:
    return Shares(*(np.array([row[column] for row in sorted(rows)], np.int32) for column in range(3)))


# -- against the oracle


def drawn(seed: int) -> tuple[Shared, dict[str, Any]]:
    """A small network of this number, and the setting of its users' legs."""
    rng = random.Random(f"shared {seed}")
    brokers, topics, users, groups = rng.randint(1, 6), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 3)
    horizon = rng.choice((4.0, 8.0))
    wants = [{topic for topic in range(topics) if rng.random() < 0.6} for _ in range(users)]
    held, changes = [set(some) for some in wants], []
    for time in sorted(rng.uniform(0, horizon) for _ in range(rng.choice((0, 10, 20)))):
        user, topic = rng.randrange(users), rng.randrange(topics)
        changes.append((time, user, topic, -1 if topic in held[user] else +1))
        held[user] ^= {topic}
    host = [rng.randrange(brokers) for _ in range(users)]
    publications = []
    for time in sorted(rng.uniform(0, horizon) for _ in range(rng.choice((20, 60)))):
        publisher = rng.randrange(users)
        publications.append((time, rng.randrange(topics), publisher, rng.choice((1, 4, 10)), host[publisher]))
    clients = random_clients(seed, (20.0, 60.0)) if seed % 4 else {}
    clients.pop("per_km", None)  # nobody has a place
    world = Shared(
        edges=[(rng.randrange(broker), broker) for broker in range(1, brokers)],
        root=[rng.randrange(brokers) for _ in range(topics)],
        host=host,
        wants=wants,
        changes=changes,
        publications=publications,
        group={
            (topic, user): topic * groups + rng.randrange(groups)
            for topic in range(topics)
            for user in range(users)
            if rng.random() < 0.7
        },
        strategy=list(STRATEGIES)[seed % len(STRATEGIES)],
        draw=lambda identity, group: uniform(KEY, identity, group),
        hop=rng.choice((0.0, 0.05, 0.3)),
        horizon=horizon,
    )
    if clients:
        world.clients = expected_clients(case(clients))
    if seed % 3 == 0:
        for user in range(users):
            start, session = rng.uniform(0, horizon), rng.choice(KINDS)
            world.clients.sessions.absences.append((user, start, min(start + rng.uniform(0, 4), horizon), session))
    return world, clients


def absent(rows: list[tuple[int, float, float, str]]) -> Absences:
    rows = sorted(rows, key=lambda row: row[1])
    users, starts, ends, sessions = zip(*rows, strict=True) if rows else ((),) * 4
    kinds = [KINDS.index(session) for session in sessions]
    return Absences(np.array(users, np.int32), np.array(starts), np.array(ends), np.array(kinds, np.int8))


def case(clients: dict[str, Any]) -> Case:
    """A case of which only the seed, that of `tiny.network`, and the legs matter."""
    made = object.__new__(Case)
    made.seed, made.clients, made.sessions, made.quality = 1, clients, {}, {}
    return made


def simulated(world: Shared, clients: dict[str, Any], plane: str) -> Network:
    workload = tiny.workload(
        world.wants,
        [row[:4] for row in world.publications],
        world.changes,
        topics=len(world.root),
        horizon=world.horizon,
    )
    workload = replace(workload, shares=columns([(*pair, group) for pair, group in world.group.items()]))
    workload = replace(workload, absences=absent(world.clients.sessions.absences))
    network = tiny.network(
        workload,
        tiny.graph(world.edges, world.root),
        world.host,
        world.hop,
        plane=plane,
        trace=False,
        subscribers=True,
        clients=ClientSetting(**clients),
        sharing=policy(world.strategy),
    )
    network.run()
    return network


def assert_as_the_oracle_says(seed: int, tally: Counter[str]) -> None:
    world, clients = drawn(seed)
    truth = Outcome(world)
    for plane in ("events", "compiled"):
        network = simulated(world, clients, plane)
        pairs = network.recorder.ledger.pairs[:, :, 1].sum(axis=0)
        fates = {"delivered": DELIVERED, None: IN_FLIGHT, **LOST}
        found = {fate: int(pairs[row]) for fate, row in fates.items() if pairs[row]}
        assert found == {fate: many for fate, many in truth.fates.items() if many}, seed
        assert pairs[DUE] == truth.fates.total()
        table = network.tables()["subscribers"]
        received = zip(*(table[name].tolist() for name in ("topic", "user", "delivered")), strict=True)
        assert {(topic, user): many for topic, user, many in received} == dict(truth.received), seed
        counts = network.recorder.statistics.counters.sum(axis=0)
        assert (counts[2] + counts[3], counts[3]) == (truth.messages, truth.relayed), seed
    tally["chosen"] += truth.turn.total() > 5
    tally["waited"] += truth.waited
    tally["in a session"] += truth.sessions > 0
    tally["relays"] += truth.relayed > 0
    tally.update(str(fate) for fate in truth.fates)


@pytest.mark.parametrize(
    ("first", "cases"), [(0, CASES), pytest.param(CASES, ALL, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_one_of_each_group_gets_what_the_oracle_says(first: int, cases: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(first, first + cases):
        assert_as_the_oracle_says(seed, tally)
    assert tally["chosen"] > cases / 2, tally
    assert (
        min(tally[what] for what in ("waited", "in a session", "relays", "None", "slow_client", "disconnected"))
        > cases / 20
    ), tally


# -- on all engines


def assert_engines_agree(seed: int) -> Network:
    made = sharing(seed)
    runs = [shared_network(made, seed, plane) for plane in ("events", "compiled")]
    for each in runs:
        each.run()
    assert difference(*runs) is None, seed
    return runs[1]


def test_engines_agree_with_queues_faults_guarantees_and_changes() -> None:
    assert sum(assert_engines_agree(seed).recorder.ledger.pairs.sum() > 0 for seed in range(AGREEING)) > AGREEING / 2


@pytest.mark.long
@pytest.mark.parametrize("first", range(AGREEING, ALL_AGREEING, 100))
def test_engines_agree_in_many_cases(first: int) -> None:
    for seed in range(first, min(first + 100, ALL_AGREEING)):
        assert_engines_agree(seed)


# -- by arithmetic


def workers(strategy: str, many: int, publications: int, publishers: int = 1, **setting: Any) -> list[int]:
    """How many publications each of so many workers gets, who share a topic; ten per second by others in turn."""
    rows = [(number / 10, 0, many + number % publishers, 1000) for number in range(publications)]
    world = tiny.workload([{0}] * many + [set()] * publishers, rows, horizon=publications / 10 + 100)
    world = replace(world, shares=columns([(0, user, 0) for user in range(many)]))
    hosts = [user % 2 for user in range(many + publishers)]
    network = tiny.network(
        world, tiny.graph([(0, 1)], [0]), hosts, plane="compiled", trace=False, subscribers=True, **setting,
        sharing=policy(strategy),
    )  # fmt: skip
    network.run()
    assert network.metrics()["delivered"] == publications
    table = network.tables()["subscribers"]
    return np.bincount(table["user"], table["delivered"], minlength=many).astype(int).tolist()


def test_in_turn_each_gets_as_much() -> None:
    assert workers("round-robin", 12, 1200) == [100] * 12


def test_at_random_all_are_equally_likely() -> None:
    assert chisquare(workers("random", 12, 3000)).pvalue > 0.001


def test_a_hash_keeps_publishers_together_and_spreads_them() -> None:
    """Each of 600 clients publishes five times, always to the same worker."""
    found = np.array(workers("hash-client", 6, 3000, publishers=600))
    assert (found % 5 == 0).all()
    assert chisquare(found // 5).pvalue > 0.001


def test_sticky_and_hash_of_topic_stay_with_one() -> None:
    for strategy in ("sticky", "hash-topic"):
        assert sorted(workers(strategy, 5, 50)) == [0, 0, 0, 0, 50]


def test_local_workers_are_preferred() -> None:
    """Only workers at broker 1 get what is published there."""
    found = workers("local-first", 3, 30)  # workers 0 and 2 are at broker 0, and user 3 publishes at broker 1
    assert found == [0, 30, 0]


def test_the_least_loaded_beats_turns_when_one_is_slow() -> None:
    """A twelfth of 10 messages per second of 1 kB is more than 0.5 kB per second can carry: the slow one takes one each 2 s."""
    legs = ClientSetting(Speed(0.0, 100_000.0), slow_first=1, slow=Speed(0.0, 500.0), until="client")
    assert workers("round-robin", 12, 1200, clients=legs)[0] == 100
    slow, *others = workers("least-loaded", 12, 1200, clients=legs)
    assert 120 / 3.2 <= slow <= 120 / 2  # after 2 s it waits for its turn, for up to 1.2 s
    assert max(others) - min(others) <= 12


# -- who is gone


def three(
    events: list[tuple[float, int, int, int]],
    absences: list[tuple[int, float, float, str]] | None = None,
    **setting: Any,
) -> Network:
    """Two members at brokers 1 and 2 of a line with the root 0, and one publication per second from outside."""
    world = tiny.workload([{0}, {0}], [(time, 0, -1, 1) for time in range(1, 9)], events)
    world = replace(world, shares=columns([(0, 0, 7), (0, 1, 7)]), absences=absent(absences or []))
    hosts = [1, 2]
    network = tiny.network(
        world,
        tiny.graph([(0, 1), (0, 2)], [0]),
        hosts,
        0.25,
        subscribers=True,
        sharing=policy("round-robin"),
        **setting,
    )
    network.run()
    return network


def got(network: Network) -> dict[int, int]:
    table = network.tables()["subscribers"]
    return dict(zip(table["user"].tolist(), table["delivered"].tolist(), strict=True))


def test_while_one_is_away_the_next_one_gets_all() -> None:
    network = three([(2.5, 0, 0, -1), (6.5, 0, 0, +1)])
    assert sum(got(network).values()) == 8
    assert got(network)[1] >= 5


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_who_is_offline_is_chosen_only_where_all_are_and_its_session_goes_on(plane: str) -> None:
    """User 0 is gone without a session from 2.6 to 6.6 s, and user 1 from 4.6 to 5.7 s, with a session in which one message waits."""
    network = three([], [(0, 2.6, 6.6, "none"), (1, 4.6, 5.7, "resumed")], plane=plane)
    assert sum(got(network).values()) == 8
    assert got(network)[1] >= 5
    assert network.metrics()["session_deliveries"] == 1


def test_what_nobody_waits_for_is_lost() -> None:
    network = three([], [(0, 2.6, 6.6, "none"), (1, 4.6, 5.7, "none")])
    assert network.metrics()["lost_disconnected"] == 1
    assert sum(got(network).values()) == 7


def test_nothing_is_due_while_all_are_gone() -> None:
    network = three([(2.5, 0, 0, -1), (2.5, 1, 0, -1)])
    assert sum(got(network).values()) == network.metrics()["due"] == 2


def test_messages_go_only_towards_the_chosen_one() -> None:
    metrics = three([]).metrics()
    assert (metrics["internal_overhead"], metrics["external_overhead"]) == (8, 0)


def test_what_is_shared_cannot_be_offloaded() -> None:
    workload = {"kind": "poisson", "group_size": 2}
    with pytest.raises(ScenarioError, match="topics with shared subscriptions cannot be offloaded"):
        load_scenario({"workload": workload, "network": {"brokers": 3}, "offloading": {"kind": "b3m"}})
