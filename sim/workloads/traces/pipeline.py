"""The pipeline from files of check-ins to a location workload on disk: rows are validated in tasks, numpy does the rest."""

from __future__ import annotations

from pathlib import Path

from sim.base.ordering import lex_order
from sim.base.randomness import Streams
from sim.files.parquet import strings
from sim.spark import sql
from sim.workloads.format.workload import DAY, Publications, Workload
from sim.workloads.models.location import (
    Cells,
    Visits,
    location_workload,
    merge_checkins,
    number_cells,
    publish_each,
)
from sim.workloads.traces import checkins as stages
from sim.workloads.traces.checkin_kernels import CheckinRules
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.judging import beyond_kernels
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.many_checkins import prepare_many
from sim.workloads.traces.places import PlaceRules, store_places
from sim.workloads.traces.rows import read_rows
from sim.workloads.traces.sources import Inputs
from sim.workloads.traces.strays import rows_per_day
from sim.workloads.traces.times import iso
from sim.workloads.traces.user_filters import calendar_months, select_users
from sim.workloads.traces.workshop import MANY_ROWS, TraceProgress, TraceTable, Workshop, open_workshop

_DAY = int(DAY) * 1_000_000


def prepare_checkins(
    spark: sql.SparkSession | None,
    inputs: Inputs,
    out: Path,
    layout: Layout,
    options: CheckinOptions | None = None,
    *,
    places: tuple[Inputs, Layout] | None = None,
    partitions: int | None = None,
    progress: TraceProgress = lambda step, detail: None,
) -> Workload:
    """Write the location workload of these check-ins to the folder `out` and return it.

    Without a Spark session, this process does it alone.
    `inputs` are files and patterns (`find_sources`); `places`, files with their layout, give the positions of the check-ins'
    places. The files are the same bytes for any number of partitions and cores. `out` appears when it is complete; an existing
    workload is replaced. Raises WorkloadError where an input is missing, empty or damaged, a layout lacks a field, more than half
    of the rows are not in it, no row is usable, or `out` contains something else.
    """
    options = options or CheckinOptions()
    stages.check_layouts(layout, places and places[1])
    streams = Streams(options.seed)
    groups = [inputs, places[0] if places else ()]
    layouts = {"layout": layout.parameters(), "places": places and places[1].parameters()}
    how = ("checkins", layouts, (True, False))
    with open_workshop(spark, groups, out, layout.time_zone, partitions, progress, options, how) as shop:
        shelf = shop.judge(_table(shop, layout, places and places[1], options), "check-ins")
        box = options.box
        generator = {
            "name": "checkins",
            **layout.parameters(),
            "places": places and places[1].parameters(),
            "bounding_box": None if box is None else [box.south, box.west, box.north, box.east],
            "window": options.span,
            **vars(options.filters),
            "publications": options.publications,
            "size": options.size,
        }
        if shelf.rows > MANY_ROWS:
            return prepare_many(shop, shelf, options, streams, layout.time_zone, generator)
        progress(f"looking for duplicates in {shop.reasons.total():,} rows", "")
        loaded = stages.load_checkins(shelf)
        ends = (int(loaded.micros.min()), int(loaded.micros.max())) if len(loaded) else (0, 0)
        checkins, dropped = select_users(
            loaded,
            options.filters,
            months=calendar_months(*ends, options.window, layout.time_zone),
            side=options.cell,
            streams=streams,
        )
        del loaded
        shop.leave_out(dropped)
        if not len(checkins):
            raise shop.nothing_usable("none of {} is usable")
        shop.warn_of_strays(rows_per_day([checkins.micros]), "check-ins")
        progress("finding visits", "")
        visits, cells, published, first_day, days = _drive(checkins, options)
        names = strings(checkins.names)
        del checkins, dropped  # hundreds of megabytes, where there are millions
        workload = location_workload(
            visits,
            cells,
            names,
            published,
            options.friends,
            streams,
            generator,
            horizon=days * DAY,
            origin=iso(first_day * _DAY),
        )
        return shop.finish(workload)


def _table(shop: Workshop, layout: Layout, places: Layout | None, options: CheckinOptions) -> TraceTable:
    """How check-ins are validated, with places in the second group of files where there are some."""
    used, lookup = stages.checkin_fields(layout, places), None
    covered = places is not None and places.kind != "parquet"
    if places is not None and covered and not (beyond_kernels(layout) or beyond_kernels(places)):
        fields = ("place", *stages.position_fields(places))
        table = TraceTable(
            places, fields, PlaceRules(fields), lambda spark, folder: read_rows(spark, folder, places, fields)
        )
        lookup = store_places(shop.read(table, 1, "reading places"), shop.work)

    def expressions(spark: sql.SparkSession, folder: Path) -> sql.DataFrame:
        rows = stages.read_checkins(spark, folder, layout, None if places is None else (shop.link(1), places))
        return stages.judge_checkins(rows, layout, options.box, options.window)

    rules = CheckinRules(layout, options.box, options.window, lookup)
    return TraceTable(layout, used, rules, expressions, stages.CHECKIN_EXPECTED, places)


def _drive(checkins: stages.Checkins, options: CheckinOptions) -> tuple[Visits, Cells, Publications, int, int]:
    """Visits, cells, publications, the first day (since 1970, UTC) and the number of days."""
    first, last = int(checkins.micros.min()) // _DAY, int(checkins.micros.max()) // _DAY
    cells, cell = number_cells(checkins.latitude, checkins.longitude, options.cell)
    time = (checkins.micros - first * _DAY) / 1e6
    single = Visits(time, checkins.user, cell, checkins.latitude, checkins.longitude)
    visits = merge_checkins(single)
    each = visits
    if options.publications == "per-check-in":
        each = single.rows(lex_order(single.time, single.user, single.cell))
    return visits, cells, publish_each(each, options.size), first, last - first + 1
