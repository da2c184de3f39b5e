"""The workplace of a pipeline: a folder beside the one that it writes, and the common steps of all pipelines."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.base.private import claimed_folder
from sim.files.compression import Damaged
from sim.spark import cause, sql
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.traces.judging import RangeJudge, Rules, beyond_kernels
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import account, check_form, describe_reasons, quarantined
from sim.workloads.traces.ranges import Range, cut_files
from sim.workloads.traces.rows import names_in
from sim.workloads.traces.session import how_far, partitioned, watched
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.sources import Inputs, Source, find_groups, link_sources, original
from sim.workloads.traces.spark_tasks import file_in_tasks, judge_in_tasks
from sim.workloads.traces.strays import warn_of_strays
from sim.workloads.traces.time_kernels import example_of
from sim.workloads.traces.times import Window, example_time, iso

LARGEST_INT32 = 2**31 - 1
# Called with the present step and, repeatedly, with its progress ("" at its start).
TraceProgress = Callable[[str, str], None]


@dataclass(frozen=True)
class TraceOptions:
    """Which part of a trace is used, and how: rows of a `window`, publications of `size` bytes if the trace has no sizes."""

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


@dataclass(frozen=True)
class TraceTable:
    """Files of one layout, and the rules for their rows.

    `rules` do it by the fields `used`; where kernels cannot read them, `expressions` have Spark read the links in a folder and judge
    what they find. `expected` is for `check_form`.
    """

    layout: Layout
    used: tuple[str, ...]
    rules: Rules
    expressions: Callable[[sql.SparkSession, Path], sql.DataFrame]
    expected: Mapping[str, str] = field(default_factory=dict)
    beside: Layout | None = None

    @property
    def uncovered(self) -> str | None:
        """What kernels do not read of it, or of a table `beside` it that the expressions read too."""
        return beyond_kernels(self.layout) or (None if self.beside is None else beyond_kernels(self.beside))


@dataclass(eq=False)
class Workshop:
    """A pipeline at work, in a `folder` beside `out`, on input files in groups.

    Without a Spark session it works in this process alone. The rows that it has read so far are on `shelves`; `reasons` counts them
    by the reason why they are not used, None for those that are; `dropped` has the numbers of rows with a reason that they got late.
    """

    spark: sql.SparkSession | None
    folder: Path
    out: Path
    groups: Sequence[Sequence[Source]]
    progress: TraceProgress
    time_zone: str = "UTC"
    partitions: int | None = None
    shelves: list[Shelf] = field(default_factory=list)
    reasons: Counter[str | None] = field(default_factory=Counter)
    dropped: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def session(self) -> sql.SparkSession:
        """A session that cuts what it reads as options say."""
        assert self.spark is not None
        return partitioned(self.spark, self.partitions, self.time_zone)

    @property
    def sources(self) -> list[Source]:
        """The files whose rows have been read, as rows number them."""
        return [source for group in self.groups[: len(self.shelves)] for source in group]

    def link(self, group: int) -> Path:
        """A folder of links to the files of a group, for Spark to read."""
        folder = self.folder / f"inputs-{group}"
        if not folder.exists():
            link_sources(self.groups[group], folder, sum(map(len, self.groups[:group])))
        return folder

    def judge(self, table: TraceTable, what: str) -> Shelf:
        """The rows of the next group, which are `what`, judged.

        Raises WorkloadError where a file is empty, or most rows are not in the layout.
        """
        number, sources = len(self.shelves), self.groups[len(self.shelves)]
        first = sum(map(len, self.groups[:number]))
        shelf = self.read(table, number, f"reading {what} ({_size_of(sources)})")
        check_form(shelf, table.layout, sources, table.expected, first, partial(self._example, table.layout))
        self.shelves.append(shelf)
        for (reason, _), rows in shelf.faults.items():
            self.reasons[reason] += rows
        return shelf

    def read(self, table: TraceTable, group: int, step: str) -> Shelf:
        """The rows of a group, judged; nothing is said where they are not in the layout."""
        sources, folder = self.groups[group], self.folder / f"judged-{group}"
        folder.mkdir()
        uncovered = table.uncovered
        if uncovered and self.spark is None:
            raise WorkloadError(f"{sources[0].path}: {uncovered}; give --engine spark, which reads them")
        report = partial(self.progress, f"{step} by {'Spark expressions' if uncovered else 'Arrow kernels'}")
        report("")
        if uncovered:
            judged, numbered = table.expressions(self.session, self.link(group)), table.layout.kind == "parquet"
            with watched(self.session, report) as rows:
                return Shelf(folder, file_in_tasks(judged, folder, table.layout.header, numbered, rows))
        names = [names_in(source.path, table.layout, table.used) for source in sources]
        first, cores = sum(map(len, self.groups[:group])), 1
        if self.spark is not None:
            cores = self.spark.sparkContext.defaultParallelism
        ranges = cut_files(sources, names, first, self.partitions, cores)
        judge = RangeJudge(table.layout, table.used, table.rules, folder)
        if self.spark is None:
            return Shelf(folder, list(_one_by_one(judge, ranges, report)))
        with watched(self.spark, report) as rows:
            return Shelf(folder, judge_in_tasks(self.spark, judge, ranges, rows))

    def _example(self, layout: Layout) -> str:
        return example_time(self.session, layout) if beyond_kernels(layout) else example_of(layout)

    def warn_of_strays(self, times: Sequence[NDArray[np.int64]], what: str) -> None:
        """Warn of times (µs since 1970) of rows, which are `what`, that lie far from all others."""
        warn_of_strays(times, what, self.shelves, self.sources)

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

    def finish(self, workload: Workload) -> Workload:
        """Write the workload, with what became of the rows, and the quarantine, and put both in place."""
        self.progress(f"writing {self.out}", "")
        sources = dict.fromkeys(source for group in self.groups for source in group)
        about = [{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources]
        workload = replace(workload, rows=account(self.reasons), sources=tuple(about))
        quarantine = quarantined(self.shelves, self.dropped, [source.name for source in self.sources])
        write_workload(workload, self.folder / "workload", quarantine)
        if self.out.exists():
            self.out.rename(self.folder / "replaced")
        (self.folder / "workload").rename(self.out)
        return workload


@contextmanager
def open_workshop(
    spark: sql.SparkSession | None,
    groups: Sequence[Inputs],
    out: Path,
    time_zone: str,
    partitions: int | None,
    progress: TraceProgress,
) -> Iterator[Workshop]:
    """A workshop for groups of inputs (`find_groups`), whose times without a zone are in one and the same.

    Without a Spark session it works in this process.

    Removes leftovers of killed processes. Raises WorkloadError where an input is missing, empty or damaged, or `out` contains
    something else.
    """
    out = out.resolve()
    check_room(out)
    found = find_groups(groups)
    with folder_beside(out) as folder, _blaming(spark, [source for group in found for source in group]):
        yield Workshop(spark, folder, out, found, progress, time_zone, partitions)


def _one_by_one(judge: RangeJudge, ranges: Sequence[Range], report: Callable[[str], None]) -> Iterator[Piece]:
    """The pieces of ranges, reporting how far they are."""
    began, rows = time.monotonic(), 0
    for done, part in enumerate(ranges, 1):
        piece = judge(part)
        rows += piece.lines
        report(how_far(done, len(ranges), rows, time.monotonic() - began))
        yield piece


def _size_of(sources: Sequence[Source]) -> str:
    """The size of files as text, for progress."""
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
        raise WorkloadError(
            f"{out}: contains '{other[0]}', which is not part of a workload; give an empty or new folder"
        )


@contextmanager
def folder_beside(out: Path) -> Iterator[Path]:
    """A folder beside `out`, so that a rename can move what is made there, and so that a cluster's workers see it too.

    Leftovers of killed processes for `out` are removed.
    """
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(claimed_folder(out.parent, f".{out.name}.", ".unfinished"))
        except OSError as error:
            raise WorkloadError(f"{out}: cannot be written ({error.strerror})") from None
        yield folder


@contextmanager
def _blaming(spark: sql.SparkSession | None, sources: Sequence[Source]) -> Iterator[None]:
    """Where reading fails because of a file, say which and why: one that does not unpack, or a value that no type of Spark holds."""
    errors: tuple[type[Exception], ...] = (Damaged,)
    if spark is not None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        errors = (Damaged, PySparkException, Py4JError)
    try:
        yield
    except errors as error:
        for source in sources:
            if (damage := source.damage()) is not None:
                raise WorkloadError(f"{source.path}: {damage}") from None
        if read := re.search(r"reading file (?:file:)?(/\S+)", str(error)):
            file = original(Path(unquote(read[1].rstrip("."))))
            raise WorkloadError(f"{file}: cannot be read ({cause(error)})") from None
        raise
