"""Brokers that take time, against queueing theory: servers, priorities and bounds, with Poisson arrivals.

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
from depth import tried
from scipy import stats
from tiny import Scripted, graph, with_stations, workload

from sim.base.randomness import Streams
from sim.brokers.fabric.transmission import LinkSetting
from sim.brokers.network import Network, NetworkSetting

REPLICATIONS, WARM_UP, HORIZON = 10, 1000.0, 13_000.0
SERVICE, HOP = 1.0, 0.25  # s


@dataclass(frozen=True)
class Outcome:
    """The results of one run. Window 0 is the warm-up, window 1 the measured time."""

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
def replications(rate: float, service: str = "exponential", queue: int | None = None, **setting: Any) -> list[Outcome]:
    """A single broker, several times."""
    return [run(rate, replication, service=service, queue=queue, **setting) for replication in range(REPLICATIONS)]


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


@pytest.mark.parametrize("quantile", [50.0, 90.0, 95.0, 99.0])
def test_sojourn_in_m_m_1_is_exponential(quantile: float) -> None:
    """Wait and service together: P(T > t) = exp(-(1 - ρ) t)."""
    rho = 0.5
    theory = -math.log(1 - quantile / 100) / (1 - rho)
    values = [r.metrics[f"notification_delay_p{quantile:.0f}"] for r in replications(rho)]
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


def erlang_c(servers: int, load: float) -> float:
    """The probability that all servers are busy, in M/M/c."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    full = load**servers / math.factorial(servers) * servers / (servers - load)
    return full / (sum(terms) + full)


@pytest.mark.parametrize("servers", [2, 4])
def test_mean_wait_in_m_m_c(servers: int) -> None:
    load = 0.8 * servers
    outcomes = replications(load, servers=servers)
    assert_agrees((r.metrics["queue_wait"] for r in outcomes), erlang_c(servers, load) / (servers - load), 0.15)
    assert_agrees((r.metrics["utilisation"] for r in outcomes), 0.8)


def test_losses_in_m_m_c_c() -> None:
    """Erlang's loss formula: servers, and no room to wait."""
    servers, load = 3, 2.0
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    measured = [r.metrics for r in replications(load, queue=0, servers=servers)]
    assert_agrees((m["publications_dropped"] / m["publications"] for m in measured), terms[-1] / sum(terms))


HISTOGRAM = (1.0, 2.0, 6.0), (3.0, 2.0, 1.0)
MEASURED = 13 / 6, 47 / 6  # its mean, and the mean of its squares


@pytest.mark.parametrize(
    ("service", "squared_variation", "setting"),
    [
        ("gamma", 0.25, {"variation": 0.5}),
        ("gamma", 2.0, {"variation": math.sqrt(2.0)}),
        ("lognormal", 0.25, {"variation": 0.5}),
        ("histogram", MEASURED[1] / MEASURED[0] ** 2 - 1, {"histogram": HISTOGRAM}),
    ],
)
def test_mean_wait_in_m_g_1(service: str, squared_variation: float, setting: dict[str, Any]) -> None:
    """Pollaczek and Khinchine: λ E[S²] / 2 (1 - ρ)."""
    rho = 0.7
    theory = rho * (1 + squared_variation) / (2 * (1 - rho))
    outcomes = replications(rho, service, **setting)
    assert_agrees((r.metrics["queue_wait"] for r in outcomes), theory, 0.15)
    assert_agrees((r.metrics["utilisation"] for r in outcomes), rho)


def test_mean_wait_where_an_idle_broker_has_to_wake_up() -> None:
    """Welch (1964): M/G/1 in which the first service of a busy period is another one, here w longer."""
    rate, wake_up = 0.6, 0.5
    first = 2.0 + 2.0 * wake_up + wake_up**2  # E[(S + w)²] where S is exponential with mean 1
    theory = rate * 2.0 / (2 * (1 - rate)) + rate * (first - 2.0) / (2 * (1 + rate * wake_up))
    assert_agrees((r.metrics["queue_wait"] for r in replications(rate, wake_up=wake_up)), theory)


