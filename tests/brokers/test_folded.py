"""The folded data plane gives exactly the results of the plane that makes every hop an event, or refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from depth import least, tried
from hypothesis import given
from test_against_oracle import Case, built, cases, reproducible
from tiny import tables

from sim.base.errors import ScenarioError
from sim.brokers.data.folded import FoldedEngine
from sim.brokers.network import Network
from sim.brokers.statistics import record_kernels as rk
from sim.brokers.statistics.records import Statistics, Way
from sim.scenario.model import Scenario
from sim.scenario.reader import load_scenario
from sim.simulation import build, prepare_workload

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
NOTHING_CONTENDS = {"jitter": 0.0, "service": ("none", 0.0), "queue": None, "dissemination": "tree"}
Deliveries = dict[tuple[float, int, int], list[tuple[int, bytes]]]


@contextmanager
def deliveries() -> Iterator[Deliveries]:
    """Run kernels as plain Python meanwhile; yields all arrivals at brokers, by publication time, window and size."""
    found: Deliveries = {}
    record = rk.record

    def spy(way: Way, statistics: Statistics) -> None:
        rows = zip(way.brokers.tolist(), way.due_users.tolist(), way.served[: len(way.brokers)].tolist(), strict=True)
        arrived = [(broker, np.float64(time).tobytes()) for broker, users, time in rows if users and time == time]
        found.setdefault((way.published, way.window, way.size), []).extend(sorted(arrived))
        record(way, statistics)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rk, "record", spy)
        patch.setattr(rk, "record_all", rk.record_all.py_func)
        patch.setattr(rk, "fold_all", rk.fold_all.py_func)
        yield found
    for arrived in found.values():
        arrived.sort()  # publications of one moment may be entered in any order


def ran(case: Case, plane: str) -> Network:
    network = built(case, plane=plane, subscribers=True)
    network.run()
    return network


def test_every_delivery_of_random_networks_is_the_same_to_the_last_bit() -> None:
    tally: Counter[str] = Counter()

    @reproducible(250)
    @given(cases(**NOTHING_CONTENDS))
    def run(case: Case) -> None:
        with deliveries() as hop_by_hop:
            ran(case, "events")
        with deliveries() as folded:
            network = ran(case, "folded")
        assert isinstance(network.engine, FoldedEngine)
        assert folded == hop_by_hop
        metrics = network.metrics()
        tally["deliveries"] += sum(map(len, folded.values()))
        tally["handovers"] += metrics["handovers"] or 0
        tally["tree changes"] += metrics["broker_subscription_changes"] or 0
        tally["lost while joining"] += metrics["lost_joining"] or 0
        tally["in flight"] += metrics["in_flight"] or 0

    run()
    assert tally["deliveries"] >= least(10_000), tally
    assert min(tally[what] for what in ("handovers", "tree changes", "lost while joining", "in flight")) >= tried(
        100
    ), tally


@reproducible(150)
@given(cases(**NOTHING_CONTENDS))
def test_all_tables_and_metrics_are_the_same_bytes(case: Case) -> None:
    if case.seed % 3 == 0:  # a run that is long beside the gaps between changes
        case = replace(case, horizon=100 * case.horizon, window=100.0)
    one, other = tables(ran(case, "events")), tables(ran(case, "folded"))
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.parametrize("name", ["quickstart.toml"])
def test_shipped_scenarios_come_to_the_same_bytes(name: str) -> None:
    for variant, scenario in load_scenario(SCENARIOS / name).variants.items():
        workload = prepare_workload(scenario, 0, None)
        both = []
        for plane in ("events", "folded"):
            network = build(with_plane(scenario, plane), workload, 0)
            network.run()
            both.append(tables(network))
        assert both[0] == both[1], variant


def with_plane(scenario: Scenario, plane: str) -> Scenario:
    return scenario.model_copy(update={"network": scenario.network.model_copy(update={"data_plane": plane})})


@pytest.mark.parametrize("watched", [False, True])
def test_publications_between_two_changes_are_folded_together(watched: bool) -> None:
    """Three changes in ten seconds, a thousand publications: four pieces, whether anybody is told the progress or not."""
    world = tiny.workload(
        [{0}, {0}],
        [(0.01 * n, 0, 0, 1) for n in range(1000)],
        [(2.5, 1, 0, -1), (5.5, 1, 0, +1), (7.5, 1, 0, -1)],
    )
    network = tiny.network(world, tiny.graph([(0, 1), (1, 2)], [1]), [0, 2], trace=False)
    pieces: list[int] = []
    told: list[float] = []
    publish = network.engine.publish
    network.engine.publish = lambda first, brokers: (pieces.append(len(brokers)), publish(first, brokers))
    network.run(told.append if watched else None)
    assert pieces == [250, 300, 200, 250]
    assert told == ([step / 100 for step in range(1, 101)] if watched else [])
    # at broker 0 what was published before 8 s; at broker 2 what left the root, a second later, while somebody wanted it
    assert network.metrics()["delivered"] == 800 + 150 + 200


@reproducible(50)
@given(cases())
def test_a_run_that_is_watched_comes_to_the_same_bytes(case: Case) -> None:
    networks = built(case, subscribers=True), built(case, subscribers=True)
    networks[0].run()
    networks[1].run(lambda share: None)
    assert tables(networks[0]) == tables(networks[1])


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"jitter": 0.25}, "jitter 0.25"),
        ({"service": "exponential", "service_time": 0.1}, 'brokers.service = "exponential"'),
        ({"trace": True}, "trace = true"),
    ],
)
def test_it_refuses_what_it_cannot_do_exactly(setting: dict[str, Any], reason: str) -> None:
    world, overlay = tiny.workload([{0}]), tiny.graph([(0, 1)], [0])
    calm = {"trace": False, **setting}
    with pytest.raises(
        ScenarioError, match=rf'network\.data_plane: "folded" .* not exact with {reason} \(allowed: "events'
    ):
        tiny.network(world, overlay, [0], plane="folded", **calm)
    assert not isinstance(tiny.network(world, overlay, [0], **calm).engine, FoldedEngine)
    assert isinstance(tiny.network(world, overlay, [0], trace=False).engine, FoldedEngine)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"brokers": {"service": {"kind": "deterministic", "time": 1}}}, 'brokers.service = "deterministic"'),
        ({"network": {"latency": {"kind": "unit"}, "links": {"interface": "1Mb/s"}}}, "network.links.interface"),
        ({"network": {"latency": {"kind": "distance", "jitter": 0.25}}}, "jitter 0.25"),
        ({"network": {"geometry": {"kind": "full-mesh", "dissemination": "flood"}}}, "an overlay that floods"),
        ({"network": {"delivery": {"guarantee": "exactly-once"}}}, 'network.delivery.guarantee = "exactly-once"'),
        ({"network": {"links": {"loss": 0.1}}, "trace": 0.5}, "network.links.loss and trace = 0.5"),
        ({"faults": [{"kind": "crash", "brokers": 1, "at": 1}]}, "faults"),
    ],
)
def test_what_it_cannot_do_is_refused_when_the_scenario_is_read(more: dict[str, Any], reason: str) -> None:
    asked = {**more, "network": {"brokers": 4, **more.get("network", {}), "data_plane": "folded"}}
    sentence = (
        f'scenario: network.data_plane: "folded" does not simulate single hops and is not exact with {reason} '
        '(allowed: "events", "compiled", "auto")'
    )
    with pytest.raises(ScenarioError) as one:
        load_scenario(asked)
    assert str(one.value) == sentence
    with pytest.raises(ScenarioError) as swept:  # and where a sweep asks for it
        load_scenario(
            {**more, "network": {"brokers": 4, **more.get("network", {})}},
            ['sweep.network.data_plane = ["folded"]'],
        )
    assert str(swept.value).endswith(sentence.partition("data_plane: ")[2])
    load_scenario({**asked, "network": {**asked["network"], "data_plane": "auto"}})


def test_a_dead_manager_does_not_keep_it_from_folding() -> None:
    asked = {"faults": [{"kind": "manager", "at": 1}], "network": {"brokers": 4, "data_plane": "folded"}}
    assert load_scenario(asked).points[0].base.network.data_plane == "folded"
