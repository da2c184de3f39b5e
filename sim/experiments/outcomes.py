"""What comes of a run: a record of what it found, written or still to write, or why it failed."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sim.base.errors import InputError
from sim.experiments.plan import RunSpec

Progress = Callable[[RunSpec, float], None]
"""Told of a run and the fraction of it that is done; 1 when its result is there (or when it failed)."""


@dataclass(frozen=True)
class Record:
    """What a run found, in memory: metrics, tables and notes as `simulate` gives them, and what drove it.

    `timing` has what depends on the clock: start, end, seconds, host.
    """

    metrics: Mapping[str, float | int | None]
    tables: Mapping[str, Mapping[str, Any]]
    notes: Sequence[str]
    workload: Mapping[str, Any]
    timing: Mapping[str, Any]


@dataclass(frozen=True)
class Finished:
    """A run whose result is in the store: its hash, how long it took (s), and its metrics."""

    hash: str
    seconds: float
    metrics: Mapping[str, float | int | None]


@dataclass(frozen=True)
class Failure:
    """A run that raised. `error` is what it raised where something that a person supplied is wrong."""

    reason: str
    traceback: str
    error: InputError | None = None

    def record(self, spec: RunSpec) -> dict[str, Any]:
        """What the results keep of it; `spec` is one of those that came to this run."""
        place = {"point": spec.point, "label": spec.label}
        where = {**place, "variant": spec.variant, "replication": spec.replication, "run": spec.hash}
        return {**where, "reason": self.reason, "traceback": self.traceback}


Outcome = Finished | Failure


@contextmanager
def clock() -> Generator[dict[str, Any]]:
    """When something began and ended, how long it took, and where: filled in when it ends."""
    timing: dict[str, Any] = {"start": datetime.now(UTC).isoformat(timespec="milliseconds")}
    began = time.perf_counter()
    yield timing
    timing["end"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    timing["seconds"] = round(time.perf_counter() - began, 3)
    timing["host"] = platform.node()
