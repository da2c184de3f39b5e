"""The pipeline from files of follows and events to a workload on disk: rows are validated in tasks, numpy does the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.base.randomness import Streams
from sim.base.units import format_duration
from sim.spark import sql
from sim.workloads.format.workload import DAY, Workload
from sim.workloads.models.follow_log import follow_workload
from sim.workloads.traces import follows as stages
from sim.workloads.traces.follow_kernels import FollowRules, LabelRules
from sim.workloads.traces.follow_tables import FollowTable, Trace, follow_origins
from sim.workloads.traces.many_follows import prepare_many_follows
from sim.workloads.traces.rows import read_rows
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.trace_options import TraceOptions
from sim.workloads.traces.user_filters import check_sample, sampled
from sim.workloads.traces.workshop import MANY_ROWS, TraceProgress, TraceTable, Workshop, open_workshop


@dataclass(frozen=True)
class FollowOptions(TraceOptions):
    """Which part of a trace is used, and how: the `window` applies to publications.

    Event rates are per `period` (s); the follows used are those of a share `sample` of the users; `seed` is for all draws.
    """

    period: float = DAY
    sample: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.period < math.inf:
            raise WorkloadError(f"--period is {format_duration(self.period)}, allowed: above 0")
        check_sample(self.sample)
        super().__post_init__()


def prepare_follows(
    spark: sql.SparkSession | None,
    trace: Trace,
    out: Path,
    options: FollowOptions | None = None,
    *,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the workload of this trace to the folder `out` and return it.

    Without a Spark session, this process does it alone. The files are the same bytes for any number of partitions and cores. `out`
    appears when it is complete; an existing workload is replaced. Raises WorkloadError where an input is missing, empty or damaged,
    more than half of a table's rows are not in its layout, nothing is published or followed, or `out` contains something else.
    """
    options = options or FollowOptions()
    streams = Streams(options.seed)
    tables = [table for table, _ in trace.tables]
    groups = [*(inputs for _, inputs in trace.tables), trace.labels[1] if trace.labels else ()]
    how = ("follows", trace.parameters(), (True,) * len(groups))
    with open_workshop(spark, groups, out, trace.time_zone, partitions, progress, options, how) as shop:
        shelves = [_judged(shop, table, options, streams) for table in tables]
        labels: dict[str, dict[str, str]] = {}
        if trace.labels:
            of = trace.labels[0]
            table = TraceTable(of.layout, of.used, LabelRules(of), partial(stages.read_labels, labels=of))
            labels = {of.kind: stages.load_labels(shop.read(table, len(tables), "reading the names of topics"))}
        generator = {
            "name": "follows",
            **trace.parameters(),
            "window": options.span,
            "sample": options.sample,
            "size": options.size,
        }
        about: Raw = {"period": options.period, "size": options.size, "generator": generator}
        if sum(shelf.rows for shelf in shelves) > MANY_ROWS:
            return prepare_many_follows(shop, shelves, tables, labels, options.sample, streams, about)
        progress(f"joining follows of {shop.reasons[None]:,} rows", "")
        log = stages.load_follows(shelves, tables, labels)
        shop.warn_of_strays(rows_per_day([log.published.micros]), "publications")
        chosen = None if options.sample == 1 else sampled(log.users, options.sample, streams)
        workload, dropped = follow_workload(log, chosen=chosen, seed=options.seed, **about)
        del log  # which is as large as the workload
        shop.leave_out(dropped)
        if workload is None:
            raise shop.nothing_usable("{} have no publication, or no follow")
        return shop.finish(workload, origins=follow_origins(tables))


def _judged(shop: Workshop, table: FollowTable, options: FollowOptions, streams: Streams) -> Shelf:
    """Read and validate the files of the next table."""
    sources = shop.groups[len(shop.shelves)]
    return shop.judge(_table(table, options, streams), ", ".join(source.name for source in sources[:3]))


def _table(table: FollowTable, options: FollowOptions, streams: Streams) -> TraceTable:
    """How the rows of a table are validated."""

    def expressions(spark: sql.SparkSession, folder: Path) -> sql.DataFrame:
        return stages.judge_follows(read_rows(spark, folder, table.layout, table.used), table, options.window, streams)

    rules = FollowRules(table, options.window, streams.key("workload.moments"))
    return TraceTable(table.layout, table.used, rules, expressions, stages.expected_text(table))
