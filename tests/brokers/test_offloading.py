"""Topics are offloaded while users publish, subscribe and move: the simulator against the slow one, and its results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least
from hypothesis import given
from hypothesis import strategies as st
from oracles import network as oracle
from oracles import reconfiguration as places_oracle
from oracles.draws import subkey, uniform
from test_against_oracle import (
    GRAIN,
    Case,
    built,
    cases,
    compare_brokers,
    compare_delays,
    compare_messages,
    compare_metrics,
    compare_windows,
    expected_setting,
    expected_world,
    reproducible,
)
from test_folded import NOTHING_CONTENDS
from test_reconfiguration import PAYS, Shuffle, To, processes
from tiny import run, tables

from sim import plugins
from sim.base.errors import BrokersimError, ScenarioError
from sim.base.randomness import Streams
from sim.brokers.control.manager import ReconfigurationSetting
from sim.brokers.control.offloading import OffloadingSetting
from sim.brokers.network import Network
from sim.policies.offloading.outcome import outcome
from sim.policies.offloading.problem import Decision, OffloadingProblem
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.reconfiguration.process import ProcessParameters
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.scenario.schema import json_schema
from sim.simulation import build, simulate
from sim.workloads.faults.fault import Outage
from sim.workloads.faults.schedule import resolve_faults

KEY = 7


class Drawn:
    """A policy that keeps topics in an order drawn by key, as long as they fit; it remembers what it was asked."""

    objective = "satisfied"

    def __init__(self) -> None:
        self.asked: list[tuple[OffloadingProblem, Decision | None]] = []

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        self.asked.append((problem, previous))
        order = sorted(range(problem.topics), key=lambda topic: uniform(problem.key, topic))
        return Decision(np.array(fitting(order, problem.cost.tolist(), problem.capacity), np.int32))


def fitting(order: list[int], cost: list[float], capacity: float) -> list[int]:
    kept: list[int] = []
    for topic in order:
        if cost[topic] > 0 and math.fsum(cost[other] for other in (*kept, topic)) <= capacity:
            kept.append(topic)
    return kept


@st.composite
def services(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters of the service, with periods of some seconds."""
    return {
        "capacity": draw(st.sampled_from(("30%", "50%", "90%", 3, 0))),
        "scope": draw(st.sampled_from(("network", "network", "broker"))),
        "tau": draw(st.sampled_from((1, 2, 2.5, 5))),
        "period": draw(st.sampled_from((1.0, 1.3, 3.0))),
        "smoothing": draw(st.sampled_from((0.3, 1.0))),
        "delivery_probability": draw(st.sampled_from((0.0, 0.5, 0.9, 1.0))),
        "extra_delay": draw(st.sampled_from((0.0, GRAIN, 0.3))),
    }


def offloading(case: Case, service: dict[str, Any], plane: str = "auto", policy: Any = None, **more: Any) -> Network:
    setting = OffloadingSetting(policy or Drawn(), OffloadingParameters(**service), KEY)
    return built(case, plane=plane, subscribers=True, offloading=setting, **more)


def expected(case: Case, service: dict[str, Any]) -> oracle.Setting:
    chosen = OffloadingParameters(**service)
    channel = Streams(case.seed).key("best-effort channel")

    def kept_for(key: int, rates: list[float], wants: list[set[int]]) -> list[int]:
        whole = all(rate == int(rate) for rate in (*rates, chosen.tau))
        scale = 1 if whole else 1000
        units = [max(round(rate * scale), int(rate > 0)) for rate in rates]
        cost = [rate * sum(topic in of for of in wants) / scale for topic, rate in enumerate(units)]
        order = sorted(range(len(rates)), key=lambda topic: uniform(key, topic))
        slack = len(cost) * 2.0**-52 * (scale > 1)
        return fitting(order, cost, chosen.capacity.of(math.fsum(cost) * (1 + slack)))

    def choose(number: int, rates: list[float], wants: list[set[int]], hosts: list[int]) -> set[tuple[int, int]]:
        if chosen.scope == "network":
            kept = kept_for(subkey(KEY, number, 0), rates, wants)
            return {(topic, broker) for topic in kept for broker in range(case.brokers)}
        return {
            (topic, broker)
            for broker in set(hosts)
            for topic in kept_for(
                subkey(KEY, number, broker + 1),
                rates,
                [of for of, host in zip(wants, hosts, strict=True) if host == broker],
            )
        }

    setting = expected_setting(case)
    setting.offloading = oracle.Offloading(
        chosen.period,
        chosen.tau,
        chosen.smoothing,
        choose,
        lambda publication, broker: uniform(channel, publication, broker) < chosen.delivery_probability,
        chosen.extra_delay,
        chosen.scope == "broker",
    )
    return setting