def test_losses_are_as_many_where_the_oldest_is_dropped() -> None:
    """How many are there does not depend on which of them goes."""
    rho, capacity = 0.8, 3
    theory = (1 - rho) * rho**capacity / (1 - rho ** (capacity + 1))
    measured = [r.metrics for r in replications(rho, queue=capacity - 1, overflow="drop-oldest")]
    assert_agrees((m["publications_dropped"] / m["publications"] for m in measured), theory)


def test_a_queue_of_so_many_bytes_is_one_of_so_many_messages_where_all_have_one_byte() -> None:
    by_messages, by_bytes = replications(1.25, queue=4), replications(1.25, queue_bytes=4)
    assert [r.metrics for r in by_messages] == [r.metrics for r in by_bytes]


def busy_with_control(control: float, publications: float, replication: int, order: str) -> dict[str, Any]:
    """0 ── 1: broker 1 joins and leaves a tree whose root is 0, which also serves publications of its own; all are Poisson."""
    generator = Streams(2, replication).generator("arrivals")
    horizon = HORIZON + 2000.0

    def times(rate: float) -> list[float]:
        drawn: list[float] = np.sort(generator.uniform(0.0, horizon, generator.poisson(rate * horizon))).tolist()
        return drawn

    joins = [(time, 0, 1, -1 if number % 2 else 1) for number, time in enumerate(times(control))]
    world = workload([set(), {0}], [(time, 0, 1, 1) for time in times(publications)], joins, topics=2, horizon=horizon)
    network = Network(
        NetworkSetting(
            overlay=graph([(0, 1)], [0, 0]),
            node_of=np.arange(2, dtype=np.int32),
            hop_delay=np.where(np.eye(2, dtype=bool), 0.0, HOP),
            jitter=0.0,
            policy=Scripted([1, 0], reacts_to=()),
            horizon=horizon,
            warm_up=WARM_UP,
            join="message",
            **with_stations({"service": "exponential", "service_time": SERVICE, "order": order}),
        ),
        world,
        Streams(2, replication),
    )
    network.run()
    return network.metrics()


@pytest.mark.parametrize("order", ["control-first", "fifo"][: tried(2)])
def test_wait_of_publications_behind_control_messages(order: str) -> None:
    """Cobham (1954): M/M/1 with two classes, no pre-emption; ρ / (1 - ρ₁) (1 - ρ) for the second. First in, first out: M/M/1."""
    control, publications = 0.3, 0.4
    rho = control + publications
    wait = rho / ((1 - control) * (1 - rho)) if order == "control-first" else rho / (1 - rho)
    outcomes = [busy_with_control(control, publications, replication, order) for replication in range(REPLICATIONS)]
    assert_agrees((metrics["notification_delay"] for metrics in outcomes), wait + SERVICE)


def test_a_broker_that_sends_copies_takes_as_much_longer() -> None:
    """M/D/1 with a service of 0.2 s, 0.1 s for each of 2 neighbours, 0.05 s for each of 4 users, and 0.01 s for each of 20 bytes."""
    seconds, rate = 0.2 + 2 * 0.1 + 4 * 0.05 + 20 * 0.01, 1.0
    rho, measured = rate * seconds, []
    for replication in range(REPLICATIONS):
        generator = Streams(3, replication).generator("arrivals")
        times = np.sort(generator.uniform(0.0, HORIZON, generator.poisson(rate * HORIZON))).tolist()
        network = Network(
            NetworkSetting(
                overlay=graph([(0, 1), (0, 2)], [0]),
                node_of=np.arange(3, dtype=np.int32),
                hop_delay=np.where(np.eye(3, dtype=bool), 0.0, HOP),
                jitter=0.0,
                policy=Scripted([0, 0, 0, 0, 1, 2]),
                horizon=HORIZON,
                warm_up=WARM_UP,
                **with_stations(
                    {
                        "service": "deterministic",
                        "service_time": 0.2,
                        "send": 0.1,
                        "send_client": 0.05,
                        "per_byte": 0.01,
                    }
                ),
            ),
            workload([{0}] * 6, [(time, 0, 0, 20) for time in times], horizon=HORIZON),
            Streams(3, replication),
        )
        network.run()
        measured.append(network.tables()["brokers"])
    assert_agrees((brokers["utilisation"][0] for brokers in measured), rho)
    assert_agrees((brokers["queue_wait"][0] for brokers in measured), rho * seconds / (2 * (1 - rho)))
    assert_agrees((brokers["utilisation"][1] for brokers in measured), rate * (0.2 + 0.05 + 0.2))


