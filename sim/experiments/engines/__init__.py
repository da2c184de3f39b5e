"""Engines perform runs: sequentially in this process, in a pool of processes, or on a cluster, all with identical results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

from sim.base.errors import InputError, unknown
from sim.experiments.outcomes import Outcome, Progress
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store

ENGINES = ("in-process", "pool", "spark")


class Engine(Protocol):
    """Performs rounds of runs while its context lasts; leaving the context by an exception stops the runs in progress."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def perform(self, specs: Sequence[RunSpec], tell: Progress) -> Iterator[tuple[RunSpec, Outcome]]:
        """Perform these distinct runs and yield each outcome as it ends, in any order; `tell` is called with the progress of runs.

        Raises ResultsError where results cannot be written.
        """
        ...


def resolved(name: str, jobs: int, master: str | None = None) -> str:
    """Resolve the name of an engine: "auto" is in-process for one job, a pool for more, or Spark if there is a cluster's `master`.

    Raises InputError where there is no such engine, or jobs or master are of no use to it.
    """
    if jobs < 1:
        raise InputError(f"jobs: expected 1 or more (got {jobs})")
    if master is not None and name not in ("auto", "spark"):
        raise InputError(f"master: a cluster is of use to the engine 'spark' only (got '{name}')")
    if name == "auto":
        return "spark" if master is not None else "in-process" if jobs == 1 else "pool"
    if name not in ENGINES:
        raise InputError(unknown("engine", name, ("auto", *ENGINES)))
    return name


def engine(name: str, jobs: int, store: Store, master: str | None = None) -> Engine:
    """The engine of a name, see `resolved`, for runs of a store: `jobs` are the processes of a pool, `master` the URL of a cluster."""
    name = resolved(name, jobs, master)
    if name == "in-process":
        from sim.experiments.engines.in_process import InProcess

        return InProcess(store)
    if name == "pool":
        from sim.experiments.engines.pool import Pool

        return Pool(store, jobs)
    from sim.experiments.engines.spark import Spark

    return Spark(store, master)
