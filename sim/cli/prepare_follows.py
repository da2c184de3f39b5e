"""`brokersim prepare follows`: who follows what and what is published on it, made a workload of interests and publications."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.base.errors import InputError, unknown
from sim.cli import prepare_options as options

if TYPE_CHECKING:
    from sim.workloads.format.workload import Workload
    from sim.workloads.traces.layouts import Layout
    from sim.workloads.traces.sources import Inputs


class Span(StrEnum):
    """The resolution of event times, where it is coarser than an instant."""

    DAY = "day"
    MONTH = "month"


def layouts() -> list[tuple[str, str]]:
    """The public data sets, and the layouts of files."""
    from sim.workloads.traces.follow_tables import PRESETS

    return options.layouts(PRESETS.values())


def follows(
    out: options.Out,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="The folder of a public data set that --format names.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A public data set by its name, with its folder; or the layout of the files of --follows and --events. "
            "[what the first of them look like]",
        ),
    ] = None,
    follows: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Files, or patterns, of who follows what.")
    ] = None,
    events: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Files, or patterns, of what is published when.")
    ] = None,
    follows_columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The fields of follows: user, topic and perhaps kind, since and until; in order (_ skips one) or by their "
            "names in the file, such as user=follower,topic=followed.",
        ),
    ] = None,
    events_columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The fields of events, likewise: time, topic and perhaps publisher."),
    ] = None,
    delimiter: options.Delimiter = None,
    header: options.Header = None,
    quote: options.Quote = None,
    time_format: options.TimeFormat = None,
    time_zone: options.TimeZone = None,
    spread: Annotated[
        Span | None,
        typer.Option(help="Event times give only a day or a month: draw the time within it, by row and seed."),
    ] = None,
    period: Annotated[str, typer.Option(metavar="TIME", help="The period that event rates count events in.")] = "1d",
    from_: options.From = None,
    to: options.To = None,
    sample: Annotated[
        float, typer.Option(min=0, max=1, help="Use only the follows of a random share of the users.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws.")] = 1,
    size: Annotated[int, typer.Option(min=0, help="Size of a publication, in bytes.")] = 100,
    master: options.Master = "local[*]",
    partitions: options.Partitions = None,
    driver_memory: options.DriverMemory = "1g",
    quiet: options.Quiet = False,
) -> None:
    """Turn follows and events into a workload: interests and their changes, publications, event rates.

    Either a FOLDER with --format, or --follows and --events.
    """
    from sim.base.units import parse_duration
    from sim.spark import spark_session
    from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
    from sim.workloads.traces.follow_tables import PRESETS, free_trace, preset_trace
    from sim.workloads.traces.layouts import lay_over
    from sim.workloads.traces.sources import find_groups
    from sim.workloads.traces.workshop import check_room

    check_room(out)  # report typing mistakes before Spark takes seconds to start
    try:
        seconds = parse_duration(period)
    except ValueError as error:
        raise InputError(f"--period: {error}") from None
    texts: dict[str, Any] = {"delimiter": delimiter, "header": header, "quote": quote}
    if folder is not None or format in PRESETS:
        if folder is None:
            raise InputError(f"--format {format} takes the folder that its files are in")
        if format is None:
            raise InputError(f"--format ({', '.join(PRESETS)}) is needed: which data set is in the folder {folder}")
        if format not in PRESETS:
            raise InputError(f"--format: {unknown('data set', format, PRESETS)}")
        files = {"follows": follows, "events": events}
        columns = {"follows-columns": follows_columns, "events-columns": events_columns}
        said = {**files, **columns, **texts, "time-format": time_format, "spread": spread}
        for option, value in said.items():
            if value not in (None, []):
                raise InputError(f"--{option}: has no effect with --format {format}, which defines what its files hold")
        trace = preset_trace(format, folder, time_zone)
    else:
        who, what = _plain("--follows", follows, format), _plain("--events", events, format)
        times: dict[str, Any] = {"time_formats": time_format or (), "time_zone": time_zone}
        # Else to hear that there are none
        lines = [layout for layout, _ in (who, what) if layout.kind == "text"] or [who[0]]

        def laid(layout: Layout, files: Inputs, option: str, columns: str | None) -> tuple[Layout, Inputs]:
            if columns is None:
                raise InputError(f"{option} is needed to know the fields of {files[0]}")
            over = texts if layout in lines else {}
            return lay_over(layout, columns=columns, option=option, **over, **times), files

        trace = free_trace(
            laid(*who, "--follows-columns", follows_columns),
            laid(*what, "--events-columns", events_columns),
            spread.value if spread else None,
        )
    window = options.time_span(from_, to, trace.time_zone)
    chosen = FollowOptions(window, size, seconds, sample, seed)
    sources = [source for group in find_groups([inputs for _, inputs in trace.tables]) for source in group]
    with options.progress_lines(quiet) as progress:
        progress(f"starting Spark ({master})", "")
        with spark_session(master, driver_memory, options.short(sources)) as spark:
            workload = prepare_follows(spark, trace, out, chosen, partitions=partitions, progress=progress)
    typer.echo(f"{out}: {_counted(workload)}")


def _plain(option: str, files: list[str] | None, format: str | None) -> tuple[Layout, Inputs]:
    """The files of an option and how they are written: as `format` names it, or as the first file looks."""
    from sim.workloads.traces.follow_tables import PRESETS
    from sim.workloads.traces.layouts import PLAIN, guess_layout
    from sim.workloads.traces.sources import find_sources

    if not files:
        raise InputError(f"{option} is needed, or a folder and its --format ({', '.join(PRESETS)})")
    if format is not None and format not in PLAIN:
        raise InputError(f"--format: {unknown('layout', format, [*PLAIN, *PRESETS])}")
    return guess_layout(find_sources(files)[0].path) if format is None else PLAIN[format], files


def _counted(workload: Workload) -> str:
    from sim.workloads.models.follow_log import unfollowed
    from sim.workloads.traces.quarantine import describe_reasons

    rows = workload.rows or {}
    reasons = describe_reasons(rows)
    nobody = unfollowed(workload)
    return (
        f"{rows['read']:,} rows read, {rows['kept']:,} kept, {rows['read'] - rows['kept']:,} quarantined"
        f"{f' ({reasons})' if reasons else ''}; {len(workload.users):,} users, {len(workload.topics):,} topics, "
        f"{len(workload.interests.indices):,} interests, {len(workload.subscription_events):,} changes, "
        f"{len(workload.publications):,} publications{f' ({nobody:,} on topics that nobody follows)' if nobody else ''}"
    )
