"""Content on networks: the simulator against a slow, obvious one, plane against plane, and exactly what is due to which user."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least
from hypothesis import given
from hypothesis import strategies as st
from oracles import content as oracle
from oracles.faults import Faults
from test_against_oracle import (
    GRAIN,
    Case,
    built,
    cases,
    compare_metrics,
    compare_windows,
    expected_delivery,
    expected_service,
    expected_setting,
    expected_world,
    limited,
    loaded,
    random_delivery,
    reproducible,
)
from test_folded import NOTHING_CONTENDS
from test_reconfiguration import PAYS, Shuffle, processes
from tiny import run, tables

from sim.base.errors import ScenarioError
from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.data.publishers import entries
from sim.brokers.network import Network
from sim.policies.reconfiguration.process import ProcessParameters
from sim.scenario.reader import load_scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.format.workload import Workload


@dataclass
class ContentCase:
    """A case whose publications are copies of those of the content, as the oracle wants them; `world` is the simulator's."""

    case: Case
    content: oracle.Content
    world: Workload
    matching: float

    @property
    def fields(self) -> int:
        return len(self.content.published[0])


@st.composite
def contents(draw: st.DrawFn, kind: Callable[..., Any] = cases, **fixed: Any) -> ContentCase:
    """Networks as for topics, with a few subscriptions for each user, of fields and values so few that copies meet at brokers."""
    case = draw(kind(changes=[], dissemination="tree", **fixed))
    rng = random.Random(case.seed)
    fields, values, users = rng.randint(1, 4), rng.randint(1, 4), len(case.wants)
    subscriptions = [
        (user, {field: rng.randrange(values) for field in rng.sample(range(fields), rng.randint(1, fields))})
        for user in range(users)
        for _ in range(rng.randrange(4))
    ]
    rng.shuffle(subscriptions)
    rows = case.publications or [(0.0, 0, -1, 1)]
    published = [tuple(rng.randrange(values) for _ in range(fields)) for _ in rows]
    content = oracle.Content(subscriptions, published)
    world = tiny.content(
        subscriptions,
        [(time, who, size, row) for (time, _, who, size), row in zip(rows, published, strict=True)],
        case.movements,
        users=users,
        fields=fields,
        values=values,
        horizon=case.horizon + 4 * GRAIN,
    )
    copies = [
        (time, topic, who, size) for number, (time, _, who, size) in enumerate(rows) for topic in content.copies(number)
    ]
    topics = {"topics": len(content.predicates), "wants": content.wants(users), "publications": copies}
    matching = rng.choice((0.0, GRAIN / 4)) if case.service[0] != "none" else 0.0
    return ContentCase(replace(case, **topics, sessions={}, quality={}), content, world, matching)


def simulated(made: ContentCase, **setting: Any) -> Network:
    network = built(made.case, made.world, subscribers=True, matching_time=made.matching, **setting)
    network.run()
    return network


def expected(made: ContentCase) -> oracle.Network:
    takes = expected_service(made.case)

    def service(what: int, broker: int, stage: int, copies: int, users: int, size: int, increments: int) -> float:
        return takes(what, broker, stage, copies, users, size, increments * made.matching)

    world = expected_world(made.case, made.fields)
    run = expected_setting(made.case), world, made.content, service if made.case.service[0] != "none" else None
    return oracle.Kept(*run, Faults([]), expected_delivery(made.case)) if made.case.delivery else oracle.Network(*run)


