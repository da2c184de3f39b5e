"""Overload is reported: losses are counted, delays cover what was served, and saturated brokers are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

from sim.base.randomness import Streams
from sim.brokers.data.compiled.engine import CompiledEngine
from sim.brokers.fabric.saturation import saturated
from sim.brokers.fabric.stations import StationSetting
from sim.brokers.fabric.transmission import LinkSetting
from sim.brokers.network import Network, NetworkSetting


def desk(rate: float, horizon: float, seed: int = 1, **setting: Any) -> Network:
    """One broker, both publisher's and subscriber's, that serves one publication per second on average; `rate` arrive in one."""
    streams = Streams(seed)
    times = np.sort(streams.generator("arrivals").uniform(0.0, horizon, int(rate * horizon)))
    world = tiny.workload([{0}], [(time, 0, 0, 1) for time in times.tolist()], horizon=horizon)
    setting = {"service": "exponential", "service_time": 1.0, **setting}
    network = tiny.network(world, tiny.graph([], [0]), [0], trace=False, **setting)
    network.run()
    return network


@pytest.mark.parametrize("service", ["exponential", "deterministic"])
def test_at_twice_the_load_half_of_what_is_published_is_in_flight(service: str) -> None:
    metrics = desk(2.0, 2000.0, service=service).metrics()
    assert metrics["due"] == metrics["publications"] == 4000
    assert metrics["delivered"] + metrics["in_flight"] == 4000
    assert metrics["delivery_ratio"] == pytest.approx(0.5, abs=0.03)
    assert metrics["saturated_brokers"] == 1


SCALES = [10, pytest.param(1, marks=pytest.mark.long)]
"""The burst at a tenth of its size, and at its own."""


def burst(scale: int, horizon: float) -> Network:
    """150,000 publications in 1.5 s, evenly, to a broker that serves 20,000/s and has room for 65,536; or a fraction of all that."""
    times = (np.arange(150_000 // scale) * scale / 100_000).tolist()
    network = Network(
        NetworkSetting(
            overlay=tiny.graph([(0, 1)], [0]),
            node_of=np.arange(2, dtype=np.int32),
            hop_delay=np.array([[0.0, 1e-4], [1e-4, 0.0]]),
            jitter=0.0,
            policy=tiny.Scripted([0, 1]),
            horizon=horizon,
            stations=StationSetting("deterministic", scale / 20_000, queue=65_536 // scale),
            capacity=np.array([1e6, 1.0]),
        ),
        tiny.workload([set(), {0}], [(time, 0, 0, 1) for time in times], horizon=horizon),
        Streams(1),
    )
    network.run()
    return network


@pytest.mark.parametrize("scale", SCALES)
def test_a_burst_beyond_what_a_consumer_serves_is_late_by_its_queue_and_lost_beyond_it(scale: int) -> None:
    served = burst(scale, 8.0).metrics()
    assert served["lost_queue_full"] == pytest.approx(54_464 / scale, abs=2)
    assert served["delivered"] + served["lost_queue_full"] == 150_000 / scale
    assert served["notification_delay"] == pytest.approx(1.87, abs=0.005)
    assert served["notification_delay_max"] == pytest.approx(3.28, abs=0.005)
    assert served["arrival_delay"] == pytest.approx(1e-4, rel=0.01)
    assert served["saturated_brokers"] == 0


@pytest.mark.parametrize("scale", SCALES)
def test_what_waits_at_the_consumer_at_the_end_is_in_flight(scale: int) -> None:
    network = burst(scale, 2.0)
    cut, brokers = network.metrics(), network.tables()["brokers"]
    assert cut["in_flight"] == pytest.approx(55_536 / scale, abs=3)
    assert cut["delivered"] + cut["in_flight"] + cut["lost"] == cut["due"] == 150_000 / scale
    assert cut["saturated_brokers"] == 1
    assert brokers["saturated_since"] == [None, pytest.approx(1e-4, rel=0.01)]
    assert brokers["backlog"][1] == cut["in_flight"]


@pytest.mark.parametrize(
    ("rho", "messages", "share"),
    [
        (0.9, 1_000, 0.0),
        (0.9, 30_000, 0.0),
        (0.99, 1_000, 0.0),
        (0.99, 30_000, 0.0),
        (1.05, 30_000, 1.0),
        (2.0, 300, 1.0),
    ],
)
def test_m_m_1_is_saturated_above_a_utilisation_of_one_only(rho: float, messages: int, share: float) -> None:
    found = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        gaps, services = generator.exponential(1 / rho, messages), generator.exponential(1.0, messages)
        backlog = squares = 0.0  # by Lindley's recursion
        for gap, service in zip(gaps.tolist(), services.tolist(), strict=True):
            backlog = max(backlog - gap, 0.0)
            squares = squares + service**2 if backlog else service**2
            backlog += service
        found.append(saturated(backlog, squares, messages / rho))
    assert np.mean(found) == share


def test_a_full_queue_that_refuses_half_is_saturated_though_little_waits() -> None:
    refusing = desk(2.0, 1000.0, queue=2)
    assert refusing.tables()["brokers"]["backlog"][0] <= 3
    assert refusing.tables()["brokers"]["backlog_seconds"][0] > 900.0
    assert refusing.metrics()["saturated_brokers"] == 1
    assert desk(0.5, 1000.0, queue=2).metrics()["saturated_brokers"] == 0


def test_a_broker_is_saturated_since_it_was_last_idle() -> None:
    """2 s of service. Three publications until 2 s are done at 6 s; from 100 s on one comes every second, of which 49 are done before
    the end."""
    times = [0.0, 1.0, 2.0, *np.arange(100.0, 200.0).tolist()]
    world = tiny.workload([{0}], [(time, 0, 0, 1) for time in times], horizon=200.0)
    network = tiny.network(
        world, tiny.graph([], [0]), [0], horizon=200.0, trace=False, service="deterministic", service_time=2.0
    )
    network.run()
    brokers = network.tables()["brokers"]
    assert brokers["saturated_since"] == [100.0]
    assert brokers["backlog"] == [51]
    assert brokers["backlog_seconds"] == [100.0]


def test_a_storm_of_joins_saturates_a_broker_and_holds_publications_up() -> None:
    """0 ── 1: broker 1 asks 0, the root, for trees; control messages go ahead of publications, of which hardly any get through."""
    joins = [(0.1 * number, 0, number % 50, 1 if number % 100 < 50 else -1) for number in range(4000)]
    publications = [(0.5 * number, 50, 1, 1) for number in range(800)]
    world = tiny.workload([set(), {50}], publications, joins, topics=51, horizon=400.0)
    network = tiny.network(
        world,
        tiny.graph([(0, 1)], [0] * 51),
        [1, 0],
        horizon=400.0,
        join="message",
        service="deterministic",
        service_time=0.11,
        trace=False,
    )
    network.run()
    metrics, brokers = network.metrics(), network.tables()["brokers"]
    assert brokers["utilisation"][0] > 0.99
    assert metrics["saturated_brokers"] >= 1
    assert metrics["in_flight"] > 700
    assert metrics["delivery_ratio"] < 0.1


@pytest.mark.parametrize(
    "setting", [{"links": LinkSetting(interface=8.0)}, {"links": LinkSetting(loss=0.5)}, {"service": "exponential"}]
)
def test_auto_is_compiled_where_something_contends(setting: dict[str, Any]) -> None:
    assert isinstance(desk(0.5, 5.0, **setting).engine, CompiledEngine)
