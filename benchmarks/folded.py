"""Broker deliveries per second of the folded data plane on trees of 100 brokers, against the plane that makes every hop an event."""

from __future__ import annotations

from typing import Literal

from benchmarks.measure import Figure, alternate, cpu_seconds
from benchmarks.networks import broadcast

BROKERS = 100
PUBLICATIONS = {"folded": 20_000, "events": 1_000}
BAR, TIMES = 3e6, 10


def _deliveries_per_second(plane: Literal["events", "folded"]) -> float:
    network = broadcast(BROKERS, PUBLICATIONS[plane], plane)
    seconds = cpu_seconds(network.run)
    delivered = network.metrics()["delivered"]
    assert delivered == BROKERS * PUBLICATIONS[plane]
    return delivered / seconds


def figures() -> list[Figure]:
    """Deliveries/s of both planes with everything recorded, measured in turn, and their ratio."""
    broadcast(BROKERS, 10, "folded").run()  # compiles the kernels
    broadcast(BROKERS, 10, "events").run()
    folded, messages, ratio = alternate(
        lambda: _deliveries_per_second("folded"), lambda: _deliveries_per_second("events")
    )
    return [
        Figure("folded plane, trees of 100 brokers: deliveries/s", f"{folded:,.0f}", "≥ 3,000,000", folded >= BAR),
        Figure(
            "the same, beside the plane that makes every hop an event",
            f"{ratio:.1f} × ({messages:,.0f}/s)",
            "≥ 10 ×",
            ratio >= TIMES,
        ),
    ]
