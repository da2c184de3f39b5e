"""The usable rows of a broker's log as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.workloads.format.workload import ColumnTable

SECOND = 1_000_000
"""µs."""
NO_EXPIRY = 2**32 - 1
"""s; the expiry of a session that never expires, by MQTT 5.0, section 3.1.2.11.2."""


@dataclass(frozen=True)
class Control(ColumnTable):
    """Connects, subscribes, unsubscribes and disconnects in the order in which they happened.

    `micros` is the time in µs since 1970, UTC; `action` one of `event_kernels`; `topic` -1 where the action has none. `clean` (0 or 1)
    and `expiry` (s) are those of connects, `qos` that of subscribes, -1 where they are not known.
    """

    micros: NDArray[np.int64]
    action: NDArray[np.int8]
    client: NDArray[np.int32]
    topic: NDArray[np.int32]
    clean: NDArray[np.int8]
    expiry: NDArray[np.int64]
    qos: NDArray[np.int8]


@dataclass(frozen=True)
class EventPublications(ColumnTable):
    """Publications in the order in which they happened: µs since 1970, topic, client (-1 where unknown), bytes; `retain` and `qos`.

    These two are as those of `Publications`.
    """

    micros: NDArray[np.int64]
    topic: NDArray[np.int32]
    client: NDArray[np.int32]
    size: NDArray[np.int32]
    retain: NDArray[np.int8]
    qos: NDArray[np.int8]


@dataclass(frozen=True)
class Delivered(ColumnTable):
    """Deliveries in the order in which they happened: µs since 1970, topic, publisher (-1 where unknown), subscriber.

    `retain` is 1 where the message had been retained.
    """

    micros: NDArray[np.int64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    client: NDArray[np.int32]
    retain: NDArray[np.int8]


@dataclass(frozen=True)
class EventLog:
    """The usable rows of a log; clients and topics are positions in their names, which are in the order of their ids."""

    clients: Sequence[str]
    topics: Sequence[str]
    control: Control
    published: EventPublications
    delivered: Delivered