def over_a_link(rate: float, replication: int, **limits: Any) -> Network:
    """0 ── 1: publications of 8 bytes at broker 0, which is the root, for a user of broker 1; brokers take no time."""
    generator = Streams(4, replication).generator("arrivals")
    times = np.sort(generator.uniform(0.0, HORIZON, generator.poisson(rate * HORIZON))).tolist()
    network = Network(
        NetworkSetting(
            overlay=graph([(0, 1)], [0]),
            node_of=np.arange(2, dtype=np.int32),
            hop_delay=np.where(np.eye(2, dtype=bool), 0.0, HOP),
            jitter=0.0,
            policy=Scripted([0, 1]),
            horizon=HORIZON,
            warm_up=WARM_UP,
            links=LinkSetting(**limits),
        ),
        workload([set(), {0}], [(time, 0, 0, 8) for time in times], horizon=HORIZON),
        Streams(4, replication),
    )
    network.run()
    return network


@pytest.mark.parametrize("limited", ["bandwidth", "interface"])
def test_delay_over_a_link_of_a_given_rate_is_that_of_m_d_1(limited: str) -> None:
    """8 bytes at 8 bytes per second: a second each. Two interfaces in a row take no longer than one."""
    rho = 0.7
    networks = [over_a_link(rho, replication, **{limited: 8.0}) for replication in range(REPLICATIONS)]
    assert_agrees((n.metrics()["notification_delay"] for n in networks), HOP + 1.0 + rho / (2 * (1 - rho)))
    tables = [n.tables()["links"] for n in networks]
    assert_agrees((links["queue_wait"][0] for links in tables), rho / (2 * (1 - rho)))
    assert_agrees((links["utilisation"][0] for links in tables), rho)


