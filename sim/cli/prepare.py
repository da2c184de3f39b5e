"""`brokersim prepare`: raw traces to workloads, by Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.errors import InputError, unknown

if TYPE_CHECKING:
    from sim.workloads.traces.checkins import Box

app = typer.Typer(no_args_is_help=True, help="Turn raw traces into workloads.")

SHORT = 64 << 20  # bytes of input that are read in a few seconds


class Publishing(StrEnum):
    """What a publication is made of."""

    VISIT = "per-visit"
    CHECKIN = "per-check-in"


@app.callback()
def _group() -> None:
    """Keeps `checkins` a command of its own while it is the only one."""


@app.command()
def checkins(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT…", help="Files, plain or gzip, or patterns.")],
    out: Annotated[Path, typer.Option(metavar="WORKLOAD", help="The folder to write; a workload there is replaced.")],
    format: Annotated[str, typer.Option(help="How the files are laid out: gowalla (the SNAP layout).")],
    cell: Annotated[float, typer.Option(min=1e-4, help="Side of a grid cell, in degrees.")] = 1.0,
    bounding_box: Annotated[
        str | None,
        typer.Option(
            metavar="S,W,N,E", help="Use positions in this box only, in degrees; or us-paper: 30,-126,50,-66."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="FROM,TO", help="Use times from FROM to before TO only: ISO dates or times, UTC."),
    ] = None,
    friends: Annotated[int, typer.Option(min=0, help="Friends drawn for each user.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 1,
    publications: Annotated[Publishing, typer.Option(help="What a user publishes.")] = Publishing.VISIT,
    size: Annotated[int, typer.Option(min=0, help="Size of a publication, in bytes.")] = 100,
    master: Annotated[str, typer.Option(help="Spark master: local[N], spark://HOST:PORT, …")] = "local[*]",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Parts that Spark cuts the work into (the files do not depend on it).")
    ] = None,
    driver_memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of Spark's driver.")] = "1g",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Turn files of check-ins into a location workload: cells as topics, visits, drawn friends, publications."""
    from sim.workloads.traces.layouts import LAYOUTS
    from sim.workloads.traces.pipeline import prepare_checkins
    from sim.workloads.traces.quarantine import describe
    from sim.workloads.traces.session import spark_session
    from sim.workloads.traces.sources import find_sources
    from sim.workloads.traces.workshop import check_room

    if format not in LAYOUTS:
        raise InputError(f"--format: {unknown('layout', format, LAYOUTS)}")
    box, span = _box(bounding_box), _window(window)
    check_room(out)
    sources = find_sources(inputs)  # what is typed wrong is told before Spark takes its seconds to start
    short = sum(source.bytes for source in sources) < SHORT
    with _progress(quiet) as progress:
        progress(f"starting Spark ({master})", "")
        with spark_session(master, driver_memory, short) as spark:
            workload = prepare_checkins(
                spark,
                [source.path for source in sources],
                out,
                LAYOUTS[format],
                cell=cell,
                box=box,
                window=span,
                friends=friends,
                seed=seed,
                publications=publications.value,
                size=size,
                partitions=partitions,
                progress=progress,
            )
    rows = workload.rows or {}
    reasons = describe(rows)
    typer.echo(
        f"{out}: {rows['read']:,} rows read, {rows['kept']:,} kept, {rows['read'] - rows['kept']:,} quarantined"
        f"{f' ({reasons})' if reasons else ''}; {len(workload.topics):,} cells, {len(workload.users):,} users, "
        f"{len(workload.movements):,} visits, {len(workload.publications):,} publications"
    )


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


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        first, end = (datetime.fromisoformat(part.strip()) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--window '{text}': expected FROM,TO as ISO dates or times, such as 2009-03-01,2010-11-01"
        ) from None
    first, end = (time if time.tzinfo else time.replace(tzinfo=UTC) for time in (first, end))
    if first >= end:
        raise InputError(f"--window '{text}': FROM must be before TO")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (first - epoch) // datetime.resolution, (end - epoch) // datetime.resolution


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """On a terminal one line that tells the step and its tasks; else a line per step; nothing when quiet. All on stderr."""
    if quiet:
        yield lambda step, detail: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status("") as status:
            yield lambda step, detail: status.update(Text(f"{step} … {detail}".rstrip()))
    else:

        def say(step: str, detail: str) -> None:
            if not detail:
                print(f"brokersim: {step}", file=sys.stderr, flush=True)

        yield say
