"""The whole way from files of follows and of what is published to a workload on disk: Spark reads and judges, numpy does the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.base.units import format_duration
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import DAY, Workload
from sim.workloads.models.follow_log import follow_workload
from sim.workloads.traces import follows as stages
from sim.workloads.traces.follow_tables import Trace
from sim.workloads.traces.quarantine import account, check_form, describe_reasons, read_quarantine, store_quarantine
from sim.workloads.traces.rows import number_lines, read_rows
from sim.workloads.traces.session import partitioned, store, watched
from sim.workloads.traces.sources import find_groups, link_sources
from sim.workloads.traces.strays import warn_of_strays
from sim.workloads.traces.user_filters import sampled
from sim.workloads.traces.workshop import TraceProgress, blaming, check_room, iso, put_in_place, workshop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class FollowOptions:
    """What of a trace is used, and for what.

    Event rates count in `period` (s); `window` is [first, end) in µs since 1970 for what is published; the follows used are those of
    a share `sample` of the users; `seed` is that of all draws; a publication has `size` bytes. Raises WorkloadError.
    """

    period: float = DAY
    window: tuple[int | None, int | None] = (None, None)
    sample: float = 1.0
    seed: int = 1
    size: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.period < math.inf:
            raise WorkloadError(f"--period is {format_duration(self.period)}, allowed: above 0")
        if not 0 < self.sample <= 1:
            raise WorkloadError(f"--sample is {self.sample:g}, allowed: above 0 and up to 1")
        if not 0 <= self.size < 2**31:
            raise WorkloadError(f"--size is {self.size}, allowed: 0 to {2**31 - 1}")


def prepare_follows(
    spark: SparkSession,
    trace: Trace,
    out: Path,
    options: FollowOptions | None = None,
    *,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the workload of this trace to the folder `out` and return it.

    The files are the same bytes for any number of partitions and cores. `out` appears when it is complete; a workload that stands
    there is replaced. Raises WorkloadError where an input is missing, empty or damaged, more than half of a table's rows are not in
    its layout, nothing is published or followed, or `out` holds something else.
    """
    options = options or FollowOptions()
    streams, out = Streams(options.seed), out.resolve()
    check_room(out)
    tables = [table for table, _ in trace.tables]
    *read, named = find_groups([*(inputs for _, inputs in trace.tables), trace.labels[1] if trace.labels else ()])
    sources = [source for group in read for source in group]
    with workshop(out) as folder, blaming([*sources, *named]):
        session = partitioned(spark, partitions, trace.time_zone)
        judged: list[DataFrame] = []
        reasons, first = Counter[str | None](), 0
        for n, (table, group) in enumerate(zip(tables, read, strict=True)):
            link_sources(group, folder / f"inputs-{n}", first)
            mebibytes = sum(source.bytes for source in group) / 2**20
            step = f"reading {', '.join(source.name for source in group[:3])} ({mebibytes:.1f} MiB)"
            with watched(session, partial(progress, step)):
                rows = read_rows(session, folder / f"inputs-{n}", table.layout, table.used)
                typed = store(stages.judge_follows(rows, table, options.window, streams), folder / f"parsed-{n}")
                rows = number_lines(typed, table.layout)
                reasons += check_form(rows, table.layout, group, stages.expected_text(table), first)
                usable = rows.where("reason IS NULL").select("source", "line", *stages.loaded(table))
                usable.write.parquet(str(folder / f"usable-{n}"))
            judged.append(rows)
            first += len(group)
        labels: dict[str, dict[str, str]] = {}
        if trace.labels:
            with watched(session, partial(progress, "reading what topics are called")):
                link_sources(named, folder / "labels")
                labels = {trace.labels[0].kind: stages.read_labels(session, folder / "labels", trace.labels[0])}
        progress(f"joining follows of {reasons[None]:,} rows", "")
        log = stages.load_follows([folder / f"usable-{n}" for n in range(len(tables))], tables, labels)
        warn_of_strays([log.published.micros], "publications", _all(judged, "micros"), sources)
        workload, dropped = follow_workload(
            log,
            period=options.period,
            size=options.size,
            chosen=None if options.sample == 1 else sampled(log.users, options.sample, streams),
            generator={
                "name": "follows",
                **trace.parameters(),
                "window": [None if time is None else iso(time) for time in options.window],
                "sample": options.sample,
                "size": options.size,
            },
            seed=options.seed,
            sources=[
                {"file": source.name, "sha256": source.sha256, "bytes": source.bytes}
                for source in dict.fromkeys([*sources, *named])
            ],
        )
        del log  # which is as large as the workload
        for reason, numbers in dropped.items():
            reasons.update({reason: len(numbers), None: -len(numbers)})
        counts = account(reasons)
        bad = counts["read"] - counts["kept"]
        if workload is None:
            raise WorkloadError(
                f"{sources[0].path}: of {counts['read']:,} rows none tells of a publication, or none of a follow"
                f"{f' ({describe_reasons(counts)})' if bad else ''}"
            )
        if bad:
            with watched(session, partial(progress, f"sorting {bad:,} rows into quarantine")):
                store_quarantine(session, _all(judged, "raw"), dropped, folder / "quarantine")
        progress(f"writing {out}", "")
        workload = replace(workload, rows=counts)
        quarantine = read_quarantine(folder / "quarantine", [source.name for source in sources])
        write_workload(workload, folder / "workload", quarantine)
        put_in_place(folder / "workload", out, folder / "replaced")
    return workload


def _all(tables: Sequence[DataFrame], column: str) -> DataFrame:
    """The rows of those tables that have this column: their source, line and reason, and it."""
    having = [rows.select("source", "line", "reason", column) for rows in tables if column in rows.columns]
    return reduce(lambda one, other: one.unionByName(other), having)
