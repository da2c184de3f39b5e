"""`RunOptions`: how runs are to be done, declared once for `sim.run`, the searches and every command that does runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from sim.base.errors import InputError, unknown

ENGINES = ("in-process", "pool", "spark")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _declared(help: str, **more: Any) -> dict[str, Any]:
    """What the command line shows of an option: keywords of `typer.Option`."""
    return {"help": help, **more}


@dataclass(frozen=True)
class RunOptions:
    """How runs are done, not what they are: results are the same, byte for byte, under any of these.

    A field is an option of every command that does runs, described by its metadata; without a command line, its default holds.
    Raises InputError where an engine does not exist, or jobs or a cluster are of no use to it.
    """

    jobs: int = field(
        default=1,
        metadata=_declared(
            "Number of processes; all cores by default.",
            metavar="N",
            min=1,
            max=1024,
            default_factory=cores,
            show_default=False,
        ),
    )
    engine: str = field(
        default="auto",
        metadata=_declared(
            "What executes the runs: in-process, pool (processes on this machine) or spark; chosen by --jobs and --master by default.",
            metavar="NAME",
            show_default=False,
        ),
    )
    master: str | None = field(
        default=None, metadata=_declared("The master of a Spark cluster, such as spark://host:7077.", metavar="URL")
    )
    fail_fast: bool = field(default=False, metadata=_declared("Stop at the first run that fails."))
    retry_failed: bool = field(default=False, metadata=_declared("Repeat the runs that failed in this folder."))
    verify: bool = field(
        default=False,
        metadata=_declared("Check all files of existing runs; damaged runs are repeated."),
    )

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"jobs: expected 1 or more (got {self.jobs})")
        if self.master is not None and self.engine not in ("auto", "spark"):
            raise InputError(f"master: a cluster is of use to the engine 'spark' only (got '{self.engine}')")
        if self.engine not in ("auto", *ENGINES):
            raise InputError(unknown("engine", self.engine, ("auto", *ENGINES)))

    @property
    def chosen(self) -> str:
        """The engine, where "auto" is in-process for one job and a pool for more, or Spark where there is a cluster."""
        if self.engine != "auto":
            return self.engine
        return "spark" if self.master is not None else "in-process" if self.jobs == 1 else "pool"


DEFAULT_OPTIONS = RunOptions()
