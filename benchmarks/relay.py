"""Broker deliveries per second on a 6-hop relay among 200 brokers, beside SimPy's own rate of timeouts."""

from __future__ import annotations

from collections.abc import Iterator

import simpy

from benchmarks.measure import Figure, alternate, cpu_seconds
from benchmarks.networks import relay

PUBLICATIONS = 40_000
TIMEOUTS = 400_000


def _deliveries_per_second() -> float:
    network = relay(200, 6, PUBLICATIONS)
    seconds = cpu_seconds(network.run)
    delivered = network.metrics()["delivered"]
    assert delivered == PUBLICATIONS
    return PUBLICATIONS / seconds


def _timeouts_per_second() -> float:
    environment = simpy.Environment()

    def process() -> Iterator[simpy.Event]:
        for _ in range(TIMEOUTS):
            yield environment.timeout(1.0)

    environment.process(process())  # type: ignore[arg-type]
    return TIMEOUTS / cpu_seconds(environment.run)


def figures() -> list[Figure]:
    """Deliveries/s, each over 6 hops with everything recorded, as a share of timeouts/s, measured in turn."""
    relay(200, 6, 100).run()  # compiles the kernels
    deliveries, timeouts, ratio = alternate(_deliveries_per_second, _timeouts_per_second)
    text = f"1/{1 / ratio:.1f} ({deliveries:,.0f} deliveries/s; {timeouts:,.0f} timeouts/s)"
    return [Figure("6-hop relay, 200 brokers: deliveries per SimPy timeout", text, "≥ 1/30", ratio >= 1 / 30)]
