"""Engines perform runs: sequentially in this process, in a pool of processes, or on a cluster, all with identical results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from sim.experiments.options import RunOptions
from sim.experiments.outcomes import Progress, RunOutcome
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store


class RunEngine(Protocol):
    """Performs rounds of runs while its context lasts; leaving the context with an exception stops the runs in progress."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def perform(self, specs: Sequence[RunSpec], tell: Progress) -> Iterator[tuple[RunSpec, RunOutcome]]:
        """Perform these distinct runs and yield each outcome as it ends, in any order; `tell` is called with the progress of runs.

        Raises ResultsError where results cannot be written.
        """
        ...


def engine(options: RunOptions, store: Store) -> RunEngine:
    """The requested engine, for runs of a store."""
    if options.chosen == "in-process":
        from sim.experiments.engines.in_process import InProcess

        return InProcess(store)
    if options.chosen == "pool":
        from sim.experiments.engines.pool import Pool

        return Pool(store, options.jobs)
    from sim.experiments.engines.spark import Spark

    return Spark(store, options.master)
