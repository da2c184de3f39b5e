"""Shared parts of the `brokersim prepare` commands: options, their parsing, and progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sim.base.errors import InputError, unknown
from sim.cli import terminal

if TYPE_CHECKING:
    from sim.workloads.traces.follow_tables import Preset
    from sim.workloads.traces.layouts import Layout
    from sim.workloads.traces.sources import Source

Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT…", help="Files, plain or compressed (gzip, bzip2, xz, zstd), or patterns.")
]
Out = Annotated[
    Path, typer.Option(metavar="WORKLOAD", help="The folder to write; a workload already there is replaced.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The fields in order, such as user,time,_,latitude (_ skips one), or by their names in the file, such as "
        "user=label,time=ts (Parquet, JSON lines, and text with a header).",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What separates the fields of a line; tab for a tab.")
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="The first line of each file names the fields.")
]
Quote = Annotated[
    bool | None,
    typer.Option(
        "--quote/--no-quote", help='Fields may be quoted, as in "a, b"; the default for comma-separated files.'
    ),
]
TimeFormat = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="How times are written: a Spark datetime pattern, iso, epoch (s) or epoch-ms; several are tried in order.",
    ),
]
TimeZone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Time zone of times that name none, such as Europe/Paris. [UTC]")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="Use only rows from this ISO date or time on.")
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Use only rows before this ISO date or time.")]
Master = Annotated[str, typer.Option(help="Spark master: local[N], spark://HOST:PORT, …")]
Partitions = Annotated[
    int | None,
    typer.Option(min=1, max=100_000, help="Number of Spark partitions (the files written do not depend on it)."),
]
DriverMemory = Annotated[str, typer.Option(metavar="SIZE", help="Memory of the Spark driver.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

SHORT = 64 << 20  # bytes of input that are read in a few seconds


def short(sources: Sequence[Source]) -> bool:
    """Whether these files are so small that Spark should start quickly rather than run fast."""
    return sum(source.bytes for source in sources) < SHORT


FORMAT = "The layout of the files, by a name below; other layout options override it. [default: detected from the first file]"


def layouts(presets: Iterable[Layout | Preset]) -> list[tuple[str, str]]:
    """The names of presets and plain layouts, and what they are."""
    from sim.workloads.traces.layouts import PLAIN

    return [(layout.name, layout.text) for layout in (*presets, *PLAIN.values())]


class LayoutOptions(NamedTuple):
    """What options say of a layout, as `lay_over` takes it."""

    columns: str | None
    delimiter: str | None
    header: bool | None
    quote: bool | None
    time_formats: Sequence[str]
    time_zone: str | None


def choose_layout(
    name: str | None,
    presets: Mapping[str, Layout],
    sources: Sequence[Source],
    over: LayoutOptions,
) -> Layout:
    """The layout by options: a preset or plain layout by name, or that of the first file, overridden by the other options.

    Raises InputError where the name is unknown, or is missing and so are the columns.
    """
    from sim.workloads.traces.layouts import PLAIN, guess_layout, lay_over

    if name is None and over.columns is None:
        raise InputError(f"--format ({', '.join(presets)}) or --columns is needed to know the fields of the files")
    known = {**PLAIN, **presets}
    if name is not None and name not in known:
        raise InputError(f"--format: {unknown('layout', name, known)}")
    layout = guess_layout(sources[0].path) if name is None else known[name]
    return lay_over(layout, **over._asdict())


def time_span(first: str | None, end: str | None, zone: str) -> tuple[int | None, int | None]:
    """`--from` and `--to` in µs since 1970, each None where it is not said; what names no zone is in `zone`."""
    start, stop = (_instant(option, text, zone) for option, text in (("--from", first), ("--to", end)))
    if start is not None and stop is not None and start >= stop:
        raise InputError(f"--from '{first}', --to '{end}': the first must be before the second")
    return start, stop


def _instant(option: str, text: str | None, zone: str) -> int | None:
    from sim.workloads.traces.layouts import zone_of

    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
        time = time if time.tzinfo else time.replace(tzinfo=zone_of(zone))
        before, after = (time.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
        micros = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise InputError(
            f"{option} '{text}': expected an ISO date or time, such as 2009-03-01 or 2009-03-01T12:00"
        ) from None
    if before < after and len(text.strip()) > len("2009-03-01"):  # a day begins even where clocks skip midnight
        raise InputError(f"{option} '{text}': clocks in {zone} skipped this time")
    return micros


@contextmanager
def progress_lines(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """Show steps on stderr: on a terminal one line with the step and its tasks, else a line per step; nothing when quiet.

    What is implausible in a trace is reported in any case.
    """
    from rich.text import Text

    from sim.workloads.traces.strays import TraceWarning

    console = terminal.console(stderr=True)

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        console.print(Text(f"brokersim: warning: {message}"), soft_wrap=True)

    def say(step: str, detail: str) -> None:
        if not detail:
            print(f"brokersim: {step}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TraceWarning)
        warnings.showwarning = warn
        if quiet:
            yield lambda step, detail: None
        elif sys.stderr.isatty():
            with console.status("") as status:
                yield lambda step, detail: status.update(Text(f"{step} … {detail}".rstrip()))
        else:
            yield say
