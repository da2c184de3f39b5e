"""Traces become workloads: check-ins, logs of brokers, and follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from sim.api.trace_options import LayoutOptions, SparkOptions, TimeSpan, choose_layout
from sim.base.errors import InputError, unknown
from sim.base.units import parse_duration
from sim.workloads.format.workload import Workload
from sim.workloads.traces.broker_logs import default_filters
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.checkins import BOXES, Box, check_layouts
from sim.workloads.traces.event_pipeline import EventOptions
from sim.workloads.traces.event_pipeline import prepare_events as events_prepared
from sim.workloads.traces.events import EVENT_LAYOUTS, action_words, event_fields, needed_fields
from sim.workloads.traces.follow_pipeline import FollowOptions
from sim.workloads.traces.follow_pipeline import prepare_follows as follows_prepared
from sim.workloads.traces.follow_tables import PRESETS, Trace, free_trace, preset_trace
from sim.workloads.traces.layouts import LAYOUTS, PLACE_LAYOUTS, PLAIN, Layout, encoded, guess_layout, lay_over
from sim.workloads.traces.output_room import check_room
from sim.workloads.traces.pipeline import prepare_checkins as checkins_prepared
from sim.workloads.traces.sources import Inputs, find_groups, find_sources
from sim.workloads.traces.user_filters import UserFilters

Paths = str | Path | Sequence[str | Path]
"""One or several files, or patterns of files."""
_PLAIN, _ALL_TIMES, _SPARK = LayoutOptions(), TimeSpan(), SparkOptions()
_Spread = Literal["day", "month"] | None
_Tables = dict[str, tuple[list[str], str | None]]
"""The files and columns of follows, and those of events."""


def prepare_checkins(
    inputs: Paths,
    out: str | Path,
    format: str | None = None,
    columns: str | None = None,
    *,
    layout: LayoutOptions = _PLAIN,
    places: Paths | None = None,
    places_columns: str | None = None,
    cell: float = 1.0,
    bounding_box: str | None = None,
    span: TimeSpan = _ALL_TIMES,
    min_visits: int = 0,
    consistent: Literal["monthly"] | None = None,
    sample: float = 1.0,
    friends: int = 4,
    seed: int = 1,
    publications: Literal["per-visit", "per-check-in"] = "per-visit",
    size: int = 100,
    append: bool = False,
    spark: SparkOptions = _SPARK,
    progress: bool = False,
) -> Workload:
    """Turn files of check-ins into a location workload: cells as topics, visits, drawn friends, publications.

    A check-in has a user, a time, and a latitude and longitude (or one field with both) or a place. Rows that cannot be used go to
    the workload's quarantine, each with a reason.

    Args:
        inputs: files, plain or compressed (gzip, bzip2, xz, zstd), or patterns.
        out: the folder to write; a workload already there is replaced.
        format: the layout of the files by its name, such as "gowalla"; detected from the first file if `columns` are given.
        columns: the fields in order, "user,time,latitude,longitude", or by their names in the file, "user=label,time=ts".
        layout: delimiter, header, quotes, formats of times and time zone, where they differ from the format's.
        places: files with the positions of places, for check-ins that only name a place.
        places_columns: the fields of these files.
        cell: the side of a grid cell, in degrees.
        bounding_box: use only positions in this box, "S,W,N,E" in degrees, or "us-paper".
        span: use only rows of this time.
        min_visits: use only users with at least this many visits.
        consistent: "monthly" uses only users who check in every month, from the first to the last.
        sample: use only a random share of the users, from 0 to 1.
        friends: the number of friends drawn for each user.
        seed: the seed of the random draws.
        publications: what a user publishes, "per-visit" or "per-check-in".
        size: the size of a publication, in bytes.
        append: keep the rows beside the workload, so that files of another day can join it by the same call.
        spark: what validates the rows, Spark (by default, on all cores) or this process, and how Spark is started.
        progress: show the steps.

    Returns:
        The workload, as written.

    Raises:
        InputError: where a file, an option or the folder cannot be used.

    Examples:
        >>> people = {"users": 20, "horizon": "7d", "cities": 3}
        >>> rows = sim.generate_checkins("checkins.tsv", people)
        >>> here = sim.SparkOptions(engine="in-process")
        >>> len(sim.prepare_checkins("checkins.tsv", "workload", "gowalla", spark=here).users)
        20
    """
    folder, box = Path(out), _box(bounding_box)
    check_room(folder)
    sources = find_sources(_paths(inputs))  # report typing mistakes before Spark takes seconds to start
    fields = choose_layout(format, LAYOUTS, sources, columns, layout)
    located = _places(_paths(places), places_columns, fields)
    check_layouts(fields, located and located[1])
    filters = UserFilters(sample, consistent, min_visits)
    used = (span.micros(fields.time_zone), size, cell, box, filters, friends, seed, publications)
    chosen = CheckinOptions(*used, append=append, work=spark.work)
    with spark.started(sources, [fields, *(located or ())[1:]], not progress) as (session, more):
        return checkins_prepared(
            session, [source.path for source in sources], folder, fields, chosen, places=located, **more
        )


def prepare_events(
    inputs: Paths,
    out: str | Path,
    format: str | None = None,
    columns: str | None = None,
    *,
    layout: LayoutOptions = _PLAIN,
    actions: str | None = None,
    sessions: Literal["clean", "persistent"] = "clean",
    filters: Literal["exact", "mqtt", "nats"] | None = None,
    live_filters: bool = False,
    size: int = 100,
    span: TimeSpan = _ALL_TIMES,
    append: bool = False,
    spark: SparkOptions = _SPARK,
    progress: bool = False,
) -> Workload:
    r"""Turn a broker's log into a workload: sessions, subscriptions, publications, and the deliveries to check runs against.

    Rows have a time, an action, a client, a topic and, if known, a size in bytes and the publisher of what was delivered.

    Args:
        inputs: files, plain or compressed (gzip, bzip2, xz, zstd), or patterns.
        out: the folder to write; a workload already there is replaced.
        format: the layout of the files by its name; detected from the first file if `columns` are given.
        columns: the fields in order, "time,action,client,topic", or by their names in the file, "time=ts,action=event".
        layout: delimiter, header, quotes, formats of times and time zone, where they differ from the format's.
        actions: the log's words for the actions, "publish=PUB,deliver=OUT"; by default the actions' names.
        sessions: whether subscriptions end with their session ("clean") or are restored in the next one ("persistent").
        filters: which wildcards subscriptions have: none ("exact"), those of MQTT (+, #), or those of NATS (*, >); by default
            as the format has them, exact for files of tables.
        live_filters: keep filters in the workload, for topics that appear in a simulation, instead of the topics that they match.
        size: the size of a publication, in bytes, where the log has none.
        span: use only rows of this time.
        append: keep the rows beside the workload, so that files of another day can join it by the same call.
        spark: what validates the rows, Spark (by default, on all cores) or this process, and how Spark is started.
        progress: show the steps.

    Returns:
        The workload, as written.

    Raises:
        InputError: where a file, an option or the folder cannot be used.

    Examples:
        >>> from pathlib import Path
        >>> log = "0,subscribe,ann,news\n1,publish,bob,news\n2,deliver,ann,news\n"
        >>> _ = Path("log.csv").write_text(log)
        >>> fields = {"columns": "time,action,client,topic", "layout": sim.LayoutOptions(time_format=["epoch"])}
        >>> workload = sim.prepare_events("log.csv", "events", **fields, spark=sim.SparkOptions(engine="in-process"))
        >>> len(workload.publications), len(workload.deliveries)
        (1, 1)
    """
    folder = Path(out)
    check_room(folder)
    sources = find_sources(_paths(inputs))  # report typing mistakes before Spark takes seconds to start
    fields = choose_layout(format, EVENT_LAYOUTS, sources, columns, layout)
    fields.require("events", needed_fields(fields), others=event_fields(fields))
    words = action_words(actions)
    grammar = filters or default_filters(fields)
    if live_filters and grammar == "exact":
        raise InputError("--live-filters: has no effect without wildcards (--filters mqtt, --filters nats)")
    chosen = EventOptions(
        span.micros(fields.time_zone),
        size,
        words,
        sessions == "persistent",
        grammar,
        live_filters,
        append=append,
        work=spark.work,
    )
    with spark.started(sources, [fields], not progress) as (session, more):
        return events_prepared(session, [source.path for source in sources], folder, fields, chosen, **more)


def prepare_follows(
    out: str | Path,
    folder: str | Path | None = None,
    format: str | None = None,
    *,
    follows: Paths | None = None,
    events: Paths | None = None,
    follows_columns: str | None = None,
    events_columns: str | None = None,
    layout: LayoutOptions = _PLAIN,
    spread: _Spread = None,
    period: str = "1d",
    span: TimeSpan = _ALL_TIMES,
    sample: float = 1.0,
    seed: int = 1,
    size: int = 100,
    append: bool = False,
    spark: SparkOptions = _SPARK,
    progress: bool = False,
) -> Workload:
    r"""Turn follows and events into a workload: interests and their changes, publications, event rates.

    Either the folder of a public data set and its name as the format, or files of `follows` and `events`.

    Args:
        out: the folder to write; a workload already there is replaced.
        folder: the folder of a public data set.
        format: a public data set by its name, or the layout of the files of follows and events.
        follows: files, or patterns, of follows (which user follows which topic).
        events: files, or patterns, of events (what is published when).
        follows_columns: the fields of follows: user, topic and perhaps kind, since and until.
        events_columns: the fields of events: time, topic and perhaps publisher.
        layout: delimiter, header, quotes, formats of times and time zone, where they differ from the format's.
        spread: times of events give only a "day" or a "month": draw the time within it, by row and seed.
        period: the period of event rates, such as "1d".
        span: use only rows of this time.
        sample: use only the follows of a random share of the users, from 0 to 1.
        seed: the seed of the random draws.
        size: the size of a publication, in bytes.
        append: keep the rows beside the workload, so that files of another day can join it by the same call.
        spark: what validates the rows, Spark (by default, on all cores) or this process, and how Spark is started.
        progress: show the steps.

    Returns:
        The workload, as written.

    Raises:
        InputError: where a file, an option or the folder cannot be used.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("follows.csv").write_text("ann,jazz\nbob,jazz\n"), Path("events.csv").write_text("2024-05-01,jazz\n")
        >>> tables = {"follows": "follows.csv", "events": "events.csv"}
        >>> fields = {"follows_columns": "user,topic", "events_columns": "time,topic"}
        >>> here = sim.SparkOptions(engine="in-process")
        >>> len(sim.prepare_follows("jazz", **tables, **fields, spark=here).interests.indices)
        2
    """
    check_room(Path(out))  # report typing mistakes before Spark takes seconds to start
    try:
        seconds = parse_duration(period)
    except ValueError as error:
        raise InputError(f"--period: {error}") from None
    tables = {"follows": (_paths(follows), follows_columns), "events": (_paths(events), events_columns)}
    if folder is not None or format in PRESETS:
        trace = _preset(format, None if folder is None else Path(folder), tables, layout, spread)
    else:
        trace = _free(format, tables, layout, spread)
    chosen = FollowOptions(span.micros(trace.time_zone), size, seconds, sample, seed, append=append, work=spark.work)
    sources = [source for group in find_groups([inputs for _, inputs in trace.tables]) for source in group]
    with spark.started(sources, [table.layout for table, _ in trace.tables], not progress) as (session, more):
        return follows_prepared(session, trace, Path(out), chosen, **more)


def _paths(files: Paths | None) -> list[str]:
    return [str(files)] if isinstance(files, str | Path) else [str(file) for file in files or ()]


def _places(files: list[str], columns: str | None, checkins: Layout) -> tuple[Inputs, Layout] | None:
    """The files of places and their layout: that of the preset, otherwise the check-ins' layout with other columns."""
    if not files:
        if columns is not None:
            raise InputError("--places-columns: describes the files of --places, which is not given")
        return None
    sources = find_sources(files)
    guess = guess_layout(sources[0].path)
    alike = replace(checkins, columns=()) if guess.kind == checkins.kind else guess
    layout = PLACE_LAYOUTS.get(checkins.name, alike)
    return [source.path for source in sources], lay_over(layout, columns=columns, option="--places-columns")


def _box(text: str | None) -> Box | None:

    if text is None or text in BOXES:
        return None if text is None else BOXES[text]
    try:
        south, west, north, east = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--bounding-box '{text}': expected S,W,N,E in degrees or a name ({', '.join(BOXES)})"
        ) from None
    return Box(south, west, north, east)


