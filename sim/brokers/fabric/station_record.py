"""What stations did, as arrays by broker that any engine can fill, and what follows from them: metrics, columns, saturation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.saturation import saturated


class StationRecord(NamedTuple):
    """One entry per broker; no entries where brokers take no time. What is measured begins at the warm-up.

    `served`: messages that arrived after the warm-up and were taken into service. `wait`: the sum of their waits (s). `busy`: seconds
    of service. `waiting_area`: ∫ messages waiting dt (s). `dropped`: publications that did not fit the queue.

    The rest is the state at the end. `held`: messages that wait or are in service. `backlog`: seconds of work that would be left if
    nothing had been refused. `behind_since`: when there was last nothing to do, likewise (s). `squares`: the sum of the squared
    service times (s²) that have arrived since then.
    """

    served: NDArray[np.int64]
    wait: NDArray[np.float64]
    busy: NDArray[np.float64]
    waiting_area: NDArray[np.float64]
    dropped: NDArray[np.int64]
    held: NDArray[np.int64]
    backlog: NDArray[np.float64]
    behind_since: NDArray[np.float64]
    squares: NDArray[np.float64]

    def saturated_since(self, seconds: float) -> dict[int, float]:
        """The brokers that cannot keep up, and since when (s); they were measured for so many seconds."""
        judged = zip(self.backlog.tolist(), self.squares.tolist(), self.behind_since.tolist(), strict=True)
        return {
            broker: since
            for broker, (backlog, squares, since) in enumerate(judged)
            if saturated(backlog, squares, seconds)
        }

    def metrics(self, seconds: float) -> dict[str, float | int | None]:
        """The metrics of stations that were measured for so many seconds; None where brokers take no time."""
        served, brokers = int(self.served.sum()), len(self.served)
        return {
            "queue_wait": sum(self.wait.tolist()) / served if served else None,
            "utilisation": sum(self.busy.tolist()) / (seconds * brokers) if brokers else None,
            "saturated_brokers": len(self.saturated_since(seconds)),
        }

    def columns(self, brokers: int, seconds: float) -> dict[str, Sequence[float | None]]:
        """The same broker by broker, as columns of a table; they hold None where brokers take no time."""
        none: Sequence[float | None] = [None] * brokers
        since, waits = self.saturated_since(seconds), zip(self.wait.tolist(), self.served.tolist(), strict=True)
        return {
            "served": self.served.tolist() or none,
            "queue_wait": [wait / served if served else None for wait, served in waits] or none,
            "utilisation": (self.busy / seconds).tolist() or none,
            "queue_length": (self.waiting_area / seconds).tolist() or none,
            "queue_full": self.dropped.tolist() or none,
            "backlog": self.held.tolist() or none,
            "backlog_seconds": self.backlog.tolist() or none,
            "saturated_since": [since.get(broker) for broker in range(brokers)],
        }