@pytest.mark.parametrize("limited", ["bandwidth", "interface"])
def test_a_link_that_cannot_carry_what_is_sent_over_it_is_saturated(limited: str) -> None:
    """At ρ = 1.5 it carries two thirds, from the start on; what an interface lets out comes in at its rate, which the other carries."""
    network = over_a_link(1.5, 0, **{limited: 8.0})
    links, brokers = network.tables()["links"], network.tables()["brokers"]
    metrics = network.metrics()
    assert metrics["saturated_links"] == 1
    saturated = (
        [links["saturated_since"][0], links["capacity_share"][0]]
        if limited == "bandwidth"
        else [brokers[f"interface_out_{name}"][0] for name in ("saturated_since", "capacity_share")]
    )
    assert saturated[0] < HORIZON / 100
    assert saturated[1] == pytest.approx(1 / 1.5, rel=0.02)
    assert over_a_link(0.9, 0, **{limited: 8.0}).metrics()["saturated_links"] == 0
    load = links["offered_load"] if limited == "bandwidth" else brokers["interface_out"][:1]
    assert load == pytest.approx([1.5], rel=0.02)
    assert links["utilisation"] == pytest.approx([1.0], rel=0.01)
    assert links["queue_length"][0] == pytest.approx(
        0.5 * (WARM_UP + HORIZON) / 2, rel=0.05
    )  # half a message more each second


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_windows_of_a_link_say_what_it_did_when_and_since_when_it_is_behind(plane: Any) -> None:
    """A second each, one every 2 s up to 20 s, then two each second; windows of 10 s."""
    times = [*np.arange(0.0, 20.0, 2.0), *np.repeat(np.arange(20.0, 50.0), 2)]
    network = Network(
        NetworkSetting(
            overlay=graph([(0, 1)], [0]),
            node_of=np.arange(2, dtype=np.int32),
            hop_delay=np.where(np.eye(2, dtype=bool), 0.0, HOP),
            jitter=0.0,
            policy=Scripted([0, 1]),
            horizon=50.0,
            window=10.0,
            links=LinkSetting(bandwidth=8.0),
            plane=plane,
        ),
        workload([set(), {0}], [(float(time), 0, 0, 8) for time in times], horizon=50.0),
        Streams(1),
    )
    network.run()
    load = {name: np.asarray(column).tolist() for name, column in network.tables()["link_load"].items()}
    assert load == {
        "window": [0, 1, 2, 3, 4],
        "source": [0] * 5,
        "destination": [1] * 5,
        "messages": [5, 5, 20, 20, 20],
        "bytes": [40, 40, 160, 160, 160],
        "utilisation": [0.5, 0.5, 1.0, 1.0, 1.0],
        # the two of second n wait n and n + 1 seconds
        "queue_wait": [0.0, 0.0, *(sum(2 * n + 1 for n in range(first, first + 10)) / 20 for first in (0, 10, 20))],
        "queue_length": [0.0, 0.0, 5.5, 15.5, 25.5],
        "queue_max": [0, 0, 10, 20, 30],
        "queue_full": [0] * 5,
        "lost": [0] * 5,
    }
    links = network.tables()["links"]
    assert (links["saturated_since"], links["capacity_share"]) == ([20.0], [0.5])
    brokers = network.tables()["brokers"]
    assert (brokers["published"].tolist(), brokers["copies"].tolist()) == (
        [70, 0],
        [0, 30 + 9],
    )  # one is sent each second
    assert brokers["client_bytes_in"].tolist() == [brokers["bytes_in"][0], 0] == [560, 0]
    assert brokers["bytes_out"].tolist() == [560, brokers["client_bytes_out"][1]] == [560, 8 * 39]


def test_losses_of_a_link_and_of_its_buffer() -> None:
    lossy = [over_a_link(0.5, replication, loss=0.1).metrics() for replication in range(REPLICATIONS)]
    assert_agrees((metrics["lost_link"] / metrics["due"] for metrics in lossy), 0.1)
    assert all(metrics["lost"] == metrics["lost_link"] for metrics in lossy)
    # Erlang's loss formula: no room to wait
    full = [over_a_link(0.8, replication, bandwidth=8.0, buffer=0).metrics() for replication in range(REPLICATIONS)]
    assert_agrees((metrics["lost_queue_full"] / metrics["due"] for metrics in full), 0.8 / 1.8)


def test_a_hundred_copies_of_a_megabyte_at_three_tenths_of_a_gigabit_take_as_long_as_they_must() -> None:
    """100 × 8 Mb / 300 Mb/s = 2.67 s for the last, and half of that (and half a copy) on average."""
    stars = [(0, leaf) for leaf in range(1, 101)]
    network = Network(
        NetworkSetting(
            overlay=graph(stars, [0]),
            node_of=np.arange(101, dtype=np.int32),
            hop_delay=np.zeros((101, 101)),
            jitter=0.0,
            policy=Scripted(range(101)),
            horizon=10.0,
            links=LinkSetting(interface=0.3e9 / 8),
        ),
        workload([set()] + [{0}] * 100, [(0.0, 0, 0, 1_000_000)], horizon=10.0),
        Streams(1),
    )
    network.run()
    metrics = network.metrics()
    assert metrics["delivered"] == 100
    assert metrics["notification_delay_max"] == pytest.approx(100 * 8e6 / 0.3e9)
    assert metrics["notification_delay"] == pytest.approx(101 / 2 * 8e6 / 0.3e9)
    assert metrics["saturated_links"] == 0  # in 10 s it carries them all
    brokers = network.tables()["brokers"]
    assert brokers["interface_out"][0] == pytest.approx(100 * 8e6 / 0.3e9 / 10)
    assert brokers["interface_in"][1:] == pytest.approx([8e6 / 0.3e9 / 10] * 100)


