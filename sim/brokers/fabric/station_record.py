"""The record of stations: arrays by broker that any engine can fill, and the metrics, columns and saturation computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import summed
from sim.brokers.fabric.saturation import Saturation, saturated, saturation
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

    def _saturations(self, seconds: float, horizon: float) -> list[Saturation | None]:
        judged = zip(self.backlog.tolist(), self.squares.tolist(), self.behind_since.tolist(), strict=True)
        return [saturation(*each, seconds, horizon) for each in judged]

    def metrics(self, seconds: float) -> dict[str, float | int | None]:
        """The metrics of stations, given the measured time (s); None where brokers take no time."""
        served, brokers = int(self.served.sum()), len(self.served)
        return {
            "queue_wait": summed(self.wait.tolist()) / served if served else None,
            "utilisation": summed(self.busy.tolist()) / (seconds * brokers) if brokers else None,
            "saturated_brokers": sum(map(saturated, self.backlog.tolist(), self.squares.tolist(), repeat(seconds))),
        }

    def columns(self, brokers: int, seconds: float, horizon: float) -> dict[str, Sequence[float | None]]:
        """The record by broker, as columns of a table; None where brokers take no time."""
        none: Sequence[float | None] = [None] * brokers
        waits = zip(self.wait.tolist(), self.served.tolist(), strict=True)
        behind = self._saturations(seconds, horizon)
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
            "saturated_since": [each and each.since for each in behind] or none,
            "capacity_share": [each and each.capacity_share for each in behind] or none,
        }
