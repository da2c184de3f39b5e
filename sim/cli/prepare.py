"""`brokersim prepare`: turn raw traces into workloads with Spark."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

import sim
from sim.api.trace_options import LayoutOptions, SparkOptions, TimeSpan
from sim.cli import prepare_events, prepare_follows
from sim.cli import prepare_options as options
from sim.cli.options import Quiet, grouped, option
from sim.cli.terminal import listing

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
    text: LayoutOptions,
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
    span: TimeSpan,
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
    spark: SparkOptions,
    quiet: Quiet = False,
) -> None:
    """Turn files of check-ins into a location workload: cells as topics, visits, drawn friends, publications.

    A check-in has a user, a time, and a latitude and longitude (or one field with both) or a place.
    """
    workload = sim.prepare_checkins(
        inputs,
        out,
        format,
        columns,
        layout=text,
        places=places,
        places_columns=places_columns,
        cell=cell,
        bounding_box=bounding_box,
        span=span,
        min_visits=min_visits,
        consistent=consistent,
        sample=sample,
        friends=friends,
        seed=seed,
        publications=publications,
        size=size,
        append=append,
        spark=spark,
        progress=not quiet,
    )
    typer.echo(
        f"{out}: {options.rows_said(workload)}; {len(workload.topics):,} cells, {len(workload.users):,} users, "
        f"{len(workload.movements):,} visits, {len(workload.publications):,} publications"
    )


app.command(cls=listing("Layouts", prepare_events.layouts))(prepare_events.events)
app.command(cls=listing("Data sets and layouts", prepare_follows.layouts))(prepare_follows.follows)
