"""The workload format: what happens to a broker network from outside, in memory as arrays and on disk as a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FORMAT = 1
DAY = 86400.0


@dataclass(frozen=True)
class Topics:
    """All topics; every array has one entry per topic, topic ids are positions.

    `event_rate` is in events per the workload's `period`; positions are degrees, NaN where a topic has no place.
    """

    names: pa.StringArray
    kinds: pa.StringArray
    event_rate: NDArray[np.float64]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.event_rate)


@dataclass(frozen=True)
class Users:
    """All users; positions are homes in degrees, NaN where unknown."""

    names: pa.StringArray
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.latitude)


@dataclass(frozen=True)
class Interests:
    """Who wants what at time 0, as CSR: user u wants `indices[indptr[u]:indptr[u + 1]]`, ascending."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


@dataclass(frozen=True)
class SubscriptionEvents:
    """Changes of interest, sorted by time (s): action +1 subscribes, -1 unsubscribes."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    topic: NDArray[np.int32]
    action: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Publications:
    """Publications, sorted by time (s): publisher is a user, or -1 when it comes from outside; size in bytes."""

    time: NDArray[np.float64]
    topic: NDArray[np.int32]
    publisher: NDArray[np.int32]
    size: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Movements:
    """Changes of place, sorted by time (s), in degrees; empty where users do not move."""

    time: NDArray[np.float64]
    user: NDArray[np.int32]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def none(cls) -> Movements:
        return cls(np.empty(0), np.empty(0, np.int32), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Workload:
    """Everything that drives one run. Times are seconds from `origin` (UTC, ISO 8601); `horizon` and `period` are seconds.

    `cell` is the side of a grid cell in degrees where topics are cells, else None. `rows` tells what became of a trace's rows:
    `{"read": n, "kept": n, "quarantined": {reason: n}}`. `hash` identifies the files it was loaded from, "" in memory.
    """

    kind: str
    horizon: float
    topics: Topics
    users: Users
    interests: Interests
    subscription_events: SubscriptionEvents
    publications: Publications
    movements: Movements = field(default_factory=Movements.none)
    period: float = DAY
    origin: str = "1970-01-01T00:00:00Z"
    cell: float | None = None
    generator: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    sources: tuple[Mapping[str, Any], ...] = ()
    rows: Mapping[str, Any] | None = None
    hash: str = ""


def write_workload(workload: Workload, folder: Path) -> None:
    """Write the directory; `manifest.json` last, so that a killed process leaves no workload."""
    raise NotImplementedError


def load_workload(folder: Path) -> Workload:
    """Read a directory. Raises WorkloadError where it is none, is of another format version or is damaged."""
    raise NotImplementedError
