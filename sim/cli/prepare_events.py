"""`brokersim prepare events`: turn a broker's log of subscriptions, publications and deliveries into an event workload."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sim.cli import prepare_options as options
from sim.cli.options import grouped, option

if TYPE_CHECKING:
    from sim.workloads.format.workload import Workload


def layouts() -> list[tuple[str, str]]:
    """The layouts of logs."""
    from sim.workloads.traces.events import EVENT_LAYOUTS

    return options.layouts(EVENT_LAYOUTS.values())


@grouped
def events(
    inputs: options.Inputs,
    out: options.Out,
    format: Annotated[str | None, option("NAME", options.FORMAT)] = None,
    columns: Annotated[
        str | None,
        option(
            "NAMES",
            "The fields in order: time,action,client,topic and perhaps size and publisher (_ skips one); or by their names in "
            "the file, such as time=ts,action=event,client,topic (Parquet, JSON lines, and text with a header).",
        ),
    ] = None,
    *,
    text: options.LayoutOptions,
    actions: Annotated[
        str | None,
        option(
            "ACTION=WORD,…",
            "The log's words for connect, subscribe, unsubscribe, publish, deliver and disconnect; by default these names.",
        ),
    ] = None,
    sessions: Annotated[
        Literal["clean", "persistent"],
        option(
            "", "Whether subscriptions end with their session (clean) or are restored in the next one (persistent)."
        ),
    ] = "clean",
    mqtt_filters: Annotated[
        bool,
        option(
            "--mqtt-filters", "Expand the wildcards + and #: such a subscription counts for all topics that it matches."
        ),
    ] = False,
    size: Annotated[int, option("", "Size of a publication, in bytes, where the log has none.", min=0)] = 100,
    span: options.Window,
    append: options.Append = False,
    spark: options.SparkOptions,
) -> None:
    """Turn a broker's log into a workload: sessions, subscriptions, publications, and the deliveries to check runs against.

    Rows have a time, an action, a client, a topic and, if known, a size in bytes and the publisher of what was delivered.
    """
    from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
    from sim.workloads.traces.events import EVENT_LAYOUTS, action_words, needed_fields
    from sim.workloads.traces.sources import find_sources
    from sim.workloads.traces.workshop import check_room

    check_room(out)
    sources = find_sources(inputs)  # report typing mistakes before Spark takes seconds to start
    layout = options.choose_layout(format, EVENT_LAYOUTS, sources, columns, text)
    layout.require("events", needed_fields(layout))
    words = action_words(actions)
    chosen = EventOptions(
        span.micros(layout.time_zone), size, words, sessions == "persistent", mqtt_filters, append=append
    )
    with spark.started(sources, [layout]) as (session, more):
        workload = prepare_events(session, [source.path for source in sources], out, layout, chosen, **more)
    subscriptions = int((workload.subscription_events.action > 0).sum())
    typer.echo(
        f"{out}: {options.rows_said(workload)}; {len(workload.users):,} clients, {len(workload.topics):,} topics, "
        f"{len(workload.sessions):,} sessions, {subscriptions:,} subscriptions, {len(workload.publications):,} publications, "
        f"{len(workload.deliveries):,} deliveries{_unmatched(workload, mqtt_filters)}"
    )


def _unmatched(workload: Workload, expanded: bool) -> str:
    """A note on subscriptions that match nothing published, with an example, and on filters that could be expanded."""
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
