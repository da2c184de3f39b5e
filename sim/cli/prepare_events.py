"""`brokersim prepare events`: turn a broker's log of subscriptions, publications and deliveries into an event workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

import sim
from sim.api.trace_options import LayoutOptions, SparkOptions, TimeSpan
from sim.cli import prepare_options as options
from sim.cli.options import Quiet, grouped, option

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
    text: LayoutOptions,
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
    filters: Annotated[
        Literal["exact", "mqtt", "nats"] | None,
        option(
            "",
            "Wildcards in subscriptions, which count for all topics that they match: none (exact), those of MQTT (+, #), or "
            "those of NATS (*, >). [default: by the format, exact for files of tables]",
        ),
    ] = None,
    live_filters: Annotated[
        bool,
        option(
            "",
            "Keep filters in the workload: in a simulation they match topics as these appear, with their first publication.",
        ),
    ] = False,
    size: Annotated[int, option("", "Size of a publication, in bytes, where the log has none.", min=0)] = 100,
    span: TimeSpan,
    append: options.Append = False,
    spark: SparkOptions,
    quiet: Quiet = False,
) -> None:
    """Turn a broker's log into a workload: sessions, subscriptions, publications, and the deliveries to check runs against.

    Rows have a time, an action, a client, a topic and, if known, a size in bytes and the publisher of what was delivered.
    """
    workload = sim.prepare_events(
        inputs,
        out,
        format,
        columns,
        layout=text,
        actions=actions,
        sessions=sessions,
        filters=filters,
        live_filters=live_filters,
        size=size,
        span=span,
        append=append,
        spark=spark,
        progress=not quiet,
    )
    typer.echo(f"{out}: {_summary(workload)}")


def _summary(workload: Workload) -> str:
    """What became of the rows, and what the workload has."""
    from sim.workloads.models.shared_subscriptions import is_member_apart

    subscriptions = int((workload.subscription_events.action > 0).sum())
    groups = len(set(workload.shares.group.tolist()))
    apart = sum(map(is_member_apart, workload.users.names.to_pylist()))
    lasting = workload.counts.get("filters", 0)
    wild = f"{lasting:,} filters, " if lasting else ""
    shared = f" ({groups:,} groups share some)" if groups else ""
    return (
        f"{options.rows_said(workload)}; {len(workload.users) - apart:,} clients, "
        f"{len(workload.topics) - lasting:,} topics, {wild}"
        f"{len(workload.sessions):,} sessions, {subscriptions:,} subscriptions{shared}, {len(workload.publications):,} publications, "
        f"{len(workload.deliveries):,} deliveries{_unmatched(workload, str(workload.generator['filters']))}"
    )


def _unmatched(workload: Workload, filters: str) -> str:
    """A note on subscriptions that match nothing published, with an example, and on wildcards that could be expanded."""
    from sim.content.topic_filters import GRAMMARS, MQTT_FILTERS, has_wildcard
    from sim.workloads.models.event_log import filters_unexpanded

    others = [name for name in GRAMMARS if name != filters]
    said = "".join(
        f"; {count:,} subscriptions look like {name.upper()} filters (--filters {name} expands them)"
        for name in others
        if (count := filters_unexpanded(workload, name))
    )
    silent = {
        name: count
        for name, count in workload.unmatched.items()
        if not any(has_wildcard(name, GRAMMARS[other]) for other in others)
    }
    if not silent:
        return said
    amqp = {
        name: count for name, count in silent.items() if "#" in name.split(".") and not has_wildcard(name, MQTT_FILTERS)
    }
    example = max(silent, key=lambda name: (name in amqp, silent[name]))
    odd = f" ({sum(amqp.values()):,} look like wildcards of AMQP (#): not supported)" if amqp else ""
    total = sum(silent.values())
    return f"{said}; {total:,} subscriptions match no topic that is published on, such as {example!r}{odd}"
