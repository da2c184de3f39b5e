"""The whole way from a broker's log to an event workload on disk: Spark reads and judges, numpy does the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WorkloadError
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import Workload
from sim.workloads.models.event_log import event_workload
from sim.workloads.traces import events as stages
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import account, check_form, describe_reasons, read_quarantine, store_quarantine
from sim.workloads.traces.rows import number_lines, read_rows
from sim.workloads.traces.session import partitioned, store, watched
from sim.workloads.traces.sources import find_sources, link_sources
from sim.workloads.traces.strays import warn_of_strays
from sim.workloads.traces.workshop import TraceProgress, blaming, check_room, iso, put_in_place, workshop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prepare_events(
    spark: SparkSession,
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    layout: Layout,
    *,
    words: Mapping[str, int] | None = None,
    window: tuple[int | None, int | None] = (None, None),
    persistent: bool = False,
    filters: bool = False,
    size: int = 100,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the event workload of this log to the folder `out` and return it.

    `inputs` are files and patterns (`find_sources`); `words` say which action a word of the log stands for (`action_words`);
    `window` is [first, end) in µs since 1970; `persistent` and `filters` as in `event_workload`; a publication has `size` bytes
    where the log does not tell. The files are the same bytes for any number of partitions and cores. `out` appears when it is
    complete; a workload that stands there is replaced. Raises WorkloadError where an input is missing, empty or damaged, the
    layout lacks a field, more than half of the rows are not in it, no row is usable, or `out` holds something else.
    """
    layout.require("events", stages.NEEDED)
    if not 0 <= size < 2**31:
        raise WorkloadError(f"--size is {size}, allowed: 0 to {2**31 - 1}")
    words, out = stages.action_words() if words is None else words, out.resolve()
    check_room(out)
    sources = find_sources(inputs)
    total = sum(source.bytes for source in sources)
    with workshop(out) as folder, blaming(sources):
        link_sources(sources, folder / "inputs")
        session = partitioned(spark, partitions, layout.time_zone)
        step = f"reading {len(sources)} file{'s' * (len(sources) > 1)} ({total / 2**20:.1f} MiB)"
        with watched(session, partial(progress, step)):
            rows = read_rows(session, folder / "inputs", layout, stages.FIELDS)
            judged = store(stages.judge_events(rows, layout, words, window, size), folder / "parsed")
            rows = number_lines(judged, layout)
            reasons = check_form(rows, layout, sources, stages.EVENT_EXPECTED)
        with watched(session, partial(progress, f"sorting out {reasons.total():,} rows")):
            usable = rows.where("reason IS NULL").select(*stages.EVENT_COLUMNS)
            usable.write.partitionBy("table").parquet(str(folder / "usable"))
        progress("following sessions", "")
        log, row = stages.load_events(folder / "usable")
        warn_of_strays([table.micros for table in (log.control, log.published, log.delivered)], "events", rows, sources)
        workload, effect = event_workload(
            log,
            persistent=persistent,
            filters=filters,
            generator={
                "name": "events",
                **layout.parameters(),
                "actions": {word: list(stages.ACTIONS)[code] for word, code in words.items()},
                "window": [None if time is None else iso(time) for time in window],
                "sessions": "persistent" if persistent else "clean",
                "mqtt_filters": filters,
                "size": size,
            },
            sources=[{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources],
        )
        del log  # which is as large as the workload
        dropped = {"no_effect": row[~effect]}
        reasons.update({"no_effect": len(dropped["no_effect"]), None: -len(dropped["no_effect"])})
        counts = account(reasons)
        if workload is None:
            raise WorkloadError(
                f"{sources[0].path}: none of {counts['read']:,} rows is usable ({describe_reasons(counts)})"
            )
        bad = counts["read"] - counts["kept"]
        if bad:
            with watched(session, partial(progress, f"sorting {bad:,} rows into quarantine")):
                store_quarantine(session, rows, dropped, folder / "quarantine")
        progress(f"writing {out}", "")
        quarantine = read_quarantine(folder / "quarantine", [source.name for source in sources])
        write_workload(replace(workload, rows=counts), folder / "workload", quarantine)
        put_in_place(folder / "workload", out, folder / "replaced")
    return replace(workload, rows=counts)
