"""`brokersim prepare`: raw traces to workloads, by Spark."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.base.errors import InputError
from sim.cli import prepare_events, prepare_follows
from sim.cli import prepare_options as options
from sim.cli.terminal import listing

if TYPE_CHECKING:
    from sim.workloads.traces.checkins import Box
    from sim.workloads.traces.layouts import Layout

app = typer.Typer(no_args_is_help=True, help="Turn raw traces into workloads.")


class Publishing(StrEnum):
    """The event that makes a publication."""

    VISIT = "per-visit"
    CHECKIN = "per-check-in"


class Consistent(StrEnum):
    """How regularly a user has to check in."""

    MONTHLY = "monthly"


def layouts() -> list[tuple[str, str]]:
    """Those of files of check-ins."""
    from sim.workloads.traces.layouts import LAYOUTS

    return options.layouts(LAYOUTS.values())


@app.command(cls=listing("Layouts", layouts))
def checkins(
    inputs: options.Inputs,
    out: options.Out,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=options.FORMAT),
    ] = None,
    columns: options.Columns = None,
    delimiter: options.Delimiter = None,
    header: options.Header = None,
    quote: options.Quote = None,
    time_format: options.TimeFormat = None,
    time_zone: options.TimeZone = None,
    places: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Files with the positions of places, for check-ins that only name a place."),
    ] = None,
    places_columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Fields of these files, such as place,latitude,longitude.")
    ] = None,
    cell: Annotated[float, typer.Option(min=1e-4, help="Side of a grid cell, in degrees.")] = 1.0,
    bounding_box: Annotated[
        str | None,
        typer.Option(
            metavar="S,W,N,E", help="Use only positions in this box, in degrees; or us-paper: 30,-126,50,-66."
        ),
    ] = None,
    from_: options.From = None,
    to: options.To = None,
    min_visits: Annotated[int, typer.Option(min=0, help="Use only users with at least this many visits.")] = 0,
    consistent: Annotated[
        Consistent | None, typer.Option(help="Use only users who check in in every month, from the first to the last.")
    ] = None,
    sample: Annotated[float, typer.Option(min=0, max=1, help="Use only a random share of the users.")] = 1.0,
    friends: Annotated[int, typer.Option(min=0, help="Number of friends drawn for each user.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws.")] = 1,
    publications: Annotated[Publishing, typer.Option(help="What a user publishes.")] = Publishing.VISIT,
    size: Annotated[int, typer.Option(min=0, help="Size of a publication, in bytes.")] = 100,
    master: options.Master = "local[*]",
    partitions: options.Partitions = None,
    driver_memory: options.DriverMemory = "1g",
    quiet: options.Quiet = False,
) -> None:
    """Turn files of check-ins into a location workload: cells as topics, visits, drawn friends, publications.

    A check-in has a user, a time, and a latitude and longitude, or a space that holds both, or a place.
    """
    from sim.spark import spark_session
    from sim.workloads.traces.checkins import check_layouts
    from sim.workloads.traces.layouts import LAYOUTS
    from sim.workloads.traces.pipeline import CheckinOptions, prepare_checkins
    from sim.workloads.traces.quarantine import describe_reasons
    from sim.workloads.traces.sources import find_sources
    from sim.workloads.traces.user_filters import UserFilters
    from sim.workloads.traces.workshop import check_room

    box = _box(bounding_box)
    check_room(out)
    sources = find_sources(inputs)  # report typing mistakes before Spark takes seconds to start
    over = options.LayoutOptions(columns, delimiter, header, quote, time_format or (), time_zone)
    layout = options.choose_layout(format, LAYOUTS, sources, over)
    located = _places(places, places_columns, layout)
    check_layouts(layout, located and located[1])
    window = options.time_span(from_, to, layout.time_zone)
    filters = UserFilters(sample, consistent.value if consistent else None, min_visits)
    chosen = CheckinOptions(window, size, cell, box, filters, friends, seed, publications.value)
    with options.progress_lines(quiet) as progress:
        progress(f"starting Spark ({master})", "")
        with spark_session(master, driver_memory, options.short(sources)) as spark:
            paths = [source.path for source in sources]
            workload = prepare_checkins(
                spark, paths, out, layout, chosen, places=located, partitions=partitions, progress=progress
            )
    rows = workload.rows or {}
    reasons = describe_reasons(rows)
    typer.echo(
        f"{out}: {rows['read']:,} rows read, {rows['kept']:,} kept, {rows['read'] - rows['kept']:,} quarantined"
        f"{f' ({reasons})' if reasons else ''}; {len(workload.topics):,} cells, {len(workload.users):,} users, "
        f"{len(workload.movements):,} visits, {len(workload.publications):,} publications"
    )


def _places(files: list[str] | None, columns: str | None, checkins: Layout) -> tuple[list[Path], Layout] | None:
    """The files of places and their layout: that of the preset, else the check-ins' own but for the columns."""
    from sim.workloads.traces.layouts import PLACE_LAYOUTS, guess_layout, lay_over
    from sim.workloads.traces.sources import find_sources

    if not files:
        if columns is not None:
            raise InputError("--places-columns: describes the files of --places, which is not given")
        return None
    sources = find_sources(files)
    guess = guess_layout(sources[0].path)
    alike = replace(checkins, columns=()) if guess.kind == checkins.kind else guess
    layout = PLACE_LAYOUTS.get(checkins.name, alike)
    return [source.path for source in sources], lay_over(layout, columns=columns, option="--places-columns")


app.command(cls=listing("Layouts", prepare_events.layouts))(prepare_events.events)
app.command(cls=listing("Data sets and layouts", prepare_follows.layouts))(prepare_follows.follows)


def _box(text: str | None) -> Box | None:
    from sim.workloads.traces.checkins import BOXES, Box

    if text is None or text in BOXES:
        return None if text is None else BOXES[text]
    try:
        south, west, north, east = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--bounding-box '{text}': expected S,W,N,E in degrees or a name ({', '.join(BOXES)})"
        ) from None
    return Box(south, west, north, east)