def test_of_27_000_clients_with_100_messages_a_second_a_broker_serves_the_share_that_it_has_time_for() -> None:
    """2.7 M copies/s are needed. At 1 µs each, a broker with all clients saturates, and gets through 1 of 2.7; three share it well."""
    horizon = 0.2

    def cluster(nodes: int) -> Network:
        # every client wants the one topic that is published 100 times per second
        hosts = [client % nodes for client in range(27_000)]
        publications = [(number / 100, 0, 0, 100) for number in range(int(horizon * 100))]
        network = Network(
            NetworkSetting(
                overlay=graph([(0, node) for node in range(1, nodes)], [0]),
                node_of=np.arange(nodes, dtype=np.int32),
                hop_delay=np.zeros((nodes, nodes)),
                jitter=0.0,
                policy=Scripted(hosts),
                horizon=horizon,
                **with_stations({"service": "deterministic", "send_client": 1e-6}),
            ),
            workload([{0}] * 27_000, publications, horizon=horizon),
            Streams(1),
        )
        network.run()
        return network

    one, three = cluster(1), cluster(3)
    brokers = one.tables()["brokers"]
    assert brokers["utilisation"] == pytest.approx([1.0])
    assert brokers["saturated_since"] == [0.0]
    assert brokers["capacity_share"] == pytest.approx([1 / 2.7])
    assert brokers["offered_load"] == pytest.approx([2.7])
    assert one.metrics()["delivery_ratio"] == pytest.approx(1 / 2.7, abs=1 / 20)
    assert three.metrics()["saturated_brokers"] == 0
    # 9 ms of every 10; the root's work delays that of the others by as much, 8 ms of which they do after the end
    assert three.tables()["brokers"]["utilisation"] == pytest.approx([0.9, 0.86, 0.86])


@pytest.mark.parametrize("plane", ["events", "compiled"])
def test_30_and_20_000_subscribers_differ_as_the_copies_they_take(plane: str) -> None:
    """9 µs for each copy and 2.56 µs to receive, 4 publications per second: 0.3 and 180 ms each, 0.1 and 72 % of the time."""
    horizon, rate, receive, copy = 10.0, 4, 2.56e-6, 9e-6
    for subscribers in (30, 20_000):
        service = receive + subscribers * copy
        publications = [(number / rate, 0, 0, 100) for number in range(int(horizon * rate))]
        network = Network(
            NetworkSetting(
                overlay=graph([], [0]),
                node_of=np.zeros(1, np.int32),
                hop_delay=np.zeros((1, 1)),
                jitter=0.0,
                policy=Scripted([0] * subscribers),
                horizon=horizon,
                window=2.5,
                plane=plane,  # type: ignore[arg-type]
                **with_stations({"service": "deterministic", "service_time": receive, "send_client": copy}),
            ),
            workload([{0}] * subscribers, publications, horizon=horizon),
            Streams(1),
        )
        network.run()
        metrics, load = network.metrics(), network.tables()["load"]
        for delay in ("notification_delay", "notification_delay_max"):
            assert metrics[delay] == pytest.approx(service)
        assert metrics["utilisation"] == pytest.approx(rate * service)
        assert load["utilisation"] == pytest.approx([rate * service] * 4)
        assert load["offered_load"] == pytest.approx([rate * service] * 4)
        assert load["users"] == pytest.approx([subscribers] * 4)
        assert load["queue_max"].tolist() == [0] * 4
        assert metrics["saturated_brokers"] == 0