NOT_COMPARED = ("backend_load", "backend_capacity", "approximation_ratio")


def compare(case: Case, network: Network, truth: oracle.Network, metrics: Any = oracle.metrics) -> None:
    finished: list[Any] = []
    finish = network.engine.rule.finished.add
    network.engine.rule.finished.add = lambda flight, *sent: (finished.append(flight), finish(flight, *sent))
    network.run()
    compare_messages(network, finished, truth)
    found = network.metrics() | dict.fromkeys(NOT_COMPARED)
    compare_metrics(found, metrics(truth, case.warm_up, case.horizon))
    compare_windows(network.recorder.timeseries(), truth, metrics)
    compare_delays(network, truth)
    compare_brokers(network, case, truth)
    received = network.tables()["subscribers"]
    pairs = zip(received["topic"].tolist(), received["user"].tolist(), strict=True)
    assert dict(zip(pairs, received["delivered"].tolist(), strict=True)) == truth.received
    compare_decisions(network, case, truth)


def compare_decisions(network: Network, case: Case, truth: oracle.Network) -> None:
    table, period = network.tables()["decisions/offloading"], network.setting.offloading.parameters.period
    decided = [row for row in zip(table["time"], table["churn"], table["messages"], strict=True) if row[0] is not None]
    assert decided == [(time, churn, told) for time, _, churn, told in truth.choices]
    for number, start in enumerate(table["start"]):
        found = truth.measured(start, start + period / 2)
        subscribers, satisfied, share = found[0] if found else (0, 0, 0.0)
        if (number + 1) * period > case.horizon:
            assert table["subscribers"][number] is None
        elif table["subscribers"][number] is not None or found:
            assert (table["subscribers"][number], table["satisfied"][number]) == (subscribers, satisfied)
            assert table["satisfaction"][number] == pytest.approx(share * subscribers)


@pytest.mark.parametrize(
    ("examples", "fixed", "causes"),
    [(100, {}, ("offloaded",)), (40, {"geometry": "chord", "join": "message"}, ("offloaded", "joining"))],
)
def test_simulator_and_oracle_agree_on_everything(
    examples: int, fixed: dict[str, Any], causes: tuple[str, ...]
) -> None:
    tally: Counter[str] = Counter()

    @reproducible(examples)
    @given(cases(looks=[], **fixed), services())
    def run(case: Case, service: dict[str, Any]) -> None:
        truth = oracle.Network(expected(case, service), expected_world(case))
        compare(case, offloading(case, service, "events", trace=True), truth)
        by_channel, delivered = truth.by_channel, truth.delivered.keys()
        tally["split"] += bool(by_channel)
        tally["delivered by both"] += bool(by_channel & delivered) and bool(delivered - by_channel)
        tally["in flight by the channel"] += bool(truth.in_flight & by_channel)
        tally.update(set(truth.lost.values()))

    run()
    assert tally["split"] >= least(examples) / 2, tally
    assert min(tally[what] for what in ("delivered by both", "in flight by the channel", *causes)) >= least(5), tally


@reproducible(80)
@given(cases(**NOTHING_CONTENDS), services())
def test_planes_agree_to_the_last_bit(case: Case, service: dict[str, Any]) -> None:
    one, other = (offloading(case, service, plane) for plane in ("events", "folded"))
    one.run()
    other.run()
    mine, others = tables(one), tables(other)
    assert [name for name in mine if mine[name] != others[name]] == []


def reconfigured(case: Case, service: dict[str, Any], process: dict[str, Any], plane: str, **more: Any) -> Network:
    """Brokers change places again and again, while topics are offloaded and taken back."""
    given = {"threshold": 1.0, "constants": PAYS, **process}
    faults = tiny.dead(given.pop("manager_dead"), case.brokers)
    parameters = ProcessParameters().model_copy(update=given)
    places = ReconfigurationSetting(Shuffle(2 + case.seed % 4), parameters, case.seed)
    return offloading(case, service, plane, reconfiguration=places, faults=faults, **more)


