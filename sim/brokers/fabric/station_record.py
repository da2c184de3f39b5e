"""The record of stations: arrays by broker that any engine can fill, and the metrics, columns and saturation computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.brokers.fabric.saturation import saturated
from sim.brokers.fabric.station_windows import StationWindows, mean


class StationRecord(NamedTuple):
    """One entry per broker; none where brokers take no time. Measurement begins at the warm-up; `windows` divides it.

    `served`: messages that arrived after the warm-up and were taken into service. `wait`: the sum of their waits (s). `busy`: seconds
    of service. `waiting_area`: ∫ messages waiting dt (s). `dropped`: publications that did not fit the queue. `control_served` and
    `control_wait` are for control messages only. `offered`: seconds of work that arrived, refused or not, per server.

    The rest is the state at the end. `held`: messages that wait or are in service. `backlog`: seconds of work that would be left if
    nothing had been refused. `behind_since`: when it was last 0 (s). `squares`: the sum of the squared
    service times (s²) that have arrived since then.
    """

    windows: StationWindows
    served: NDArray[np.int64]
    wait: NDArray[np.float64]
    busy: NDArray[np.float64]
    waiting_area: NDArray[np.float64]
    dropped: NDArray[np.int64]
    control_served: NDArray[np.int64]
    control_wait: NDArray[np.float64]
    offered: NDArray[np.float64]
    held: NDArray[np.int64]
    backlog: NDArray[np.float64]
    behind_since: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def measured(cls) -> tuple[str, ...]:
        """The columns that exist for each broker."""
        return cls._fields[1:]

    def saturated_since(self, seconds: float) -> dict[int, float]:
        """The brokers that cannot keep up, and since when (s), given the measured time (s)."""
        judged = zip(self.backlog.tolist(), self.squares.tolist(), self.behind_since.tolist(), strict=True)
        return {
            broker: since
            for broker, (backlog, squares, since) in enumerate(judged)
            if saturated(backlog, squares, seconds)
        }

    def metrics(self, seconds: float) -> dict[str, float | int | None]:
        """The metrics of stations, given the measured time (s); None where brokers take no time."""
        served, brokers = int(self.served.sum()), len(self.served)
        return {
            "queue_wait": sum(self.wait.tolist()) / served if served else None,
            "utilisation": sum(self.busy.tolist()) / (seconds * brokers) if brokers else None,
            "saturated_brokers": len(self.saturated_since(seconds)),
        }

    def capacity_share(self, broker: int, since: float, horizon: float) -> float:
        """The share that a broker can do of the work that has arrived since a time (s) from which it has always been busy."""
        time = horizon - since
        return time / (time + float(self.backlog[broker]))

    def columns(self, brokers: int, seconds: float, horizon: float) -> dict[str, Sequence[float | None]]:
        """The record by broker, as columns of a table; None where brokers take no time."""
        none: Sequence[float | None] = [None] * brokers
        since, waits = self.saturated_since(seconds), zip(self.wait.tolist(), self.served.tolist(), strict=True)
        publications = self.served - self.control_served
        return {
            "served": self.served.tolist() or none,
            "queue_wait": [wait / served if served else None for wait, served in waits] or none,
            "publication_wait": mean(self.wait - self.control_wait, publications).tolist() or none,
            "control_wait": mean(self.control_wait, self.control_served).tolist() or none,
            "utilisation": (self.busy / seconds).tolist() or none,
            "offered_load": (self.offered / seconds).tolist() or none,
            "queue_length": (self.waiting_area / seconds).tolist() or none,
            "queue_max": self.windows.most_waiting(brokers).tolist() if len(self.served) else none,
            "queue_full": self.dropped.tolist() or none,
            "backlog": self.held.tolist() or none,
            "backlog_seconds": self.backlog.tolist() or none,
            "saturated_since": [since.get(broker) for broker in range(brokers)],
            "capacity_share": [
                self.capacity_share(broker, since[broker], horizon) if broker in since else None
                for broker in range(brokers)
            ],
        }
