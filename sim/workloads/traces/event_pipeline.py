"""The pipeline from a broker's log to an event workload on disk: rows are validated in tasks, numpy does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.spark import sql
from sim.workloads.format.workload import Workload
from sim.workloads.models.event_log import event_workload
from sim.workloads.traces import events as stages
from sim.workloads.traces.broker_logs import BROKER_LOGS
from sim.workloads.traces.event_kernels import EventRules
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.many_events import prepare_many_events
from sim.workloads.traces.rows import read_rows
from sim.workloads.traces.sources import Inputs
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.trace_options import TraceOptions
from sim.workloads.traces.workshop import MANY_ROWS, TraceProgress, TraceTable, open_workshop


@dataclass(frozen=True)
class EventOptions(TraceOptions):
    """Which part of a log is used, and how.

    `words` maps the log's words to actions (`action_words`); `persistent`, `filters` and `live` as in `event_workload`.
    """

    words: Mapping[str, int] = field(default_factory=stages.action_words)
    persistent: bool = False
    filters: str = "exact"
    live: bool = False


def prepare_events(
    spark: sql.SparkSession | None,
    inputs: Inputs,
    out: Path,
    layout: Layout,
    options: EventOptions | None = None,
    *,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the event workload of this log to the folder `out` and return it.

    Without a Spark session, this process does it alone.
    `inputs` are files and patterns (`find_sources`). The files are the same bytes for any number of partitions and cores. `out`
    appears when it is complete; an existing workload is replaced. Raises WorkloadError where an input is missing, empty or damaged,
    the layout lacks a field, more than half of the rows are not in it, no row is usable, or `out` contains something else.
    """
    layout.require("events", stages.needed_fields(layout), others=stages.event_fields(layout))
    options = options or EventOptions()
    if layout.kind == "log" and options.append:
        raise WorkloadError(
            f"--append: has no effect with --format {layout.name}, which is read as a whole; name all its files"
        )
    how = ("events", {"layout": layout.parameters()}, (True,))
    with open_workshop(spark, [inputs], out, layout.time_zone, partitions, progress, options, how) as shop:
        shelf = shop.judge(_table(layout, options), "events")
        generator: Raw = {
            "name": "events",
            **layout.parameters(),
            "actions": {word: list(stages.ACTIONS)[code] for word, code in options.words.items()},
            "window": options.span,
            "sessions": "persistent" if options.persistent else "clean",
            "filters": options.filters,
            **({"live_filters": True} if options.live else {}),
            "size": options.size,
        }
        queues_qos_0 = layout.kind == "log" and BROKER_LOGS[layout.name].queues_qos_0
        if shelf.rows > MANY_ROWS:
            spread, flags = layout.kind == "log", stages.flags_of(layout)
            found = prepare_many_events(shop, shelf, flags, generator, spread, queues_qos_0)
            if found is not None:
                return found
        progress("following sessions", "")
        log, row, row_delivered, seen = stages.load_events(shelf, layout)
        times = [table.micros for table in (log.control, log.published, log.delivered)]
        shop.warn_of_strays(rows_per_day(times), "events")
        workload, unused = event_workload(
            log,
            persistent=options.persistent,
            filters=options.filters,
            live=options.live,
            queues_qos_0=queues_qos_0,
            generator={**generator, **({"seen": seen} if seen else {})},
        )
        del log  # which is as large as the workload
        shop.leave_out({"retained": row_delivered[unused.retained], "no_effect": row[unused.no_effect]})
        if workload is None:
            raise shop.nothing_usable("none of {} is usable")
        return shop.finish(workload)


def _table(layout: Layout, options: EventOptions) -> TraceTable:
    """How events are validated."""
    used = stages.event_fields(layout)

    def expressions(spark: sql.SparkSession, folder: Path) -> sql.DataFrame:
        rows = read_rows(spark, folder, layout, used)
        return stages.judge_events(rows, layout, options.words, options.window, options.size)

    rules = EventRules(layout, options.words, options.window, options.size)
    reader = BROKER_LOGS[layout.name].reader() if layout.kind == "log" else None
    return TraceTable(layout, used, rules, expressions, stages.EVENT_EXPECTED, reader=reader)