def test_nothing_is_lost_count_of_while_brokers_change_places_too() -> None:
    """Every run checks that what was due was delivered, lost or is on its way; planes agree where both are exact."""
    tally: Counter[str] = Counter()

    @reproducible(80)
    @given(cases(geometry="chord"), services(), processes())
    def run(case: Case, service: dict[str, Any], process: dict[str, Any]) -> None:
        network = reconfigured(case, service, process, "events")
        waited = waiting(network)
        network.run()
        if case.jitter == 0 and case.service[0] == "none":
            other = reconfigured(case, service, process, "folded")
            other.run()
            mine, others = tables(network), tables(other)
            assert [name for name in mine if mine[name] != others[name]] == []
        metrics = network.metrics()
        tally.update(
            {name: metrics[name] > 0 for name in ("reconfigurations", "lost_offloaded", "offload_churn", "handovers")}
        )
        tally.update({"waited": bool(waited), "moved": network.setting.join == "message"})

    run()
    assert min(tally.values()) >= least(10), tally


def test_simulator_and_oracle_agree_while_brokers_change_places_too() -> None:
    tally: Counter[str] = Counter()

    @reproducible(100)
    @given(cases(geometry="chord", join="instant", looks=[]), services(), processes())
    def run(case: Case, service: dict[str, Any], process: dict[str, Any]) -> None:
        shuffle = Shuffle(2 + case.seed % 4)

        def choose(number: int, node_of: list[int]) -> list[int]:
            problem = SimpleNamespace(key=subkey(case.seed, number), node_of=np.array(node_of))
            return shuffle.reconfigure(problem).node_of.tolist()

        places = places_oracle.Process(
            process["period"], choose, 0.3, PAYS, process["timeout"], process["manager_dead"]
        )
        truth = places_oracle.Network(expected(case, service), expected_world(case), places)
        compare(case, reconfigured(case, service, process, "events", trace=True), truth, places_oracle.metrics)
        late = [time for time, *_ in truth.choices if time % service["period"]]
        tally.update({"moves": len(truth.moves), "by the channel": len(truth.by_channel), "late": len(late)})

    run()
    assert min(tally.values()) >= least(20), tally


def waiting(network: Network) -> list[float]:
    """Fills with the times at which a decision had to wait; none may fall while brokers change places."""
    times: list[float] = []
    protocol, service = network._protocol, network.offloading
    when_over, decide = protocol.when_over, service._decide

    def decided() -> None:
        assert not protocol.running
        decide()

    protocol.when_over = lambda then: (times.append(network.clock.now), when_over(then))
    service._decide = decided
    return times


# -- stories; nodes 0 ── 1 ── 2 ── 3, root 1, every hop takes 1 s, users at their brokers for good


class Keep:
    """A policy that keeps the same topics always, or other given ones at each decision, and remembers what it was asked."""

    objective = "satisfied"

    def __init__(self, *topics: int, then: Sequence[Sequence[int]] = ()) -> None:
        self.choices = [topics, *then]
        self.asked: list[tuple[OffloadingProblem, Decision | None]] = []

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        self.asked.append((problem, previous))
        return Decision(np.array(self.choices[min(len(self.asked), len(self.choices)) - 1], np.int32))


def line(
    wants: Sequence[set[int]],
    publications: Iterable[tuple[float, int]],
    policy: Any,
    hosts: Sequence[int] = (0, 2, 3),
    events: Iterable[tuple[float, int, int, int]] = (),
    horizon: float = 30.0,
    setting: dict[str, Any] | None = None,
    **service: Any,
) -> Network:
    """Publications (time, topic) come from the first user."""
    topics = 1 + max(topic for topics_of in wants for topic in topics_of)
    world = tiny.workload(
        wants, [(time, topic, 0, 1) for time, topic in sorted(publications)], events, topics=topics, horizon=horizon
    )
    chosen = {"capacity": 1e6, "period": 10.0, "delivery_probability": 1.0, "extra_delay": 0.5, **service}
    overlay = tiny.graph([(0, 1), (1, 2), (2, 3)], [1] * topics)
    offloaded = OffloadingSetting(policy, OffloadingParameters(**chosen), KEY)
    given = {"trace": False, "subscribers": True, "offloading": offloaded, **(setting or {})}
    return tiny.network(world, overlay, hosts, **given)


