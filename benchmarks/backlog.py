"""The cost of a backlog of 100,000 messages: CPU time per message served with and without it."""

from __future__ import annotations

import time

from benchmarks.measure import Figure, alternate
from benchmarks.networks import single_server

BACKLOG = 100_000
SERVED = 100_000


def _seconds_per_message(backlog: int) -> float:
    """CPU time (s) per message that arrives and is served behind the backlog."""
    network = single_server(backlog, SERVED)
    marks: list[float] = []
    network.run(lambda _: marks.append(time.process_time()))
    return (marks[-1] - marks[0]) / (0.99 * SERVED)  # the backlog arrives before the first mark


def figures() -> list[Figure]:
    """Time per message behind a standing backlog against time per message without one, measured in turn."""
    _seconds_per_message(10)  # compiles the kernels
    behind, free, ratio = alternate(lambda: _seconds_per_message(BACKLOG), lambda: _seconds_per_message(0))
    text = f"{100 * (ratio - 1):+.1f} % ({1e6 * behind:.2f} µs against {1e6 * free:.2f} µs per message)"
    return [Figure(f"backlog of {BACKLOG:,} messages: time per message", text, "< +20 %", ratio < 1.2)]
