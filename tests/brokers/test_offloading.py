"""Topics are offloaded while users publish, subscribe and move: the simulator against the slow one, and what it comes to."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import network as oracle
from oracles import reconfiguration as places_oracle
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
from test_folded import NOTHING_CONTENDS, tables
from test_reconfiguration import PAYS, Shuffle, processes

from sim.brokers.network import Network
from sim.brokers.offloading import OffloadingSetting
from sim.brokers.reconfiguration import ReconfigurationSetting
from sim.policies.offloading.problem import Decision, Problem
from sim.policies.offloading.process import OffloadingParameters
from sim.policies.reconfiguration.process import ProcessParameters
from sim.randomness import Streams, mix, uniform

KEY = 7


class Drawn:
    """A policy that keeps topics in an order drawn by key, as long as they fit; it remembers what it was asked."""

    objective = "satisfied"

    def __init__(self) -> None:
        self.asked: list[tuple[Problem, Decision | None]] = []

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
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
        return fitting(order, cost, chosen.capacity.of(math.fsum(cost)))

    def choose(number: int, rates: list[float], wants: list[set[int]], hosts: list[int]) -> set[tuple[int, int]]:
        if chosen.scope == "network":
            kept = kept_for(mix(KEY, number, 0), rates, wants)
            return {(topic, broker) for topic in kept for broker in range(case.brokers)}
        return {
            (topic, broker)
            for broker in set(hosts)
            for topic in kept_for(
                mix(KEY, number, broker + 1),
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
    finish = network.recorder.finish
    network.recorder.finish = lambda flight, *sent: (finished.append(flight), finish(flight, *sent))
    network.run()
    compare_messages(network, finished, truth)
    found = network.metrics() | dict.fromkeys(NOT_COMPARED)
    compare_metrics(found, metrics(truth, case.warm_up, case.horizon))
    compare_windows(network.recorder.timeseries(), truth, metrics)
    compare_delays(network, truth)
    compare_brokers(network, case, truth)
    received = network.subscribers()
    pairs = zip(received["topic"].tolist(), received["user"].tolist(), strict=True)
    assert dict(zip(pairs, received["delivered"].tolist(), strict=True)) == truth.received
    compare_decisions(network, case, truth)


def compare_decisions(network: Network, case: Case, truth: oracle.Network) -> None:
    table, period = network.offloadings(), network.setting.offloading.parameters.period
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
        compare(case, offloading(case, service, "messages", trace=True), truth)
        by_channel, delivered = truth.by_channel, truth.delivered.keys()
        tally["split"] += bool(by_channel)
        tally["delivered by both"] += bool(by_channel & delivered) and bool(delivered - by_channel)
        tally["in flight by the channel"] += bool(truth.in_flight & by_channel)
        tally.update(set(truth.lost.values()))

    run()
    assert tally["split"] >= examples / 2, tally
    assert min(tally[what] for what in ("delivered by both", "in flight by the channel", *causes)) >= 5, tally


def all_tables(network: Network) -> dict[str, bytes]:
    parts = {"moves": network.configurations(), "decisions": network.offloadings() or {}}
    return tables(network) | {
        name: repr({k: list(v) for k, v in part.items()}).encode() for name, part in parts.items()
    }


@reproducible(80)
@given(cases(**NOTHING_CONTENDS), services())
def test_planes_agree_to_the_last_bit(case: Case, service: dict[str, Any]) -> None:
    one, other = (offloading(case, service, plane) for plane in ("messages", "folded"))
    one.run()
    other.run()
    mine, others = all_tables(one), all_tables(other)
    assert [name for name in mine if mine[name] != others[name]] == []


def reconfigured(case: Case, service: dict[str, Any], process: dict[str, Any], plane: str, **more: Any) -> Network:
    """Brokers change places again and again, while topics are offloaded and taken back."""
    parameters = ProcessParameters().model_copy(update={"threshold": 1.0, "constants": PAYS, **process})
    places = ReconfigurationSetting(Shuffle(2 + case.seed % 4), parameters, case.seed)
    return offloading(case, service, plane, reconfiguration=places, **more)


def test_nothing_is_lost_count_of_while_brokers_change_places_too() -> None:
    """Every run checks that what was due was delivered, lost or is on its way; planes agree where both are exact."""
    tally: Counter[str] = Counter()

    @reproducible(60)
    @given(cases(geometry="chord"), services(), processes())
    def run(case: Case, service: dict[str, Any], process: dict[str, Any]) -> None:
        network = reconfigured(case, service, process, "messages")
        waited = waiting(network)
        network.run()
        if case.jitter == 0 and case.service[0] == "none":
            other = reconfigured(case, service, process, "folded")
            other.run()
            mine, others = all_tables(network), all_tables(other)
            assert [name for name in mine if mine[name] != others[name]] == []
        metrics = network.metrics()
        tally.update(
            {name: metrics[name] > 0 for name in ("reconfigurations", "lost_offloaded", "offload_churn", "handovers")}
        )
        tally.update({"waited": bool(waited), "moved": network.setting.join == "message"})

    run()
    assert min(tally.values()) >= 10, tally


def test_simulator_and_oracle_agree_while_brokers_change_places_too() -> None:
    tally: Counter[str] = Counter()

    @reproducible(40)
    @given(cases(geometry="chord", join="instant", looks=[]), services(), processes())
    def run(case: Case, service: dict[str, Any], process: dict[str, Any]) -> None:
        shuffle = Shuffle(2 + case.seed % 4)

        def choose(number: int, node_of: list[int]) -> list[int]:
            problem = SimpleNamespace(key=mix(case.seed, number), node_of=np.array(node_of))
            return shuffle.reconfigure(problem).node_of.tolist()

        places = places_oracle.Process(
            process["period"], choose, 0.3, PAYS, process["timeout"], process["manager_down"]
        )
        truth = places_oracle.Network(expected(case, service), expected_world(case), places)
        compare(case, reconfigured(case, service, process, "messages", trace=True), truth, places_oracle.metrics)
        late = [time for time, *_ in truth.choices if time % service["period"]]
        tally.update({"moves": len(truth.moves), "by the channel": len(truth.by_channel), "late": len(late)})

    run()
    assert min(tally.values()) >= 20, tally


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