def test_what_is_not_kept_goes_straight_from_the_root_and_by_no_messages() -> None:
    """A publication takes 1 s to its root; from there 1 s to broker 2 and 2 s to broker 3 by the tree, 1.5 s to each by the channel."""
    wants = [set(), {0}, {0}]
    for keeps, delays, messages in (((0,), [2.0, 3.0], 2), ((), [2.5, 2.5], 0)):
        network = line(wants, [(5.0, 0), (15.0, 0)], Keep(*keeps), setting={"warm_up": 12.0})
        metrics = run(network)
        assert (metrics["due"], metrics["delivered"], metrics["lost"]) == (2, 2, 0)
        assert metrics["notification_delay"] == pytest.approx(sum(delays) / 2)
        assert (metrics["notification_overhead"], metrics["uplink_messages"]) == (messages, 1)
        assert metrics["best_effort_deliveries"] == (0 if keeps else 2)
        assert metrics["tree_delay"] == (1.5 if keeps else None)
        assert network.tables()["subscribers"]["delivered"].tolist() == [2, 2]


def test_the_channel_loses_what_it_does_not_deliver_and_that_satisfies_nobody() -> None:
    times = [(time + 0.5, 0) for time in range(30)]
    metrics = run(line([set(), {0}, {0}], times, Keep(), delivery_probability=0.0, tau=3))
    # what left its root, a second later, before the first decision at 10 s went by the tree: nine publications; the last of 30 is on
    # its way to the root
    assert (metrics["due"], metrics["lost_offloaded"], metrics["delivered"]) == (2 * 30, 2 * 20, 2 * 9)
    assert metrics["satisfied_subscribers"] == pytest.approx(2 / 3)
    some = run(line([set(), {0}, {0}], times, Keep(), delivery_probability=0.5))
    assert 10 < some["lost_offloaded"] < 30
    assert some["lost_offloaded"] + some["best_effort_deliveries"] + some["in_flight"] == 42


def test_a_topic_that_changes_sides_costs_a_message_for_each_broker_that_wants_it_and_no_join() -> None:
    network = line([set(), {0, 1}, {0}], [(5.0, 0), (5.0, 1)], Keep(0, 1, then=[(0,), (1,), (0, 1)]), horizon=50.0)
    metrics = run(network)
    table = network.tables()["decisions/offloading"]
    assert (table["churn"], table["messages"]) == ([None, 0, 1, 2, 1], [None, 0, 1, 3, 2])
    assert (metrics["offload_churn"], metrics["offload_messages"], metrics["subscription_overhead"]) == (4, 6, 0)
    assert table["time"] == [None, 10.0, 20.0, 30.0, 40.0]


def test_who_begins_to_want_an_offloaded_topic_joins_no_tree_until_it_is_kept() -> None:
    events = [(15.0, 1, 0, +1), (16.0, 2, 0, +1), (17.0, 2, 0, -1)]
    publications = [(2.0, 1), (15.5, 0), (16.5, 0), (25.0, 0)]
    network = line([set(), {1}, {1}], publications, Keep(1, then=[(0, 1)]), events=events)
    metrics = run(network)
    assert metrics["broker_subscription_changes"] == 3
    assert metrics["subscription_overhead"] == 0
    assert (metrics["best_effort_deliveries"], metrics["delivered"]) == (2 + 1, 2 + 2 + 1 + 1)
    assert network.setting.overlay.tree(0, 1).nodes.tolist() == [1, 2]


def test_an_answer_from_before_a_topic_changed_sides_changes_nothing() -> None:
    """Broker 3 asks to join at 9 s and has its answer at 13 s; from 10 s to 20 s the topic is offloaded."""
    publications = [(2.0, 0), (12.5, 0), (25.0, 0)]
    network = line(
        [set(), {0}, set()], publications, Keep(then=[(0,)]), events=[(9.0, 2, 0, +1)], setting={"join": "message"}
    )
    metrics = run(network)
    assert (metrics["subscription_overhead"], metrics["lost_joining"]) == (4, 0)
    assert (metrics["best_effort_deliveries"], metrics["delivered"]) == (2, 1 + 2 + 2)
    assert network.setting.overlay.tree(0, 1).nodes.tolist() == [1, 2, 3]


