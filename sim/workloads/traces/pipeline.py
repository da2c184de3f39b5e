"""The whole way from files of check-ins to a location workload on disk: Spark reads and judges, numpy does the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sim.errors import WorkloadError
from sim.randomness import Streams
from sim.workloads.location import (
    LARGEST_CELL,
    SMALLEST_CELL,
    Cells,
    Visits,
    location_workload,
    merge_checkins,
    number_cells,
    publish_each,
)
from sim.workloads.tables import strings
from sim.workloads.traces import checkins as stages
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import count_rows, describe, load_quarantine
from sim.workloads.traces.rows import number_lines, read_rows
from sim.workloads.traces.session import partitioned, watched
from sim.workloads.traces.sources import Source, find_sources, link_sources
from sim.workloads.traces.workshop import Progress, blaming, check_room, iso, put_in_place, workshop
from sim.workloads.workload import DAY, Publications, Workload, write_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LARGEST = 2**31 - 1
_DAY = int(DAY) * 1_000_000

Publishing = Literal["per-visit", "per-check-in"]


def prepare_checkins(
    spark: SparkSession,
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    layout: Layout,
    *,
    cell: float = 1.0,
    box: stages.Box | None = None,
    window: tuple[int, int] | None = None,
    friends: int = 4,
    seed: int = 1,
    publications: Publishing = "per-visit",
    size: int = 100,
    partitions: int | None = None,
    progress: Progress = lambda step, detail: None,
) -> Workload:
    """Write the location workload of these check-ins to the folder `out` and return it.

    `inputs` are files and patterns (`find_sources`); `cell` is the side of a cell in degrees; `window` is [first, end) in µs
    since 1970; each user gets `friends` friends; a publication has `size` bytes. The files are the same bytes for any number
    of partitions and cores. `out` appears when it is complete; a workload that stands there is replaced. Raises WorkloadError
    where an input is missing, empty or damaged, more than half of the rows are not in this layout, no row is usable, or `out`
    holds something else.
    """
    limits = {
        "cell": (cell, SMALLEST_CELL, LARGEST_CELL),
        "friends": (friends, 0, _LARGEST),
        "size": (size, 0, _LARGEST),
    }
    for name, (value, least, most) in limits.items():
        if not least <= value <= most:
            raise WorkloadError(f"{name} is {value}, allowed: {least} to {most}")
    out = out.resolve()
    check_room(out)
    sources = find_sources(inputs)
    total = sum(source.bytes for source in sources)
    with workshop(out) as folder:
        link_sources(sources, folder / "inputs")
        with blaming(sources):
            session = partitioned(spark, partitions, total, layout.time_zone)
            _judge(session, folder, layout, box, window, sources, progress)
        progress("finding visits", "")
        checkins = stages.load_checkins(folder / "judged" / "usable=true")
        quarantine = load_quarantine(folder / "judged" / "usable=false", [source.name for source in sources])
        rows = count_rows(quarantine, len(checkins))
        if not len(checkins):
            raise WorkloadError(f"{sources[0].path}: none of {rows['read']:,} rows is usable ({describe(rows)})")
        visits, cells, published, first_day, days = _drive(checkins, cell, publications, size)
        workload = location_workload(
            visits,
            cells,
            strings(checkins.names),
            published,
            friends=friends,
            streams=Streams(seed),
            origin=iso(first_day * _DAY),
            horizon=days * DAY,
            generator={
                "name": "checkins",
                "format": layout.name,
                "bounding_box": None if box is None else [box.south, box.west, box.north, box.east],
                "window": None if window is None else [iso(time) for time in window],
                "publications": publications,
                "size": size,
            },
            sources=[{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources],
            rows=rows,
        )
        progress(f"writing {out}", "")
        write_workload(workload, folder / "workload", quarantine)
        put_in_place(folder / "workload", out, folder / "replaced")
    return workload


def _judge(
    spark: SparkSession,
    folder: Path,
    layout: Layout,
    box: stages.Box | None,
    window: tuple[int, int] | None,
    sources: Sequence[Source],
    progress: Progress,
) -> None:
    """Fill `folder`/judged with typed rows, apart by whether they are usable."""
    size = sum(source.bytes for source in sources) / 2**20
    step = f"reading {len(sources)} file{'s' * (len(sources) > 1)} ({size:.1f} MiB)"
    with watched(spark, partial(progress, step)):
        rows = read_rows(spark, folder / "inputs", layout, stages.USED)
        stages.judge_rows(rows, layout, box, window).write.parquet(str(folder / "parsed"))
        rows = number_lines(spark.read.parquet(str(folder / "parsed")), layout)
        read = stages.check_form(rows, layout, sources)
    with watched(spark, partial(progress, f"looking for duplicates in {read:,} rows")):
        judged = stages.mark_duplicates(rows).selectExpr("*", "reason IS NULL AS usable")
        judged.write.partitionBy("usable").parquet(str(folder / "judged"))


def _drive(
    checkins: stages.Checkins, side: float, publications: Publishing, size: int
) -> tuple[Visits, Cells, Publications, int, int]:
    """Visits, cells, publications, the first day (since 1970, UTC) and the number of days."""
    first, last = int(checkins.micros.min()) // _DAY, int(checkins.micros.max()) // _DAY
    cells, cell = number_cells(checkins.latitude, checkins.longitude, side)
    time = (checkins.micros - first * _DAY) / 1e6
    single = Visits(time, checkins.user, cell, checkins.latitude, checkins.longitude)
    visits = merge_checkins(single)
    if publications == "per-check-in":
        single = single.rows(np.lexsort((single.cell, single.user, single.time)))
    return visits, cells, publish_each(visits if publications == "per-visit" else single, size), first, last - first + 1
