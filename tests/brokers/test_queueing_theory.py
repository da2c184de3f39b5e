"""Brokers that take time, against queueing theory: one server, first come first served, Poisson arrivals.

Each figure is estimated by replications after a warm-up; theory's value must lie in their 95 % interval (Student's t). Seeds are
fixed: with other draws, one interval in twenty misses. Service takes 1 s on average, so that the rate λ is the utilisation ρ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tiny import Scripted, graph, with_stations, workload

from sim.base.randomness import Streams
from sim.brokers.network import Network, NetworkSetting

REPLICATIONS, WARM_UP, HORIZON = 10, 1000.0, 13_000.0
SERVICE, HOP = 1.0, 0.25  # s


@dataclass(frozen=True)
class Outcome:
    """What one run came to. Window 0 is the warm-up, window 1 all that counts."""

    published: int
    metrics: dict[str, Any]
    brokers: dict[str, Any]
    delays: dict[str, Any]


def run(
    rate: float, replication: int = 0, brokers: int = 1, last: float = HORIZON, seed: int = 1, **setting: Any
) -> Outcome:
    """Publications enter at broker 0 up to `last`, go along a line of brokers, and are wanted at its end, the root."""
    streams = Streams(seed, replication)
    generator = streams.generator("arrivals")
    times = np.sort(generator.uniform(0.0, last, generator.poisson(rate * last)))
    end = brokers - 1
    world = workload([[], [0]], [(time, 0, 0, 1) for time in times.tolist()], horizon=HORIZON)
    setting = {"service": "exponential", "service_time": SERVICE, "warm_up": WARM_UP, "window": HORIZON, **setting}
    network = Network(
        NetworkSetting(
            overlay=graph([(i, i + 1) for i in range(end)], [end]),
            node_of=np.arange(brokers, dtype=np.int32),
            hop_delay=np.where(np.eye(brokers, dtype=bool), 0.0, HOP),
            jitter=0.0,
            policy=Scripted([0, end]),
            horizon=HORIZON,
            **with_stations(setting),
        ),
        world,
        streams,
    )
    network.run()
    return Outcome(len(times), network.metrics(), network.tables()["brokers"], network.recorder.delays())


@cache
def replications(rate: float, service: str = "exponential", queue: int | None = None) -> list[Outcome]:
    """A single broker, several times."""
    return [run(rate, replication, service=service, queue=queue) for replication in range(REPLICATIONS)]


def assert_agrees(values: Iterable[float], theory: float, within: float = 0.1) -> None:
    """Theory's value lies in the 95 % interval of the mean, which is no wider than ± `within` of it."""
    sample = list(values)
    half = stats.t.ppf(0.975, len(sample) - 1) * stats.sem(sample)
    assert abs(np.mean(sample) - theory) <= half, f"{np.mean(sample)} ± {half}, expected {theory}"
    assert half <= within * theory


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_mean_wait_in_m_m_1(rho: float) -> None:
    assert_agrees((r.metrics["queue_wait"] for r in replications(rho)), rho / (1 - rho))


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_mean_wait_in_m_d_1_is_half_of_that(rho: float) -> None:
    assert_agrees((r.metrics["queue_wait"] for r in replications(rho, "deterministic")), rho / (2 * (1 - rho)))


@pytest.mark.parametrize("service", ["exponential", "deterministic"])
@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_utilisation_is_the_offered_load(rho: float, service: str) -> None:
    assert_agrees((r.metrics["utilisation"] for r in replications(rho, service)), rho)


@pytest.mark.parametrize("quantile", [50, 95, 99])
def test_sojourn_in_m_m_1_is_exponential(quantile: int) -> None:
    """Wait and service together: P(T > t) = exp(-(1 - ρ) t), with quantiles from bins 1 % wide."""
    rho = 0.5
    theory = -math.log(1 - quantile / 100) / (1 - rho)
    values = [r.metrics[f"notification_delay_p{quantile}"] for r in replications(rho)]
    assert np.mean(values) == pytest.approx(theory, rel=0.05)


