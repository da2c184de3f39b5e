"""Finished publications, collected until they are counted."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from sim.brokers.data.flights import Flight
from sim.brokers.statistics.receipts import Audience
from sim.brokers.statistics.recorder import OffloadColumns, Recorder
from sim.brokers.statistics.records import Offloaded, Ways, starts

_BATCH = 512  # publications that are counted at once
_POSITIONS = 1 << 16  # of their trees, likewise
_NONE: NDArray[np.int32] = np.empty(0, np.int32)


class Finished:
    """Collects finished publications, as columns, for the recorder to count.

    It keeps no objects that Python's garbage collector tracks: accumulated flights would make it scan the backlogs of all brokers
    again and again.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clear()

    def _clear(self) -> None:
        self.uplinks: list[NDArray[np.int32]] = []
        self.brokers: list[NDArray[np.int32]] = []
        self.parents: list[NDArray[np.int32]] = []
        self.depth: list[NDArray[np.int32]] = []
        self.due_users: list[NDArray[np.int32]] = []
        self.new_users: list[NDArray[np.int32]] = []
        self.duplicate_at_broker: list[NDArray[np.bool_]] = []
        self.arrival = array("d")
        self.served = array("d")
        self.copies = array("i")
        self.copies_from = array("q", [0])
        self.uplinks_sent = array("q")
        self.published = array("d")
        self.rooted = array("d")
        self.size = array("q")
        self.window = array("q")
        self.topic = array("i")
        self.offloaded: list[Flight] = []

    def add(self, flight: Flight, uplinks_sent: int) -> None:
        """Count a publication that no message carries any more, or that the end of the run overtook."""
        self.uplinks.append(flight.uplink_array)
        self.uplinks_sent.append(uplinks_sent)
        self.brokers.append(flight.broker_array)
        self.parents.append(_NONE if flight.tree is None else flight.tree.parents)
        self.depth.append(flight.depth)
        self.due_users.append(flight.due_users)
        if len(flight.duplicate_at_broker):
            self.new_users.append(flight.new_users)
            self.duplicate_at_broker.append(flight.duplicate_at_broker)
        self.arrival.extend(flight.arrival)
        self.served.extend(flight.served)
        self.copies += flight.copies
        self.copies_from.append(len(self.copies) // 2)
        self.published.append(flight.published)
        self.rooted.append(flight.rooted)
        self.size.append(flight.size)
        self.window.append(flight.window)
        self.topic.append(flight.topic)
        recorder, satisfaction = self._recorder, self._recorder.satisfaction
        period = 0 if satisfaction is None else int(satisfaction.period_of[flight.number])
        if flight.audience is not None:
            delivered = ~np.isnan(flight.served) & (flight.due_users > 0)
            recorder.arrive(flight.audience, period, 1, flight.broker_array, delivered)
        if satisfaction is not None:
            satisfaction.count(period, 1)
        if len(self.window) >= _BATCH or len(self.arrival) >= _POSITIONS:
            self.record()

    def offload(self, flight: Flight) -> None:
        """Send a publication that has left its root to the brokers that the back end does not serve."""
        self.offloaded.append(flight)
        if len(self.offloaded) >= _BATCH:
            self.record()

    def record(self) -> None:
        """Count all at once, since passing arrays to compiled code costs more than counting."""
        if self.window:
            self._recorder.record(self._ways())
        if self.offloaded:
            self._recorder.offload(*self._offloaded_columns())
        self._clear()

    def _ways(self) -> Ways:
        """The finished publications as arrays."""
        due_users = np.concatenate(self.due_users)
        return Ways(
            np.concatenate(self.uplinks),
            starts(self.uplinks),
            np.array(self.uplinks_sent),
            np.concatenate(self.brokers),
            np.concatenate(self.parents),
            np.concatenate(self.depth),
            due_users,
            np.array(self.arrival),
            np.array(self.served),
            starts(self.brokers),
            np.array(self.published),
            np.array(self.rooted),
            np.array(self.size),
            np.array(self.window),
            np.array(self.copies).reshape(-1, 2),
            np.array(self.copies_from),
            np.concatenate(self.new_users) if self.new_users else due_users,
            np.concatenate(self.duplicate_at_broker) if self.duplicate_at_broker else np.empty(0, np.bool_),
            np.array(self.topic),
        )

    def _offloaded_columns(self) -> tuple[OffloadColumns, list[Offloaded], list[Audience | None]]:
        """The arguments of `Recorder.offload`, with an entry for each publication."""
        flights = self.offloaded
        columns = (
            np.array([flight.number for flight in flights]),
            np.arange(len(flights)),
            np.array([flight.published for flight in flights]),
            np.array([flight.rooted for flight in flights]),
            np.array([flight.window for flight in flights]),
            np.array([flight.uplink[-1] for flight in flights], np.int32),
            np.array([flight.size for flight in flights]),
            np.array([flight.topic for flight in flights], np.int32),
        )
        return (
            columns,
            [flight.offloaded for flight in flights if flight.offloaded is not None],
            [flight.audience for flight in flights],
        )
