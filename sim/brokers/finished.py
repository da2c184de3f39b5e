"""Publications whose way is over, until they are counted."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.brokers.messages import Flight
from sim.brokers.receipts import Audience
from sim.brokers.records import Ways
from sim.brokers.subscriptions import Offloaded

_NONE: NDArray[np.int32] = np.empty(0, np.int32)


class Finished:
    """Publications that wait to be entered, as columns for `record_all`.

    Nothing in here is an object that Python's garbage collector tracks, one by one: flights that piled up would have it walk
    through the backlogs of all brokers again and again.
    """

    def __init__(self) -> None:
        self.uplinks: list[NDArray[np.int32]] = []
        self.brokers: list[NDArray[np.int32]] = []
        self.parents: list[NDArray[np.int32]] = []
        self.depth: list[NDArray[np.int32]] = []
        self.due_users: list[NDArray[np.int32]] = []
        self.fresh: list[NDArray[np.int32]] = []
        self.further: list[NDArray[np.bool_]] = []
        self.arrival = array("d")
        self.served = array("d")
        self.sent = bytearray()
        self.copies = array("i")
        self.copies_from = array("q", [0])
        self.uplinks_sent = array("q")
        self.published = array("d")
        self.rooted = array("d")
        self.size = array("q")
        self.window = array("q")
        self.offloaded: list[Flight] = []

    def add(self, flight: Flight, uplinks_sent: int) -> None:
        self.uplinks.append(flight.uplink_array)
        self.uplinks_sent.append(uplinks_sent)
        self.brokers.append(flight.broker_array)
        self.parents.append(_NONE if flight.tree is None else flight.tree.parents)
        self.depth.append(flight.depth)
        self.due_users.append(flight.due_users)
        if len(flight.further):
            self.fresh.append(flight.fresh)
            self.further.append(flight.further)
        self.arrival.extend(flight.arrival)
        self.served.extend(flight.served)
        self.sent += flight.sent
        self.copies += flight.copies
        self.copies_from.append(len(self.copies) // 2)
        self.published.append(flight.published)
        self.rooted.append(flight.rooted)
        self.size.append(flight.size)
        self.window.append(flight.window)
        if flight.offloaded is not None:
            self.offloaded.append(flight)

    def ways(self) -> Ways:
        """The same, in arrays."""
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
            np.array(self.sent),
            starts(self.brokers),
            np.array(self.published),
            np.array(self.rooted),
            np.array(self.size),
            np.array(self.window),
            np.array(self.copies).reshape(-1, 2),
            np.array(self.copies_from),
            np.concatenate(self.fresh) if self.fresh else due_users,
            np.concatenate(self.further) if self.further else np.empty(0, np.bool_),
        )

    def offloaded_columns(self) -> tuple[tuple[Any, Any, Any, Any, Any, Any], list[Offloaded], list[Audience | None]]:
        """What `Recorder.offload` takes, an entry for each publication."""
        flights = self.offloaded
        columns = (
            np.array([flight.number for flight in flights]),
            np.arange(len(flights)),
            np.array([flight.published for flight in flights]),
            np.array([flight.rooted for flight in flights]),
            np.array([flight.window for flight in flights]),
            np.array([flight.uplink[-1] for flight in flights], np.int32),
        )
        return (
            columns,
            [flight.offloaded for flight in flights if flight.offloaded is not None],
            [flight.audience for flight in flights],
        )


def starts(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Where each of the parts begins in their concatenation, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])])