def test_delay_histogram_holds_the_whole_distribution_of_the_sojourn() -> None:
    rho, below, count = 0.5, np.zeros(5), 0
    points = np.array([0.25, 1.0, 2.0, 4.0, 8.0])
    for delays in (r.delays for r in replications(rho)):
        kept = delays["window"] == 1
        below += (delays["brokers"][kept] * (delays["upper"][kept] <= points[:, np.newaxis])).sum(axis=1)
        count += delays["brokers"][kept].sum()
    assert count > 50_000
    assert below / count == pytest.approx(1 - np.exp(-(1 - rho) * points), abs=0.012)


@pytest.mark.parametrize("service", ["exponential", "deterministic"])
def test_littles_law_holds_exactly_where_the_queue_begins_and_ends_empty(service: str) -> None:
    """∫ waiting dt = Σ waits: the time-average number of those that wait is their rate times their mean wait."""
    outcome = run(0.9, last=0.9 * HORIZON, service=service, warm_up=0.0)
    broker = outcome.brokers
    served = broker["served"][0]
    assert served == outcome.published > 10_000
    assert broker["queue_wait"][0] > 2.0
    assert broker["queue_length"][0] == pytest.approx(served / HORIZON * broker["queue_wait"][0], rel=1e-9)
    if service == "deterministic":
        assert broker["utilisation"][0] == pytest.approx(served * SERVICE / HORIZON, rel=1e-9)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_littles_law_holds_roughly_where_a_warm_up_is_cut_off(rho: float) -> None:
    for broker in (r.brokers for r in replications(rho)):
        rate = broker["served"][0] / (HORIZON - WARM_UP)
        assert broker["queue_length"][0] == pytest.approx(rate * broker["queue_wait"][0], rel=0.02)


@pytest.mark.parametrize(("rho", "queue"), [(0.8, 2), (0.8, 0), (1.25, 4)])
def test_losses_in_m_m_1_k(rho: float, queue: int) -> None:
    """K = queue + 1 messages have room: the probability of K, (1 - ρ) ρ^K / (1 - ρ^(K + 1)), is that of a loss (PASTA)."""
    capacity = queue + 1
    theory = (1 - rho) * rho**capacity / (1 - rho ** (capacity + 1))
    measured = [r.metrics for r in replications(rho, queue=queue)]
    assert_agrees((m["publications_dropped"] / m["publications"] for m in measured), theory)


def test_losses_without_a_queue_depend_on_the_mean_service_time_only() -> None:
    """Erlang's loss formula for one server, ρ / (1 + ρ), holds for any distribution of service times."""
    measured = [r.metrics for r in replications(0.8, "deterministic", queue=0)]
    assert_agrees((m["publications_dropped"] / m["publications"] for m in measured), 0.8 / 1.8)


def test_two_brokers_in_a_line_wait_as_if_apart() -> None:
    """Burke: departures of M/M/1 are Poisson, so that the second broker is M/M/1 too, and independent."""
    rho = 0.5
    outcomes = [run(rho, replication, brokers=2) for replication in range(REPLICATIONS)]
    for broker in (0, 1):
        assert_agrees((r.brokers["queue_wait"][broker] for r in outcomes), rho / (1 - rho))
        assert_agrees((r.brokers["utilisation"][broker] for r in outcomes), rho)
    assert_agrees((r.metrics["notification_delay"] for r in outcomes), 2 / (1 - rho) + HOP)


def test_nobody_waits_behind_a_broker_that_takes_as_long() -> None:
    """Messages leave a deterministic server at least one service time apart."""
    first, second = run(0.8, brokers=2, service="deterministic").brokers["queue_wait"]
    assert first > 1.0
    assert second == pytest.approx(0.0, abs=1e-9)
