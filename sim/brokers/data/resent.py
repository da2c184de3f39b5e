"""Copies that brokers send once more, to each other or to users, counted as traffic like the first ones."""

from __future__ import annotations

from array import array

import numpy as np

from sim.brokers.data.flights import Flight
from sim.brokers.statistics.recorder import Recorder
from sim.brokers.statistics.records import ResentCopies

_BATCH = 512
_TO_USERS = -1  # as destination


class Resent:
    """Collects copies that are sent again, for the recorder to count."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rows = array("q")

    def message(self, flight: Flight, source: int, destination: int, relays: bool) -> None:
        """A broker sends a copy to another again, which only passes it on if it `relays`."""
        self._add(flight, source, destination, int(relays))

    def to_users(self, flight: Flight, broker: int, users: int) -> None:
        """A broker sends copies to its users again."""
        self._add(flight, broker, _TO_USERS, users)

    def _add(self, flight: Flight, *row: int) -> None:
        self._rows.extend((flight.window, flight.size, *row))
        if len(self._rows) >= _BATCH * len(ResentCopies._fields):
            self.record()

    def record(self) -> None:
        """Count all."""
        if self._rows:
            self._recorder.resend(ResentCopies(*np.array(self._rows).reshape(-1, len(ResentCopies._fields)).T.copy()))
            self._rows = array("q")
