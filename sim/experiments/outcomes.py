"""Outcomes of a run: its record (written or to be written), or the reason why it failed."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sim.base.errors import InputError
from sim.base.naming import Raw
from sim.experiments.plan import RunSpec

Progress = Callable[[RunSpec, float], None]
"""Called with a run and the fraction of it that is done; 1 when its result exists or when it failed."""


@dataclass(frozen=True)
class Record:
    """The result of a run in memory: metrics, tables and notes as returned by `simulate`, and a summary of its workload.

    `timing` has the values that depend on the clock and machine: start, end, seconds, host.
    """

    metrics: Mapping[str, float | int | None]
    tables: Mapping[str, Raw]
    notes: Sequence[str]
    workload: Raw
    timing: Raw


@dataclass(frozen=True)
class Failure:
    """A run that raised an exception; `error` is the exception if it reports invalid input."""

    reason: str
    traceback: str
    error: InputError | None = None

    def record(self, spec: RunSpec) -> Raw:
        """The failure as recorded in the results; `spec` is one of the specifications with this run."""
        place = {"point": spec.point, "label": spec.label}
        where = {**place, "variant": spec.variant, "replication": spec.replication, "run": spec.hash}
        return {**where, "reason": self.reason, "traceback": self.traceback}


RunOutcome = Failure | None
"""How a run has ended: its failure, or None where its result is in the store."""


@contextmanager
def clock() -> Generator[Raw]:
    """Measure start, end, duration and host of a block; filled in when the block ends."""
    timing: Raw = {"start": datetime.now(UTC).isoformat(timespec="milliseconds")}
    began = time.perf_counter()
    yield timing
    timing["end"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    timing["seconds"] = round(time.perf_counter() - began, 3)
    timing["host"] = platform.node()