def test_a_decision_is_on_what_was_seen_and_on_who_wants_what_by_then() -> None:
    policy = Keep(0)
    publications = [*[(1.0 + n, 0) for n in range(4)], (3.0, 1), *[(11.0 + n, 0) for n in range(8)]]
    network = line(
        [set(), {0}, {0, 1}], publications, policy, events=[(15.0, 1, 1, +1)], capacity="90%", smoothing=0.25
    )
    run(network)
    (first, nothing), (second, former) = policy.asked
    assert (first.event_rate.tolist(), first.cost.tolist(), first.capacity) == ([4, 1], [8.0, 1.0], 8.1)
    assert (second.event_rate.tolist(), second.scale) == ([5000, 750], 1000)
    assert second.cost.tolist() == [10.0, 1.5]
    assert second.capacity == pytest.approx(10.35)
    assert nothing is None
    assert former.topics.tolist() == [0]


def test_each_broker_decides_on_its_own_users_and_share() -> None:
    """Broker 2 hosts one user with topic 0, broker 3 two with both; each may spend half of what its users would take."""
    wants = [set(), {0}, {0, 1}, {0, 1}]
    publications = [(time, topic) for start in (0.0, 10.0, 20.0) for time, topic in ((start + 1, 0), (start + 2, 1))]
    policy = Keep()
    network = line(wants, publications, policy, (0, 2, 3, 3), scope="broker", capacity="50%")
    metrics = run(network)
    first, second, third = (problem for problem, _ in policy.asked[:3])
    assert (first.subscribers, second.subscribers, third.subscribers) == (1, 1, 2)
    assert (second.cost.tolist(), second.capacity) == ([1.0, 0.0], 0.5)
    assert (third.cost.tolist(), third.capacity) == ([2.0, 2.0], 2.0)
    assert metrics["offload_churn"] == metrics["offload_messages"] == 3
    assert metrics["backend_capacity"] == 2.5


def test_users_of_a_broker_that_is_down_are_in_no_decision_of_a_broker() -> None:
    policy = Keep(0)
    outages = resolve_faults([Outage(5.0, math.inf, 2)], 4, 30.0)
    wants = [set(), {0}, {0}]
    network = line(wants, [(1.0, 0), (11.0, 0)], policy, scope="broker", capacity=3.0, setting={"faults": outages})
    network.run()
    assert [problem.subscribers for problem, _ in policy.asked] == [1, 1] * 2  # brokers 0 and 3, in two periods
    assert network.metrics()["backend_capacity"] == 6.0


def steady(policy: Any, **more: Any) -> Network:
    """Topics 0 to 5, published on 1, 2, 4, 8, 1 and 3 times a period, always the same; every user wants some of them."""
    rng = np.random.default_rng(3)
    wants = [set(), *({int(t) for t in rng.choice(6, rng.integers(1, 5), replace=False)} for _ in range(30))]
    rates = [1, 2, 4, 8, 1, 3]
    publications = [
        (10.0 * period + 1 + 5 * n / rate, topic)
        for period in range(4)
        for topic, rate in enumerate(rates)
        for n in range(rate)
    ]
    hosts = [0, *rng.integers(0, 4, 30).tolist()]
    return line(wants, publications, policy, hosts, horizon=40.0, delivery_probability=0.0, **more)


@pytest.mark.parametrize("name", ["b3m", "fb3m", "loudest"])
@pytest.mark.parametrize("tau", [2, 5, 100])
def test_what_the_solver_promises_is_what_users_get_where_rates_stay_the_same(name: str, tau: float) -> None:
    found = plugins.load("offloading", name)
    policy = found(found.Parameters())
    network = steady(policy, tau=tau, capacity="40%")
    run(network)
    table, users = network.tables()["decisions/offloading"], network.users.interests.all()
    problem = OffloadingProblem.of(users.indptr, users.indices, [1, 2, 4, 8, 1, 3], 0.0, tau)
    problem = problem.with_capacity(0.4 * problem.cost.sum())
    promised = outcome(problem, policy.decide(problem).topics)
    assert 0 < promised.total < 30
    assert table["subscribers"] == [30] * 4
    assert table["satisfied"] == [30, *[promised.satisfied] * 3]
    assert table["satisfaction"] == pytest.approx([30, *[promised.total] * 3])
    assert table["cost"][1:] == [promised.cost] * 3
    assert table["value"][1:] == [promised.value_of(policy.objective)] * 3
    assert all(value <= bound for value, bound in zip(table["value"][1:], table["bound"][1:], strict=True))