def _preset(format: str | None, folder: Path | None, tables: _Tables, text: LayoutOptions, spread: _Spread) -> Trace:
    """A public data set, for which only the folder and the time zone are options."""
    if folder is None:
        raise InputError(f"--format {format} needs the folder of its files")
    if format is None:
        raise InputError(f"--format ({', '.join(PRESETS)}) is needed: which data set is in the folder {folder}")
    if format not in PRESETS:
        raise InputError(f"--format: {unknown('data set', format, PRESETS)}")
    said: dict[str, object] = {name: files for name, (files, _) in tables.items()}
    said |= {f"{name}-columns": columns for name, (_, columns) in tables.items()}
    said |= {**text.texts, "time-format": text.time_format, "encoding": text.encoding, "spread": spread}
    for name, value in said.items():
        if value not in (None, []):
            raise InputError(f"--{name}: has no effect with --format {format}, which defines the contents of its files")
    return preset_trace(format, folder, text.time_zone)


def _free(format: str | None, tables: _Tables, text: LayoutOptions, spread: _Spread) -> Trace:
    """Files of any layout, whose fields the options name."""
    plain = {name: _plain(f"--{name}", files, format) for name, (files, _) in tables.items()}
    # otherwise report that there are none
    lines = [layout for layout, _ in plain.values() if layout.kind == "text"] or [plain["follows"][0]]
    laid: dict[str, tuple[Layout, Inputs]] = {}
    for name, (layout, files) in plain.items():
        columns = tables[name][1]
        if columns is None:
            raise InputError(f"--{name}-columns is needed to know the fields of {files[0]}")
        over = {**(text.texts if layout in lines else {}), **text.times}
        layout = lay_over(layout, columns=columns, option=f"--{name}-columns", **over)
        laid[name] = encoded(layout, text.encoding if layout.kind != "parquet" else None), files
    return free_trace(laid["follows"], laid["events"], spread)


def _plain(option: str, files: list[str], format: str | None) -> tuple[Layout, Inputs]:
    """The files of an option and their layout: named by `format`, or detected from the first file."""
    if not files:
        raise InputError(f"{option} is needed, or a folder and its --format ({', '.join(PRESETS)})")
    if format is not None and format not in PLAIN:
        raise InputError(f"--format: {unknown('layout', format, [*PLAIN, *PRESETS])}")
    return guess_layout(find_sources(files)[0].path) if format is None else PLAIN[format], files
