"""`brokersim prepare events`: any broker's log of who subscribed to, published and received what, made an event workload."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli import prepare_options as options

if TYPE_CHECKING:
    from sim.workloads.format.workload import Workload


class Sessions(StrEnum):
    """What becomes of subscriptions when a client disconnects."""

    CLEAN = "clean"
    PERSISTENT = "persistent"


def layouts() -> list[tuple[str, str]]:
    """Those of logs."""
    from sim.workloads.traces.events import EVENT_LAYOUTS

    return options.layouts(EVENT_LAYOUTS.values())


def events(
    inputs: options.Inputs,
    out: options.Out,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=options.FORMAT),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The fields in order: time,action,client,topic and perhaps size and publisher (_ skips one); or by their names in "
            "the file, such as time=ts,action=event,client,topic (Parquet, JSON lines, and text with a header).",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    header: options.Header = None,
    quote: options.Quote = None,
    time_format: options.TimeFormat = None,
    time_zone: options.TimeZone = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="ACTION=WORD,…",
            help="The log's words for connect, subscribe, unsubscribe, publish, deliver and disconnect; by default these names.",
        ),
    ] = None,
    sessions: Annotated[
        Sessions,
        typer.Option(
            help="Whether subscriptions end with their session (clean) or are restored in the next one (persistent)."
        ),
    ] = Sessions.CLEAN,
    mqtt_filters: Annotated[
        bool,
        typer.Option(
            "--mqtt-filters", help="Expand the wildcards + and #: such a subscription is to all topics that it matches."
        ),
    ] = False,
    size: Annotated[int, typer.Option(min=0, help="Size of a publication, in bytes, where the log has none.")] = 100,
    from_: options.From = None,
    to: options.To = None,
    master: options.Master = "local[*]",
    partitions: options.Partitions = None,
    driver_memory: options.DriverMemory = "1g",
    quiet: options.Quiet = False,
) -> None:
    """Turn a broker's log into a workload: sessions, subscriptions, publications, and the deliveries to check runs with.

    Rows have a time, an action, a client, a topic and, if known, a size in bytes and the publisher of what was delivered.
    """
    from sim.spark import spark_session
    from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
    from sim.workloads.traces.events import EVENT_LAYOUTS, NEEDED, action_words
    from sim.workloads.traces.sources import find_sources
    from sim.workloads.traces.workshop import check_room

    check_room(out)
    sources = find_sources(inputs)  # report typing mistakes before Spark takes seconds to start
    over = options.LayoutOptions(columns, delimiter, header, quote, time_format or (), time_zone)
    layout = options.choose_layout(format, EVENT_LAYOUTS, sources, over)
    layout.require("events", NEEDED)
    words = action_words(actions)
    window = options.time_span(from_, to, layout.time_zone)
    chosen = EventOptions(window, size, words, sessions == Sessions.PERSISTENT, mqtt_filters)
    with options.progress_lines(quiet) as progress:
        progress(f"starting Spark ({master})", "")
        with spark_session(master, driver_memory, options.short(sources)) as spark:
            paths = [source.path for source in sources]
            workload = prepare_events(spark, paths, out, layout, chosen, partitions=partitions, progress=progress)
    typer.echo(f"{out}: {_counted(workload)}{_unmatched(workload, mqtt_filters)}")


def _counted(workload: Workload) -> str:
    from sim.workloads.traces.quarantine import describe_reasons

    rows = workload.rows or {}
    reasons = describe_reasons(rows)
    subscriptions = int((workload.subscription_events.action > 0).sum())
    return (
        f"{rows['read']:,} rows read, {rows['kept']:,} kept, {rows['read'] - rows['kept']:,} quarantined"
        f"{f' ({reasons})' if reasons else ''}; {len(workload.users):,} clients, {len(workload.topics):,} topics, "
        f"{len(workload.sessions):,} sessions, {subscriptions:,} subscriptions, {len(workload.publications):,} publications, "
        f"{len(workload.deliveries):,} deliveries"
    )


def _unmatched(workload: Workload, expanded: bool) -> str:
    """How many subscriptions match nothing that is published, with an example; filters that could yet be expanded apart."""
    from sim.workloads.models.event_log import filters_unexpanded, looks_unsupported
    from sim.workloads.models.mqtt import is_filter, is_shared

    filters = 0 if expanded else filters_unexpanded(workload)
    said = f"; {filters:,} subscriptions look like MQTT filters (--mqtt-filters expands them)" if filters else ""
    names = {
        name: count for name, count in workload.unmatched.items() if expanded or is_shared(name) or not is_filter(name)
    }
    if not names:
        return said
    looks = Counter[str]()
    for name, count in names.items():
        looks.update({looks_unsupported(name) or "": count})
    odd = [f"{count:,} look like {look}" for look, count in looks.items() if look]
    example = max(names, key=lambda name: (looks_unsupported(name) is not None, names[name]))
    unsupported = f" ({', '.join(odd)}: not supported)" if odd else ""
    total = sum(names.values())
    return f"{said}; {total:,} subscriptions match no topic that is published on, such as {example!r}{unsupported}"
