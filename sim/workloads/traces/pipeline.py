"""The whole way from files of check-ins to a location workload on disk: Spark reads and judges, numpy does the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.workloads.format.folder import write_workload
from sim.workloads.format.workload import DAY, Publications, Workload
from sim.workloads.models.location import (
    LARGEST_CELL,
    SMALLEST_CELL,
    Cells,
    Visits,
    location_workload,
    merge_checkins,
    number_cells,
    publish_each,
)
from sim.workloads.traces import checkins as stages
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import account, check_form, describe_reasons, read_quarantine, store_quarantine
from sim.workloads.traces.rows import number_lines
from sim.workloads.traces.session import partitioned, store, watched
from sim.workloads.traces.sources import find_sources, link_sources
from sim.workloads.traces.strays import warn_of_strays
from sim.workloads.traces.user_filters import UserFilters, select_users
from sim.workloads.traces.workshop import TraceProgress, blaming, check_room, iso, put_in_place, workshop

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
    places: tuple[Sequence[str | os.PathLike[str]], Layout] | None = None,
    cell: float = 1.0,
    box: stages.Box | None = None,
    window: stages.Window = (None, None),
    filters: UserFilters | None = None,
    friends: int = 4,
    seed: int = 1,
    publications: Publishing = "per-visit",
    size: int = 100,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the location workload of these check-ins to the folder `out` and return it.

    `inputs` are files and patterns (`find_sources`); `places`, more of them and their layout, tell where the places of the
    check-ins are; `cell` is the side of a cell in degrees; `window` is [first, end) in µs since 1970; each user gets `friends`
    friends; a publication has `size` bytes. The files are the same bytes for any number of partitions and cores. `out` appears
    when it is complete; a workload that stands there is replaced. Raises WorkloadError where an input is missing, empty or
    damaged, a layout lacks a field, more than half of the rows are not in it, no row is usable, or `out` holds something else.
    """
    limits = {
        "cell": (cell, SMALLEST_CELL, LARGEST_CELL),
        "friends": (friends, 0, _LARGEST),
        "size": (size, 0, _LARGEST),
    }
    for name, (value, least, most) in limits.items():
        if not least <= value <= most:
            raise WorkloadError(f"--{name} is {value}, allowed: {least} to {most}")
    stages.check_layouts(layout, places and places[1])
    filters, streams, out = filters or UserFilters(), Streams(seed), out.resolve()
    check_room(out)
    read, more = find_sources(inputs), find_sources(places[0]) if places else []
    sources = [*read, *more]
    with workshop(out) as folder, blaming(sources):
        link_sources(read, folder / "inputs")
        link_sources(more, folder / "places")
        session = partitioned(spark, partitions, layout.time_zone)
        total = sum(source.bytes for source in sources)
        step = f"reading {len(sources)} file{'s' * (len(sources) > 1)} ({total / 2**20:.1f} MiB)"
        with watched(session, partial(progress, step)):
            rows = stages.read_checkins(
                session, folder / "inputs", layout, (folder / "places", places[1]) if places else None
            )
            judged = store(stages.judge_checkins(rows, layout, box, window), folder / "parsed")
            rows = number_lines(judged, layout)
            reasons = check_form(rows, layout, read, stages.CHECKIN_EXPECTED)
        with watched(session, partial(progress, f"looking for duplicates in {reasons.total():,} rows")):
            rows.where("reason IS NULL").select(*stages.CHECKIN_COLUMNS).write.parquet(str(folder / "usable"))
            checkins, dropped = select_users(
                stages.load_checkins(folder / "usable"),
                filters,
                window=window,
                zone=layout.time_zone,
                side=cell,
                streams=streams,
            )
        for reason, numbers in dropped.items():
            reasons[reason], reasons[None] = len(numbers), reasons[None] - len(numbers)
        counts = account(reasons)
        if not len(checkins):
            raise WorkloadError(
                f"{read[0].path}: none of {counts['read']:,} rows is usable ({describe_reasons(counts)})"
            )
        warn_of_strays([checkins.micros], "check-ins", rows, read)
        if reasons.total() > reasons[None]:
            with watched(
                session, partial(progress, f"sorting {reasons.total() - reasons[None]:,} rows into quarantine")
            ):
                store_quarantine(session, rows, dropped, folder / "quarantine")
        progress("finding visits", "")
        visits, cells, published, first_day, days = _drive(checkins, cell, publications, size)
        names = strings(checkins.names)
        del checkins, dropped  # hundreds of megabytes, where there are millions
        workload = location_workload(
            visits,
            cells,
            names,
            published,
            friends=friends,
            streams=streams,
            origin=iso(first_day * _DAY),
            horizon=days * DAY,
            generator={
                "name": "checkins",
                **layout.parameters(),
                "places": places and places[1].parameters(),
                "bounding_box": None if box is None else [box.south, box.west, box.north, box.east],
                "window": [None if time is None else iso(time) for time in window],
                **vars(filters),
                "publications": publications,
                "size": size,
            },
            sources=[{"file": source.name, "sha256": source.sha256, "bytes": source.bytes} for source in sources],
            rows=counts,
        )
        progress(f"writing {out}", "")
        write_workload(
            workload, folder / "workload", read_quarantine(folder / "quarantine", [source.name for source in read])
        )
        put_in_place(folder / "workload", out, folder / "replaced")
    return workload


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
