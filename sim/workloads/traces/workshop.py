"""Where a pipeline works: a folder beside the one that it writes, and what all pipelines do there."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.base.private import claimed_folder
from sim.spark import cause, sql
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import account, check_form, describe_reasons, read_quarantine, store_quarantine
from sim.workloads.traces.rows import number_lines
from sim.workloads.traces.session import partitioned, store, watched
from sim.workloads.traces.sources import Inputs, Source, find_groups, link_sources, original
from sim.workloads.traces.strays import warn_of_strays
from sim.workloads.traces.times import Window, iso

LARGEST_INT32 = 2**31 - 1
# Called with what is being done and, again and again, with how far it is ("" at its start).
TraceProgress = Callable[[str, str], None]


@dataclass(frozen=True)
class TraceOptions:
    """What of a trace is used, and for what: rows of a `window`, publications of `size` bytes, where the trace does not say."""

    window: Window = (None, None)
    size: int = 100

    def __post_init__(self) -> None:
        """Raises WorkloadError where an option is out of its limits."""
        self.check("size", 0, LARGEST_INT32)

    def check(self, option: str, least: float, most: float) -> None:
        """Raise WorkloadError unless an option is within limits."""
        if not least <= (value := getattr(self, option)) <= most:
            raise WorkloadError(f"--{option} is {value}, allowed: {least} to {most}")

    @property
    def span(self) -> list[str | None]:
        """The window, as it stands in a manifest."""
        return [None if time is None else iso(time) for time in self.window]


@dataclass(eq=False)
class Workshop:
    """A pipeline at work, in a `folder` beside `out`, on input files in groups.

    The rows that it has read so far are in `tables`, with source, line, reason and others; `reasons` counts them by the reason why
    they are not used, None for those that are; `dropped` has the numbers of rows with a reason that is no column of theirs.
    """

    session: sql.SparkSession
    folder: Path
    out: Path
    groups: Sequence[Sequence[Source]]
    progress: TraceProgress
    tables: list[sql.DataFrame] = field(default_factory=list)
    reasons: Counter[str | None] = field(default_factory=Counter)
    dropped: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def sources(self) -> list[Source]:
        """The files whose rows have been read, as rows number them."""
        return [source for group in self.groups[: len(self.tables)] for source in group]

    def watch(self, step: str) -> AbstractContextManager[None]:
        """While the body runs Spark jobs, report the step and how far it is."""
        return watched(self.session, partial(self.progress, step))

    def link(self, group: int) -> Path:
        """A folder of links to the files of a group, for Spark to read."""
        folder = self.folder / f"inputs-{group}"
        link_sources(self.groups[group], folder, sum(map(len, self.groups[:group])))
        return folder

    def judge(self, judged: sql.DataFrame, layout: Layout, expected: Mapping[str, str]) -> sql.DataFrame:
        """The rows of the next group, as they are judged, with their lines, kept on disk.

        `expected` is for `check_form`. Raises WorkloadError where a file is empty, or most rows are not in the layout.
        """
        group = len(self.tables)
        rows = number_lines(store(judged, self.folder / f"parsed-{group}"), layout)
        first = len(self.sources)
        self.reasons += check_form(rows, layout, self.groups[group], expected, first)
        self.tables.append(rows)
        return rows

    def all_rows(self, column: str) -> sql.DataFrame:
        """The rows of those tables that have this column: their source, line and reason, and it."""
        having = [rows.select("source", "line", "reason", column) for rows in self.tables if column in rows.columns]
        return reduce(lambda one, other: one.unionByName(other), having)

    def warn_of_strays(self, times: Sequence[NDArray[np.int64]], what: str) -> None:
        """Warn of times (µs since 1970) of rows, which are `what`, that lie far from all others."""
        warn_of_strays(times, what, self.all_rows("micros"), self.sources)

    def leave_out(self, dropped: Mapping[str, NDArray[np.int64]]) -> None:
        """Count rows, by their numbers, that had no reason so far but have one now."""
        self.dropped = dropped
        for reason, numbers in dropped.items():
            self.reasons.update({reason: len(numbers), None: -len(numbers)})

    def nothing_usable(self, found: str) -> WorkloadError:
        """The error where no workload can be made; `found` is what was found, with {} for the number of rows."""
        rows = account(self.reasons)
        said, reasons = found.format(f"{rows['read']:,} rows"), describe_reasons(rows)
        return WorkloadError(f"{self.sources[0].path}: {said}{f' ({reasons})' if reasons else ''}")

    def quarantine(self) -> None:
        """Sort the rows that are not used into quarantine."""
        if bad := self.reasons.total() - self.reasons[None]:
            with self.watch(f"sorting {bad:,} rows into quarantine"):
                store_quarantine(self.session, self.all_rows("raw"), self.dropped, self.folder / "quarantine")

    def finish(self, workload: Workload) -> Workload:
        """Write the workload, with what became of the rows, and the quarantine, and put both in place."""
        self.progress(f"writing {self.out}", "")
        sources = dict.fromkeys(source for group in self.groups for source in group)
        about = [{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources]
        workload = replace(workload, rows=account(self.reasons), sources=tuple(about))
        quarantine = read_quarantine(self.folder / "quarantine", [source.name for source in self.sources])
        write_workload(workload, self.folder / "workload", quarantine)
        if self.out.exists():
            self.out.rename(self.folder / "replaced")
        (self.folder / "workload").rename(self.out)
        return workload


@contextmanager
def open_workshop(
    spark: sql.SparkSession,
    groups: Sequence[Inputs],
    out: Path,
    time_zone: str,
    partitions: int | None,
    progress: TraceProgress,
) -> Iterator[Workshop]:
    """A workshop for groups of inputs (`find_groups`), whose times without a zone are in one and the same.

    Clears away what killed processes have left of theirs. Raises WorkloadError where an input is missing, empty or damaged, or `out`
    holds something else.
    """
    out = out.resolve()
    check_room(out)
    found = find_groups(groups)
    with folder_beside(out) as folder, _blaming([source for group in found for source in group]):
        yield Workshop(partitioned(spark, partitions, time_zone), folder, out, found, progress)


def size_of(sources: Sequence[Source]) -> str:
    """How much files are, for a step of the progress."""
    return f"{sum(source.bytes for source in sources) / 2**20:.1f} MiB"


def check_room(out: Path) -> None:
    """Raise WorkloadError unless `out` is free, an empty folder, or a workload and nothing else."""
    if not os.path.exists(out):  # nor can it, with a name that is too long: `folder_beside` says so
        return
    if not out.is_dir():
        raise WorkloadError(f"{out}: is a file; give a new folder")
    try:
        files = json.loads((out / "manifest.json").read_bytes())["files"]
        own = {Path(name).parts[0] for name in files} | {"manifest.json"}
    except (OSError, ValueError, TypeError, KeyError):
        own = set()
    other = sorted({entry.name for entry in out.iterdir()} - own)
    if other:
        raise WorkloadError(f"{out}: holds '{other[0]}', which is no part of a workload; give an empty or new folder")


@contextmanager
def folder_beside(out: Path) -> Iterator[Path]:
    """A folder beside `out`, so that a rename can move what is made there, and so that a cluster's workers see it too.

    What killed processes left of theirs for `out` is cleared away.
    """
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(claimed_folder(out.parent, f".{out.name}.", ".unfinished"))
        except OSError as error:
            raise WorkloadError(f"{out}: cannot be written ({error.strerror})") from None
        yield folder


@contextmanager
def _blaming(sources: Sequence[Source]) -> Iterator[None]:
    """Where Spark fails because of a file, say which and why: one that does not unpack, or a value that no type of Spark holds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        for source in sources:
            if (damage := source.damage()) is not None:
                raise WorkloadError(f"{source.path}: {damage}") from None
        if read := re.search(r"reading file (?:file:)?(/\S+)", str(error)):
            file = original(Path(unquote(read[1].rstrip("."))))
            raise WorkloadError(f"{file}: cannot be read ({cause(error)})") from None
        raise
