"""The workplace of a pipeline: a folder beside the one that it writes, and the common steps of all pipelines."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.base.private import PURPOSE
from sim.files.directories import Directory, on_disk
from sim.files.nested import read_nested, write_nested
from sim.files.stores import is_store, temporary_in
from sim.spark import sql
from sim.workloads.format.folder import KEPT_ROWS, write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.traces.judging import RangeJudge, Rules, beyond_kernels
from sim.workloads.traces.kept import Appending, join_groups, made_with, read_kept, write_kept
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.log_rows import read_log
from sim.workloads.traces.output_room import check_room, folder_beside
from sim.workloads.traces.parquet_fields import beyond_parquet
from sim.workloads.traces.quarantine import (
    PART_LINES,
    Drops,
    QuarantinePart,
    account,
    check_form,
    describe_reasons,
    dropped_before,
    quarantined,
)
from sim.workloads.traces.ranges import cut_files, cut_parquet
from sim.workloads.traces.readers.broker_lines import LogReader
from sim.workloads.traces.rows import names_in
from sim.workloads.traces.session import blaming, how_far, partitioned, watched
from sim.workloads.traces.shelves import Piece, Shelf
from sim.workloads.traces.sources import Inputs, Source, find_groups, link_sources
from sim.workloads.traces.spark_tasks import TaskItem, TaskResult, TaskWork, file_in_tasks, in_tasks, unseen
from sim.workloads.traces.strays import DayCounts, warn_of_strays
from sim.workloads.traces.time_kernels import example_of
from sim.workloads.traces.times import example_time
from sim.workloads.traces.trace_options import TraceOptions

MANY_ROWS = 4_000_000
"""More usable rows than these are divided among tasks."""
LASTING_BYTES = 1 << 30
"""Files with more bytes than these are not read again if a process is killed after that."""
# Called with the present step and, repeatedly, with its progress ("" at its start).
TraceProgress = Callable[[str, str], None]


_ALL = TraceOptions()


@dataclass(frozen=True)
class TraceTable:
    """Files of one layout, and the rules for their rows.

    `rules` do it by the fields `used`; where kernels cannot read them, `expressions` have Spark read the links in a folder and validate
    what they find. `expected` is for `check_form`. A `reader` turns the lines of a log into rows, in this process.
    """

    layout: Layout
    used: tuple[str, ...]
    rules: Rules
    expressions: Callable[[sql.SparkSession, Path], sql.DataFrame]
    expected: Mapping[str, str] = field(default_factory=dict)
    beside: Layout | None = None
    reader: LogReader | None = None

    @property
    def uncovered(self) -> str | None:
        """What kernels do not read of it, or of a table `beside` it that the expressions read too."""
        if self.beside is not None and self.beside.kind == "parquet":
            return "places in Parquet are not read by Arrow kernels"
        return beyond_kernels(self.layout) or (None if self.beside is None else beyond_kernels(self.beside))


@dataclass(eq=False)
class Workshop:
    """A pipeline at work, in a `folder` beside `out`, on input files in groups.

    Without a Spark session it works in this process alone. The rows validated so far are on `shelves`, all that it has read on
    `read_shelves`, by group. `reasons` counts them by the reason why they are not used, None for those that are, `left_out` the lines
    of logs that are no rows. `dropped` has the numbers of rows that were given a reason later.
    When `appending`, the groups begin with the files whose rows are kept. Tasks exchange files in a folder of a `store`, if any.
    If it is `lasting`, what is found in each of the `steps` that have ended is in the folder too, for a process that continues.
    `kind` is that of the trace.
    """

    spark: sql.SparkSession | None
    folder: Path
    out: Path
    groups: Sequence[Sequence[Source]]
    progress: TraceProgress
    time_zone: str = "UTC"
    partitions: int | None = None
    appending: Appending | None = None
    store: Directory | None = None
    lasting: bool = False
    kind: str = ""
    steps: int = 0
    shelves: list[Shelf] = field(default_factory=list)
    read_shelves: dict[int, Shelf] = field(default_factory=dict)
    reasons: Counter[str | None] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    dropped: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def work(self) -> Directory:
        """Where tasks keep what they exchange."""
        return on_disk(self.folder) if self.store is None else self.store

    @cached_property
    def tables(self) -> Directory:
        """Where tasks put the workload's files."""
        return self.work.below("workload")

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
            first, sources = self._new(group)
            link_sources(sources, folder, first)
        return folder

    def _first(self, group: int) -> int:
        """The number of a group's first file."""
        return sum(map(len, self.groups[:group]))

    def _new(self, group: int) -> tuple[int, Sequence[Source]]:
        """The files of a group whose rows are not kept, and the number of the first one."""
        old = self.appending.old(group) if self.appending else 0
        return self._first(group) + old, self.groups[group][old:]

    def judge(self, table: TraceTable, what: str) -> Shelf:
        """The rows of the next group, which are `what`, validated.

        Raises WorkloadError where a file is empty, or most rows are not in the layout.
        """
        first, sources = self._new(len(self.shelves))
        shelf = self.read(table, len(self.shelves), f"reading {what} ({_size_of(sources)})")
        new = Shelf(shelf.folder, [piece for piece in shelf.pieces if piece.source >= first])
        check_form(new, table.layout, sources, table.expected, first, partial(self._example, table.layout))
        self.shelves.append(shelf)
        for (reason, _), rows in shelf.faults.items():
            self.reasons[reason] += rows
        return shelf

    def read(self, table: TraceTable, group: int, step: str) -> Shelf:
        """The rows of a group, validated, behind those that are kept; no error where they are not in the layout."""
        folder = self.work.below(f"judged-{group}")
        kept = list[Piece]()
        if self.appending and self.appending.kept and self.appending.growing[group]:
            kept = self.appending.kept.shelve(group, self._first(group), Path(folder.path))
        shelf = Shelf(folder, [*kept, *(self._pieces(table, group, folder, step) if self._new(group)[1] else ())])
        self.read_shelves[group] = shelf
        return shelf

    def _pieces(self, table: TraceTable, group: int, folder: Directory, step: str) -> list[Piece]:
        """The rows of a group's new files, validated, which go to the folder."""
        first, sources = self._new(group)
        uncovered = table.uncovered
        if table.reader is not None:
            if uncovered:
                raise WorkloadError(
                    f"{sources[0].path}: {uncovered}, nor by the reader of --format {table.layout.name}"
                )
            report = partial(self.progress, step)
            report("")
            pieces, without = read_log(sources, first, table.layout.encoding, table.reader, table.rules, folder, report)
            self.left_out += without
            return pieces
        if uncovered and table.layout.beyond_expressions:
            raise WorkloadError(f"{sources[0].path}: {uncovered}, which alone read {table.layout.beyond_expressions}")
        names = [names_in(source.path, table.layout, table.used) for source in sources]
        if table.layout.kind == "parquet":
            odd = (beyond_parquet(source.path, table.layout) for source in sources)
            uncovered = uncovered or next(filter(None, odd), None)
        if uncovered and self.spark is None:
            raise WorkloadError(f"{sources[0].path}: {uncovered}; give --engine spark, which reads them")
        report = partial(self.progress, f"{step} by {'Spark expressions' if uncovered else 'Arrow kernels'}")
        report("")
        if uncovered:
            judged, numbered = table.expressions(self.session, self.link(group)), table.layout.kind == "parquet"
            with watched(self.session, report) as rows:
                return file_in_tasks(judged, folder, table.layout.header, numbered, rows)
        cores = 1 if self.spark is None else self.spark.sparkContext.defaultParallelism
        if table.layout.kind == "parquet":
            ranges = cut_parquet(sources, first)
        else:
            ranges = cut_files(sources, names, first, self.partitions, cores)
        judge = RangeJudge(table.layout, table.used, table.rules, folder)
        found = self._each(lambda part: ((piece := judge(part)).lines, vars(piece)), ranges, report)
        return [Piece(**piece) for piece in found]

    def each(self, work: TaskWork[TaskItem], items: Sequence[TaskItem], step: str) -> list[TaskResult]:
        """What a step finds in each item, by Spark's tasks or in this process."""
        self.progress(step, "")
        return self._each(work, items, partial(self.progress, step))

    def _each(
        self, work: TaskWork[TaskItem], items: Sequence[TaskItem], report: Callable[[str], None]
    ) -> list[TaskResult]:
        if not self.lasting:
            return self._done(work, items, report)
        self.steps += 1
        step = self.folder / f"step-{self.steps}"
        if not step.exists():
            found = self._done(work, items, report)
            write_nested(step.with_suffix(".new"), found)
            step.with_suffix(".new").replace(step)
        known: list[TaskResult] = read_nested(step)
        return known

    def _done(
        self, work: TaskWork[TaskItem], items: Sequence[TaskItem], report: Callable[[str], None]
    ) -> list[TaskResult]:
        if self.spark is not None:
            with watched(self.spark, report) as rows:
                return in_tasks(self.spark, work, items, rows)
        results, rows_done, began = list[TaskResult](), 0, time.monotonic()
        for done, item in enumerate(items, 1):
            rows_here, found = work(item)
            results.append(found)
            rows_done += rows_here
            report(how_far(done, len(items), rows_done, time.monotonic() - began))
        return results

    def _example(self, layout: Layout) -> str:
        return example_time(self.session, layout) if beyond_kernels(layout) else example_of(layout)

    def warn_of_strays(self, per_day: DayCounts, what: str) -> None:
        """Warn of times of rows, `rows_per_day`, which are `what`, that lie far from all others."""
        warn_of_strays(per_day, what, self.shelves, self.sources)

    def leave_out(self, dropped: Mapping[str, NDArray[np.int64]]) -> None:
        """Put rows, by their numbers, into quarantine that had no reason so far but have one now."""
        self.dropped = dropped
        self.count({reason: len(numbers) for reason, numbers in dropped.items()})

    def count(self, late: Mapping[str, int]) -> None:
        """Count rows that had no reason so far but have one now."""
        for reason, rows in late.items():
            self.reasons.update({reason: rows, None: -rows})

    def quarantine(self, drops: Drops) -> list[TaskResult]:
        """The SHA-256 of the files in `tables` with the rows that are not used, `drops` among them, which tasks write."""
        lines = sum(piece.lines for shelf in self.shelves for piece in shelf.pieces)
        work = QuarantinePart(self.shelves, drops, [source.name for source in self.sources], self.tables)
        return self.each(work, range(-(-lines // PART_LINES)), "writing the quarantine")

    def nothing_usable(self, found: str) -> WorkloadError:
        """The error where no workload can be made; `found` is what was found, with {} for the number of rows."""
        rows = account(self.reasons, self.left_out)
        said, reasons = found.format(f"{rows['read']:,} rows"), describe_reasons(rows["quarantined"])
        return WorkloadError(f"{self.sources[0].path}: {said}{f' ({reasons})' if reasons else ''}")

    def finish(
        self,
        workload: Workload,
        parts: Mapping[str, str] | None = None,
        origins: Mapping[str, Sequence[int]] | None = None,
    ) -> Workload:
        """Write the workload, with what became of the rows, and the quarantine, and put both in place.

        `origins` are the groups of which tables are made, by default all. Where there are `parts`, files with their SHA-256, they are
        in `tables` already, and the quarantine among them.
        """
        self.progress(f"writing {self.out}", "")
        sources = dict.fromkeys(source for group in self.groups for source in group)
        about = [{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources]
        workload = replace(
            workload,
            rows=account(self.reasons, self.left_out),
            sources=tuple(about),
            lineage=self._lineage(workload, origins or {}),
        )
        if parts is None:
            names = [source.name for source in self.sources]
            quarantine = quarantined(self.shelves, dropped_before(self.dropped), names)
            write_workload(workload, self.folder / "workload", quarantine)
        else:
            if self.store is not None:
                self.tables.fetch(parts, self.folder / "workload")
            write_workload(workload, self.folder / "workload", parts=parts)
        if self.appending:
            growing = self.appending.growing
            groups = [
                (sources, self.read_shelves.get(group) if growing[group] else None, self._first(group))
                for group, sources in enumerate(self.groups)
            ]
            write_kept(self.folder / "workload" / KEPT_ROWS, self.appending.made, groups)
        if self.out.exists():
            self.out.rename(self.folder / "replaced")
        (self.folder / "workload").rename(self.out)
        return workload

    def _lineage(self, workload: Workload, origins: Mapping[str, Sequence[int]]) -> Raw:
        """The command, the version, and by table the names of the files of which it is made; options are those of the generator."""
        files = [[source.name for source in group] for group in self.groups]
        tables = {
            table: list(dict.fromkeys(name for group in origins.get(table, range(len(files))) for name in files[group]))
            for table, rows in workload.counts.items()
            if rows
        }
        return {"command": f"prepare {self.kind}", "version": version("brokersim"), "tables": tables}


@contextmanager
def open_workshop(
    spark: sql.SparkSession | None,
    groups: Sequence[Inputs],
    out: Path,
    time_zone: str,
    partitions: int | None,
    progress: TraceProgress,
    options: TraceOptions = _ALL,
    how: tuple[str, Raw, Sequence[bool]] = ("", {}, ()),
) -> Iterator[Workshop]:
    """A workshop for groups of inputs (`find_groups`), whose times without a zone are in one and the same.

    Without a Spark session it works in this process. `how` rows are read: their kind, layouts, and which groups take more files when
    they are appended.

    It continues what a killed process did with more than `LASTING_BYTES` in the same way, and removes other leftovers. Raises
    WorkloadError where an input is missing, empty or damaged, `out` contains something else, or a machine of the cluster does not
    see them.
    """
    work, (kind, layouts, growing) = options.work, how
    made = made_with(kind, layouts, asdict(options))
    appending = Appending(made, growing) if options.append else None
    if work is not None and not is_store(work):
        raise WorkloadError(
            f"--work '{work}': expected a URL such as s3://bucket/folder; without it, work is done beside --out"
        )
    if work is not None and appending is not None:
        raise WorkloadError("--append: keeps rows beside the workload, so --work cannot be a store")
    out = out.resolve()
    check_room(out)
    found = joined = find_groups(groups)
    if appending is not None:
        appending = replace(appending, kept=read_kept(out, appending.made))
        joined = join_groups(appending, found)
    size = sum(source.bytes for source in {source for group in joined for source in group})
    lasting = size > LASTING_BYTES and work is None
    sums = [[source.sha256 for source in group] for group in joined]
    with (
        folder_beside(out, json.dumps([made, sums]) if lasting else "") as folder,
        _lasting(folder),
        blaming(spark, [source for group in found for source in group]),
        ExitStack() as stack,
    ):
        store = None if work is None else stack.enter_context(temporary_in(work))
        if spark is not None and not str(spark.sparkContext.master).startswith("local"):
            files = {source.path: source.bytes for group in found for source in group}
            if (missing := unseen(spark, files, store or on_disk(folder))) is not None:
                raise WorkloadError(
                    f"{missing}: all machines of a cluster read the files and write what they find, so files are to be in a store or "
                    "on storage that all share, at the same paths, and so is the workload, unless --work names a store"
                )
        yield Workshop(spark, folder, out, joined, progress, time_zone, partitions, appending, store, lasting, kind)


@contextmanager
def _lasting(folder: Path) -> Iterator[None]:
    """Keep a folder only where the body is interrupted, or fails for another reason than its input."""
    try:
        yield
    except WorkloadError:
        (folder / PURPOSE).unlink(missing_ok=True)
        raise
    (folder / PURPOSE).unlink(missing_ok=True)


def _size_of(sources: Sequence[Source]) -> str:
    """The size of files as text, for progress."""
    return f"{sum(source.bytes for source in sources) / 2**20:.1f} MiB"