def test_with_all_the_capacity_everything_is_as_if_nothing_were_offloaded() -> None:
    found = plugins.load("offloading", "popular")
    everything, unlimited = steady(found(found.Parameters()), capacity="100%"), steady(None)
    without = steady(None, setting={"offloading": None})
    metrics, measured, plain = run(everything), run(unlimited), run(without)
    assert metrics["offload_messages"] == metrics["best_effort_deliveries"] == 0
    assert (metrics["satisfied_subscribers"], measured["satisfied_subscribers"]) == (30.0, 30.0)
    assert (metrics["backend_load"], measured["backend_load"]) == (metrics["backend_capacity"],) * 2
    assert measured["backend_capacity"] is None
    told = {"satisfied_subscribers", "satisfaction", "backend_load", "backend_capacity", "approximation_ratio"}
    assert {name for name in plain if metrics[name] != plain[name]} == told
    assert {name for name in plain if measured[name] != plain[name]} < told
    assert {name for name in plain if plain[name] is None} >= told
    columns = ("decisions", "backend_load_sum", "periods", "satisfied_subscribers_sum", "satisfaction_sum")
    skipped = {f"timeseries/{name}" for name in columns} | {f"metric {name}" for name in told}
    mine, others = tables(everything), tables(without)
    decided = {name for name in mine if name.startswith("decisions/offloading/")}
    assert {name for name in mine.keys() - decided if mine[name] != others[name]} <= skipped


@pytest.mark.parametrize("tau", [1000, 1000.5])
def test_all_the_capacity_is_enough_for_all_topics_however_fractions_are_rounded(tau: float) -> None:
    """Rates are smoothed to fractions, whose sum in the policy's order may exceed the exact one by a bit or two."""
    rng = np.random.default_rng(4)
    wants = [set(), *({int(t) for t in rng.choice(12, 7, replace=False)} for _ in range(30))]
    published = sorted((float(time), int(rng.integers(12))) for time in rng.uniform(0, 80, 400))
    for name in ("popular", "b3m"):
        found = plugins.load("offloading", name)
        hosts = [0, *rng.integers(0, 4, 30).tolist()]
        network = line(wants, published, found(found.Parameters()), hosts, horizon=80.0, tau=tau, capacity="100%")
        metrics = run(network)
        assert network.tables()["decisions/offloading"]["topics"][1:] == [12] * 7
        assert metrics["offload_messages"] == 0


@pytest.mark.parametrize(("policy", "delivered"), [(None, 4 + 2), (Keep(), 4)])
def test_what_would_leave_its_root_at_the_very_end_has_not_left_it(policy: Any, delivered: int) -> None:
    """Published at 1, 5, 11 and 19 s, a hop from the root; the run ends at 20 s. From 10 s on nothing is kept, where that is asked."""
    published = [(1.0, 0), (5.0, 0), (11.0, 0), (19.0, 0)]
    network = line([set(), {0}, {0}], published, policy, horizon=20.0, tau=2, delivery_probability=0.0)
    metrics = run(network)
    assert (metrics["due"], metrics["delivered"], metrics["in_flight"]) == (8, delivered, 2)
    assert network.tables()["decisions/offloading"]["satisfied"] == [2, 0]


def test_a_decision_that_waits_for_a_protocol_that_ends_then_is_as_if_on_time() -> None:
    """Published at 2 s, and with broker 3 at 5 s: from 2.5 s to then brokers change places. Decisions fall every 2.5 s."""
    policy, parameters = Keep(0, 1), {"period": 2.5, "threshold": 1.0, "constants": PAYS}
    swap = ReconfigurationSetting(To(3, 1, 2, 0), ProcessParameters().model_copy(update=parameters), 1)
    published = [(2.0, 0), *[(6.0, 1)] * 3]
    setting = {"reconfiguration": swap, "trace": False}
    network = line([set(), {0}, {0, 1}], published, policy, horizon=10.0, period=2.5, smoothing=1.0, setting=setting)
    run(network)
    assert network.tables()["decisions/configuration"]["time"].tolist()[4:] == [5.0] * 2
    assert network.tables()["decisions/offloading"]["time"] == [None, 2.5, 5.0, 7.5]
    assert [problem.event_rate.tolist() for problem, _ in policy.asked] == [[1, 0], [0, 0], [0, 3]]


