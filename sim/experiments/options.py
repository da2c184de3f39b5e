"""`RunOptions`: how runs are performed, declared once for `sim.run`, the searches and every command that performs runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

# Any: dataclasses.field takes the place of a default value of any type.
from typing import Any, Self, TypedDict, get_type_hints

from sim.base.errors import InputError, unknown

ENGINES = ("in-process", "pool", "spark")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def declared(usage: str, help: str, default: Any, **more: Any) -> Any:
    """Declare a field as an option of commands, with its usage and help on the command line.

    Its type is that of the dataclass's annotation, as with `field`; `more` are keywords of `typer.Option`.
    """
    return field(default=default, metadata={"usage": usage, "help": help, **more})


class SearchKeywords(TypedDict, total=False):
    """The fields of `RunOptions` as keywords of functions that choose the runs themselves."""

    jobs: int
    engine: str
    master: str | None


class RunKeywords(SearchKeywords, total=False):
    """All fields of `RunOptions` as keywords of functions."""

    fail_fast: bool
    retry_failed: bool
    verify: bool


@dataclass(frozen=True)
class RunOptions:
    """How runs are performed; results are the same, byte for byte, with any of these.

    Each field is an option of every command that performs runs, with the same default without a command line. Raises InputError
    where an engine does not exist, or does not take jobs or a cluster.
    """

    jobs: int = declared(
        "N", "Number of processes; all cores by default.", 1, min=1, max=1024, default_factory=cores, show_default=False
    )
    engine: str = declared(
        "NAME",
        "What executes the runs: in-process, pool (processes on this machine) or spark; by default chosen from --jobs and --master.",
        "auto",
        show_default=False,
    )
    master: str | None = declared("URL", "The master of a Spark cluster, such as spark://host:7077.", None)
    fail_fast: bool = declared("--fail-fast", "Stop at the first run that fails.", False)
    retry_failed: bool = declared("--retry-failed", "Repeat the runs that failed in this folder.", False)
    verify: bool = declared("--verify", "Check all files of existing runs; damaged runs are repeated.", False)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"jobs: expected 1 or more (found {self.jobs})")
        if self.master is not None and self.engine not in ("auto", "spark"):
            raise InputError(f"master: only the engine 'spark' uses a cluster (found '{self.engine}')")
        if self.engine not in ("auto", *ENGINES):
            raise InputError(unknown("engine", self.engine, ("auto", *ENGINES)))

    @classmethod
    def of(cls, given: SearchKeywords, allowed: type[SearchKeywords]) -> Self:
        """The options that a function was given as keywords. Raises TypeError where it does not take one."""
        if wrong := sorted(given.keys() - get_type_hints(allowed)):
            raise TypeError(unknown("keyword argument", wrong[0], sorted(get_type_hints(allowed))))
        return cls(**given)

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not the default ones, as keywords."""
        return {name: value for name, value in vars(self).items() if value != getattr(DEFAULT_OPTIONS, name)}

    @property
    def chosen(self) -> str:
        """The engine, with "auto" resolved: in-process for one job, a pool for more, or Spark with a cluster."""
        if self.engine != "auto":
            return self.engine
        return "spark" if self.master is not None else "in-process" if self.jobs == 1 else "pool"


DEFAULT_OPTIONS = RunOptions()