def compare(made: ContentCase) -> oracle.Network:
    network, truth = simulated(made, trace=True), expected(made)
    decisions = zip(
        *(np.asarray(column).tolist() for column in network.tables()["decisions/selection"].values()), strict=True
    )
    assert list(decisions) == [(t, user, -1 if f is None else f, to) for t, user, f, to in truth.decisions]
    rows = list(zip(*network.tables()["trace"].values(), strict=True))
    assert sorted(rows) == sorted(
        (hop.sent, hop.received, hop.publication // made.fields, hop.source, hop.destination, hop.kind, hop.subscribes)
        for hop in truth.hops
        if hop.received is not None
    )
    compare_metrics(network.metrics(), oracle.metrics(truth, made.case.warm_up, made.case.horizon))
    compare_windows(network.recorder.timeseries(), truth, oracle.metrics)
    outcomes = oracle.outcomes(truth, 0.0, made.case.horizon)
    delivered = Counter(
        broker for each in outcomes for broker in each.first if published(truth, each) >= made.case.warm_up
    )
    assert network.tables()["brokers"]["delivered"].tolist() == [
        delivered[broker] for broker in range(made.case.brokers)
    ]
    received = network.tables()["subscribers"]
    pairs = zip(received["topic"].tolist(), received["user"].tolist(), strict=True)
    assert dict(zip(pairs, received["delivered"].tolist(), strict=True)) == Counter(
        (truth.world.publications[copy][1], user)
        for each in outcomes
        for user, (_, copy) in each.came.items()
        if truth.came[each.number, user].fate == "delivered"
    )
    users = network.recorder.delays()
    assert sum(users["brokers"].tolist()) == sum(len(each.first) for each in outcomes)
    assert sum(users["users"].tolist()) == sum(coming.fate == "delivered" for coming in truth.came.values())
    return truth


def published(truth: oracle.Network, outcome: oracle.Outcome) -> float:
    return truth.world.publications[outcome.number * truth.fields][0]


def test_simulator_and_oracle_agree() -> None:
    tally: Counter[str] = Counter()

    @reproducible(110)
    @given(contents())
    def run(made: ContentCase) -> None:
        truth = compare(made)
        outcomes = oracle.outcomes(truth, 0.0, made.case.horizon)
        tally["cases"] += 1
        for each in outcomes:
            tally["by several copies"] += len({copy for _, copy in each.came.values()}) > 1
            tally["duplicates"] += each.duplicates
            tally["false positives"] += each.false_positives
            tally.update(each.missed.values())
            tally["some of a broker's"] += any(each.due[user] in each.first for user in each.missing)
        tally["matching takes time"] += made.matching > 0

    run()
    assert tally["cases"] >= least(100)
    few = (
        "by several copies",
        "duplicates",
        "false positives",
        "joining",
        "queue_full",
        "in_flight",
        "matching takes time",
    )
    assert min(tally[what] for what in few) >= least(10), tally
    assert tally["some of a broker's"] >= 1, tally


@reproducible(60)
@given(contents(loaded))
def test_loads_agree_too(made: ContentCase) -> None:
    compare(made)


@reproducible(40)
@given(contents(limited))
def test_limited_links_agree_too(made: ContentCase) -> None:
    compare(made)


def test_copies_that_are_sent_again_agree_too() -> None:
    tally: Counter[str] = Counter()

    @reproducible(20)
    @given(contents(limited))
    def run(made: ContentCase) -> None:
        rng = random.Random(f"delivery {made.case.seed}")
        delivery = random_delivery(rng, rng.choice(("at-least-once", "exactly-once")))
        truth = compare(replace(made, case=replace(made.case, delivery=delivery)))
        assert isinstance(truth, oracle.Kept)
        tally.update({"duplicates": truth.duplicates.total(), "users again": truth.repeated.total()})
        tally.update({"remembered": truth.most_remembered, "expired": [*truth.lost.values()].count("expired")})

    run()
    assert min(tally.values()) >= least(5), tally


@reproducible(40)
@given(contents(**{name: value for name, value in NOTHING_CONTENDS.items() if name != "dissemination"}))
def test_what_is_folded_is_the_same_to_the_last_bit(made: ContentCase) -> None:
    folded, events = simulated(made, plane="folded"), simulated(made, plane="events")
    assert tables(folded) == tables(events)
    assert folded.metrics() == events.metrics()


@reproducible(30)
@given(contents(join="instant", queue=None, clients={}))
def test_every_due_subscriber_is_delivered_exactly_once(made: ContentCase) -> None:
    last = max([made.case.horizon, *(row[0] for row in made.case.publications)])
    made.case.horizon = last + 1000.0  # long enough for everything to arrive
    network = simulated(made)
    received: Counter[int] = Counter()
    for user, count in zip(
        *(network.tables()["subscribers"][name].tolist() for name in ("user", "delivered")), strict=True
    ):
        received[user] += count
    owners = [owner for owner, _ in made.content.subscriptions]
    due = Counter(
        owner
        for row in made.content.published
        for owner in {owners[s] for s in oracle.matching(made.content.subscriptions, row)}
    )
    assert received == due
    metrics = network.metrics()
    assert metrics["delivery_ratio"] in (None, 1.0)
    assert metrics["delivered"] == metrics["due"] or made.case.warm_up > 0


def test_the_first_copy_is_the_delivery_a_later_one_a_duplicate_and_what_matches_nothing_a_false_positive() -> None:
    world = tiny.content(
        [(0, {0: 1}), (0, {1: 2}), (2, {0: 1, 1: 3})],
        [(1.0, 1, 10, (1, 2)), (8.0, 1, 10, (5, 3))],
        users=3,
        fields=2,
        horizon=20.0,
    )
    assert world.topics.names.to_pylist() == ["0=1", "0=5", "1=2", "1=3"]
    line = tiny.graph([(0, 1), (1, 2), (2, 3)], roots=[0, 0, 3, 3])
    network = tiny.network(world, line, hosts=[1, 3, 2], subscribers=True)
    run(network)
    metrics = network.metrics()
    # 1=2 leaves its root at broker 3 at once and is at broker 1 after 2 s; 0=1 climbs to broker 0 and is there after 4 s, where user 0
    # has had it, and goes on to broker 2, for whose user it is one predicate short
    shown = (
        "publications",
        "due",
        "delivered",
        "duplicates",
        "false_positive_messages",
        "notification_delay",
        "uplink_hops",
    )
    assert [metrics[name] for name in shown] == [2, 1, 1, 1, 1, 2.0, (3 + 0 + 3 + 0) / 4]
    assert (metrics["internal_overhead"], metrics["external_overhead"]) == (3, 1)
    assert {name: column.tolist() for name, column in network.tables()["subscribers"].items()} == {
        "topic": [2], "user": [0], "delivered": [1],
    }  # fmt: skip


def test_subscribers_at_one_broker_may_be_reached_by_different_copies() -> None:
    subscriptions = [(0, {0: 1}), (1, {1: 2})]
    world = tiny.content(subscriptions, [(0.0, -1, 10, (1, 2))], users=2, fields=2, horizon=20.0)
    line = tiny.graph([(0, 1), (1, 2), (2, 3)], roots=[0, 3])
    network = tiny.network(world, line, hosts=[1, 1])
    run(network)
    metrics = network.metrics()
    source = entries(world.publications.publisher, 0, network.users.host, 4, network._publishers._key).item()
    by_copy = [source - 0 + 1, 3 - source + 2]  # to broker 0 and on to 1, to broker 3 and on to 1
    assert metrics["due"] == metrics["delivered"] == metrics["duplicates"] == 1
    assert metrics["delivery_ratio"] == 1.0
    assert metrics["notification_delay"] == min(by_copy)
    assert metrics["user_notification_delay"] == sum(by_copy) / 2


@reproducible(20)
@given(contents(geometry="chord", **{n: v for n, v in NOTHING_CONTENDS.items() if n != "dissemination"}), processes())
def test_brokers_change_places_under_content(made: ContentCase, process: dict[str, Any]) -> None:
    def run(plane: str) -> Network:
        parameters = ProcessParameters().model_copy(update={"threshold": 1.0, "constants": PAYS, **process})
        shuffle = ReconfigurationSetting(Shuffle(2 + made.case.seed % 4), parameters, made.case.seed)
        return simulated(made, plane=plane, reconfiguration=shuffle)

    folded, events = run("folded"), run("events")
    assert tables(folded) == tables(events)
    assert folded.metrics() == events.metrics()


SMALL: dict[str, Any] = {
    "workload": {
        "kind": "content",
        "subscriptions": 30,
        "fields": 5,
        "values": 40,
        "size": 2,
        "publications": 40,
        "per_owner": 3,
    },
    "network": {"brokers": 6},
}


def test_a_prepared_workload_is_replicated_and_its_users_are_drawn_with_replacement(tmp_path: Path) -> None:
    made = load_scenario(SMALL).base
    write_workload(prepare_workload(made, 0, None), tmp_path)
    base = load_workload(tmp_path)
    for resample in (False, True):
        prepared = {"kind": "prepared", "path": str(tmp_path), "resample_users": resample}
        scenario = load_scenario(SMALL | {"workload": prepared}).base
        for replication in range(2):
            workload = prepare_workload(scenario, replication, base)
            metrics = simulate(scenario, workload, replication).metrics
            assert metrics["publications"] == len(workload.publications) > 0
            assert metrics["delivered"] == metrics["due"] > 0
            assert (workload is base) == (not resample)
            assert workload.content is not None
            assert len(workload.content.values) == len(workload.publications)


def test_what_content_cannot_do_is_refused() -> None:
    def refused(**keys: Any) -> str:
        with pytest.raises(ScenarioError) as caught:
            load_scenario(SMALL | keys)
        return str(caught.value).removeprefix("scenario: ")

    flood = {"brokers": 6, "geometry": {"kind": "topic-connected", "dissemination": "flood"}}
    assert refused(network=flood) == 'network.geometry: dissemination "flood" does not carry content (allowed: "tree")'
    loaded = {"service": {"kind": "deterministic", "matching": "1us"}}
    assert refused(workload={"kind": "poisson", "users": 5, "topics": 9}, brokers=loaded) == (
        "brokers.service.matching: a poisson workload has topics, not content to match (allowed: 0)"
    )
    with pytest.raises(ScenarioError, match=r"brokers.service: kind 'none' takes no matching above 0"):
        load_scenario({"brokers": {"service": {"matching": "1us"}}})