def test_without_capacity_nothing_is_kept() -> None:
    found = plugins.load("offloading", "b3m")
    network = steady(found(found.Parameters()), capacity=0)
    metrics = run(network)
    assert network.tables()["decisions/offloading"]["satisfied"] == [30, 0, 0, 0]
    assert (metrics["backend_load"], metrics["backend_capacity"], metrics["approximation_ratio"]) == (0.0, 0.0, None)
    assert metrics["lost_offloaded"] == 3 * (metrics["due"] - metrics["delivered"]) / 3


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ((0, 0), "expected topics from 0 to 1, each once"),
        ((2,), "expected topics from 0 to 1, each once"),
        ((0, 1), "topics that cost 3 are more than the capacity, 2"),
    ],
)
def test_a_policy_that_decides_what_cannot_be_fails_the_run(topics: tuple[int, ...], message: str) -> None:
    network = line([set(), {0, 1}, {0}], [(5.0, 0), (5.0, 1)], Keep(*topics), capacity=2)
    with pytest.raises(BrokersimError, match=f"offloading policy Keep: {message}"):
        network.run()


# -- scenarios


def scenario(**offloading: Any) -> Scenario:
    return load_scenario({"network": {"brokers": 4}, "offloading": offloading}).base


WORLD = tiny.workload([{0, 1}, {0}, {1}], [(float(n), n % 2, n % 3, 1) for n in range(100)], topics=2, horizon=100.0)


@pytest.mark.parametrize("kind", plugins.names("offloading"))
def test_a_scenario_names_a_policy_and_gets_a_table_and_metrics(kind: str) -> None:
    record = simulate(scenario(kind=kind, capacity="50%", tau=3, period="20s"), WORLD, 0)
    table = record.tables["decisions/offloading"]
    assert table["start"] == [0.0, 20.0, 40.0, 60.0, 80.0]
    assert table["time"] == [None, 20.0, 40.0, 60.0, 80.0]
    assert 0 < record.metrics["backend_load"] <= record.metrics["backend_capacity"]
    assert 0 < record.metrics["approximation_ratio"] <= 1
    assert 1 < record.metrics["satisfied_subscribers"] < 3
    assert record.metrics["offload_messages"] > 0


def test_without_a_policy_satisfaction_is_measured_where_tau_says_what_satisfies() -> None:
    plain, measured = simulate(scenario(), WORLD, 0), simulate(scenario(kind="none", tau=3, period="20s"), WORLD, 0)
    assert plain.metrics["satisfied_subscribers"] is None
    assert "decisions/offloading" not in plain.tables
    assert measured.metrics["satisfied_subscribers"] == pytest.approx(3.0, abs=0.5)
    assert measured.metrics["backend_load"] == 40.0
    assert plain.tables["timeseries"].keys() == measured.tables["timeseries"].keys()


def test_the_shipped_scenario_compares_all_combinations_and_measures_all_alike() -> None:
    points = load_scenario(Path(__file__).resolve().parents[2] / "scenarios" / "combined.toml").points
    variants = [point.base for point in points]
    kinds = [(each.selection.kind, each.reconfiguration.kind, each.offloading.kind) for each in variants]
    policies = ("static", "similarity"), ("none", "dynatops-greedy"), ("none", "b3m", "fb3m")
    assert kinds == list(product(*policies))
    assert len({(each.offloading.parameters.tau, each.offloading.parameters.period) for each in variants}) == 1


def test_the_schema_says_capacities_as_files_do() -> None:
    tables = json_schema()["properties"]["offloading"]["oneOf"]
    assert {table["properties"].get("capacity", {}).get("default") for table in tables} == {None, "10%"}


def test_what_cannot_be_offloaded_is_refused() -> None:
    world = tiny.content([(0, {0: 1})], [(1.0, -1, 1, [1])])
    refused = r'offloading\.kind: "none" applies to topics, but a content workload has content \(allowed: "none", without tau\)'
    with pytest.raises(ScenarioError, match=refused):
        build(scenario(kind="none", tau=3), world, 0)
    assert build(scenario(), world, 0).offloading is None
    with pytest.raises(
        ScenarioError, match=r"offloading\.period: 1,000,000 periods at most, so 0.0001 s or more up to 100 s, found"
    ):
        build(scenario(kind="b3m", period="1us"), WORLD, 0)
    with pytest.raises(ScenarioError, match=r"offloading\.kind: unknown kind, did you mean 'b3m'\?"):
        scenario(kind="b3n")
    with pytest.raises(ScenarioError, match=r"offloading\.capacity: unknown key \(allowed: kind, tau, period\)"):
        scenario(kind="none", capacity="10%")
