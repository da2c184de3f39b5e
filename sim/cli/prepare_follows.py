"""`brokersim prepare follows`: turn a record of follows and events into a workload of interests and publications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import sim
from sim.api.trace_options import LayoutOptions, SparkOptions, TimeSpan
from sim.cli import prepare_options as options
from sim.cli.options import Quiet, argument, grouped, option


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
            "[default: detected from the first of them]",
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
    text: LayoutOptions,
    spread: Annotated[
        Literal["day", "month"] | None,
        option("", "Event times give only a day or a month: draw the time within it, by row and seed."),
    ] = None,
    period: Annotated[str, option("TIME", "The period of event rates.")] = "1d",
    span: TimeSpan,
    sample: Annotated[float, option("", "Use only the follows of a random share of the users.", min=0, max=1)] = 1.0,
    seed: Annotated[int, option("", "Seed of the random draws.", min=0)] = 1,
    size: Annotated[int, option("", "Size of a publication, in bytes.", min=0)] = 100,
    append: options.Append = False,
    spark: SparkOptions,
    quiet: Quiet = False,
) -> None:
    """Turn follows and events into a workload: interests and their changes, publications, event rates.

    Either a FOLDER with --format, or --follows and --events.
    """
    workload = sim.prepare_follows(
        out,
        folder,
        format,
        follows=follows,
        events=events,
        follows_columns=follows_columns,
        events_columns=events_columns,
        layout=text,
        spread=spread,
        period=period,
        span=span,
        sample=sample,
        seed=seed,
        size=size,
        append=append,
        spark=spark,
        progress=not quiet,
    )
    nobody = sum(workload.unmatched.values())
    typer.echo(
        f"{out}: {options.rows_said(workload)}; {len(workload.users):,} users, {len(workload.topics):,} topics, "
        f"{len(workload.interests):,} interests, {len(workload.subscription_events):,} changes, "
        f"{len(workload.publications):,} publications{f' ({nobody:,} on topics that nobody follows)' if nobody else ''}"
    )
