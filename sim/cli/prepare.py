"""`brokersim prepare`: turn raw traces into workloads with Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sim.base.errors import InputError
from sim.cli import prepare_events, prepare_follows
from sim.cli import prepare_options as options
from sim.cli.options import grouped, option
from sim.cli.terminal import listing

if TYPE_CHECKING:
    from sim.workloads.traces.checkins import Box
    from sim.workloads.traces.layouts import Layout

app = typer.Typer(no_args_is_help=True, help="Turn raw traces into workloads.")


def layouts() -> list[tuple[str, str]]:
    """The layouts of check-in files."""
    from sim.workloads.traces.layouts import LAYOUTS

    return options.layouts(LAYOUTS.values())


@app.command(cls=listing("Layouts", layouts))
@grouped
def checkins(
    inputs: options.Inputs,
    out: options.Out,
    format: Annotated[str | None, option("NAME", options.FORMAT)] = None,
    columns: options.Columns = None,
    *,
    text: options.LayoutOptions,
    places: Annotated[
        list[str] | None, option("FILE", "Files with the positions of places, for check-ins that only name a place.")
    ] = None,
    places_columns: Annotated[
        str | None, option("NAMES", "Fields of these files, such as place,latitude,longitude.")
    ] = None,
    cell: Annotated[float, option("", "Side of a grid cell, in degrees.", min=1e-4)] = 1.0,
    bounding_box: Annotated[
        str | None, option("S,W,N,E", "Use only positions in this box, in degrees; or us-paper: 30,-126,50,-66.")
    ] = None,
    span: options.Window,
    min_visits: Annotated[int, option("", "Use only users with at least this many visits.", min=0)] = 0,
    consistent: Annotated[
        Literal["monthly"] | None,
        option("", "Use only users who check in every month, from the first to the last."),
    ] = None,
    sample: Annotated[float, option("", "Use only a random share of the users.", min=0, max=1)] = 1.0,
    friends: Annotated[int, option("", "Number of friends drawn for each user.", min=0)] = 4,
    seed: Annotated[int, option("", "Seed of the random draws.", min=0)] = 1,
    publications: Annotated[Literal["per-visit", "per-check-in"], option("", "What a user publishes.")] = "per-visit",
    size: Annotated[int, option("", "Size of a publication, in bytes.", min=0)] = 100,
    append: options.Append = False,
    spark: options.SparkOptions,
) -> None:
    """Turn files of check-ins into a location workload: cells as topics, visits, drawn friends, publications.

    A check-in has a user, a time, and a latitude and longitude (or one field with both) or a place.
    """
    from sim.workloads.traces.checkins import check_layouts
    from sim.workloads.traces.layouts import LAYOUTS
    from sim.workloads.traces.pipeline import CheckinOptions, prepare_checkins
    from sim.workloads.traces.sources import find_sources
    from sim.workloads.traces.user_filters import UserFilters
    from sim.workloads.traces.workshop import check_room

    box = _box(bounding_box)
    check_room(out)
    sources = find_sources(inputs)  # report typing mistakes before Spark takes seconds to start
    layout = options.choose_layout(format, LAYOUTS, sources, columns, text)
    located = _places(places, places_columns, layout)
    check_layouts(layout, located and located[1])
    filters = UserFilters(sample, consistent, min_visits)
    chosen = CheckinOptions(
        span.micros(layout.time_zone), size, cell, box, filters, friends, seed, publications, append=append
    )
    with spark.started(sources, [layout, *(located or ())[1:]]) as (session, more):
        paths = [source.path for source in sources]
        workload = prepare_checkins(session, paths, out, layout, chosen, places=located, **more)
    typer.echo(
        f"{out}: {options.rows_said(workload)}; {len(workload.topics):,} cells, {len(workload.users):,} users, "
        f"{len(workload.movements):,} visits, {len(workload.publications):,} publications"
    )


def _places(files: list[str] | None, columns: str | None, checkins: Layout) -> tuple[list[Path], Layout] | None:
    """The files of places and their layout: that of the preset, otherwise the check-ins' layout with other columns."""
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
