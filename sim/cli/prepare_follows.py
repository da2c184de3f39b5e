"""`brokersim prepare follows`: turn a record of follows and events into a workload of interests and publications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sim.base.errors import InputError, unknown
from sim.cli import prepare_options as options
from sim.cli.options import argument, grouped, option

if TYPE_CHECKING:
    from sim.workloads.traces.follow_tables import Trace
    from sim.workloads.traces.layouts import Layout
    from sim.workloads.traces.sources import Inputs

Span = Literal["day", "month"] | None
Tables = dict[str, tuple[list[str] | None, str | None]]
"""The files and columns of follows, and those of events."""


def layouts() -> list[tuple[str, str]]:
    """The public data sets, and the layouts of files."""
    from sim.workloads.traces.follow_tables import PRESETS

    return options.layouts(PRESETS.values())


@grouped
def follows(
    out: options.Out,
    folder: Annotated[Path | None, argument("[FOLDER]", "The folder of the public data set named by --format.")] = None,
    format: Annotated[
        str | None,
        option(
            "NAME",
            "A public data set by its name, with its folder; or the layout of the files of --follows and --events. "
            "[what the first of them look like]",
        ),
    ] = None,
    follows: Annotated[
        list[str] | None, option("FILE", "Files, or patterns, of follows (which user follows which topic).")
    ] = None,
    events: Annotated[
        list[str] | None, option("FILE", "Files, or patterns, of events (what is published when).")
    ] = None,
    follows_columns: Annotated[
        str | None,
        option(
            "NAMES",
            "The fields of follows: user, topic and perhaps kind, since and until; in order (_ skips one) or by their "
            "names in the file, such as user=follower,topic=followed.",
        ),
    ] = None,
    events_columns: Annotated[
        str | None, option("NAMES", "The fields of events, in the same form: time, topic and perhaps publisher.")
    ] = None,
    *,
    text: options.LayoutOptions,
    spread: Annotated[
        Span, option("", "Event times give only a day or a month: draw the time within it, by row and seed.")
    ] = None,
    period: Annotated[str, option("TIME", "The period of event rates.")] = "1d",
    span: options.Window,
    sample: Annotated[float, option("", "Use only the follows of a random share of the users.", min=0, max=1)] = 1.0,
    seed: Annotated[int, option("", "Seed of the random draws.", min=0)] = 1,
    size: Annotated[int, option("", "Size of a publication, in bytes.", min=0)] = 100,
    append: options.Append = False,
    spark: options.SparkOptions,
) -> None:
    """Turn follows and events into a workload: interests and their changes, publications, event rates.

    Either a FOLDER with --format, or --follows and --events.
    """
    from sim.base.units import parse_duration
    from sim.workloads.models.follow_log import unfollowed
    from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
    from sim.workloads.traces.follow_tables import PRESETS
    from sim.workloads.traces.sources import find_groups
    from sim.workloads.traces.workshop import check_room

    check_room(out)  # report typing mistakes before Spark takes seconds to start
    try:
        seconds = parse_duration(period)
    except ValueError as error:
        raise InputError(f"--period: {error}") from None
    tables = {"follows": (follows, follows_columns), "events": (events, events_columns)}
    if folder is not None or format in PRESETS:
        trace = _preset(format, folder, tables, text, spread)
    else:
        trace = _free(format, tables, text, spread)
    chosen = FollowOptions(span.micros(trace.time_zone), size, seconds, sample, seed, append=append)
    sources = [source for group in find_groups([inputs for _, inputs in trace.tables]) for source in group]
    with spark.started(sources, [table.layout for table, _ in trace.tables]) as (session, more):
        workload = prepare_follows(session, trace, out, chosen, **more)
    nobody = unfollowed(workload)
    typer.echo(
        f"{out}: {options.rows_said(workload)}; {len(workload.users):,} users, {len(workload.topics):,} topics, "
        f"{len(workload.interests.indices):,} interests, {len(workload.subscription_events):,} changes, "
        f"{len(workload.publications):,} publications{f' ({nobody:,} on topics that nobody follows)' if nobody else ''}"
    )


def _preset(
    format: str | None, folder: Path | None, tables: Tables, text: options.LayoutOptions, spread: Span
) -> Trace:
    """A public data set, for which only the folder and the time zone are options."""
    from sim.workloads.traces.follow_tables import PRESETS, preset_trace

    if folder is None:
        raise InputError(f"--format {format} needs the folder of its files")
    if format is None:
        raise InputError(f"--format ({', '.join(PRESETS)}) is needed: which data set is in the folder {folder}")
    if format not in PRESETS:
        raise InputError(f"--format: {unknown('data set', format, PRESETS)}")
    said: dict[str, object] = {name: files for name, (files, _) in tables.items()}
    said |= {f"{name}-columns": columns for name, (_, columns) in tables.items()}
    said |= {**text.texts, "time-format": text.time_format, "spread": spread}
    for name, value in said.items():
        if value not in (None, []):
            raise InputError(f"--{name}: has no effect with --format {format}, which defines the contents of its files")
    return preset_trace(format, folder, text.time_zone)


def _free(format: str | None, tables: Tables, text: options.LayoutOptions, spread: Span) -> Trace:
    """Files of any layout, whose fields the options name."""
    from sim.workloads.traces.follow_tables import free_trace
    from sim.workloads.traces.layouts import lay_over

    plain = {name: _plain(f"--{name}", files, format) for name, (files, _) in tables.items()}
    # otherwise report that there are none
    lines = [layout for layout, _ in plain.values() if layout.kind == "text"] or [plain["follows"][0]]
    laid: dict[str, tuple[Layout, Inputs]] = {}
    for name, (layout, files) in plain.items():
        columns = tables[name][1]
        if columns is None:
            raise InputError(f"--{name}-columns is needed to know the fields of {files[0]}")
        over = {**(text.texts if layout in lines else {}), **text.times}
        laid[name] = lay_over(layout, columns=columns, option=f"--{name}-columns", **over), files
    return free_trace(laid["follows"], laid["events"], spread)


def _plain(option: str, files: list[str] | None, format: str | None) -> tuple[Layout, Inputs]:
    """The files of an option and their layout: named by `format`, or detected from the first file."""
    from sim.workloads.traces.follow_tables import PRESETS
    from sim.workloads.traces.layouts import PLAIN, guess_layout
    from sim.workloads.traces.sources import find_sources

    if not files:
        raise InputError(f"{option} is needed, or a folder and its --format ({', '.join(PRESETS)})")
    if format is not None and format not in PLAIN:
        raise InputError(f"--format: {unknown('layout', format, [*PLAIN, *PRESETS])}")
    return guess_layout(find_sources(files)[0].path) if format is None else PLAIN[format], files
