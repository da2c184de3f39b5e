"""Options that all ways to prepare a trace share, their parsing, and progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from sim.api.console import console
from sim.base.errors import InputError, unknown
from sim.base.naming import Raw
from sim.experiments.options import declared

if TYPE_CHECKING:
    from sim.spark import sql
    from sim.workloads.traces.layouts import Layout
    from sim.workloads.traces.sources import Source


@dataclass(frozen=True)
class LayoutOptions:
    """Options of a layout besides its columns.

    Examples:
        >>> sim.LayoutOptions(delimiter="tab", time_format=["epoch"]).time_format
        ['epoch']
    """

    delimiter: str | None = declared("TEXT", "What separates the fields of a line; tab stands for a tab.", None)
    header: bool | None = declared("--header/--no-header", "The first line of each file names the fields.", None)
    quote: bool | None = declared(
        "--quote/--no-quote", 'Fields may be quoted, as in "a, b"; the default for comma-separated files.', None
    )
    time_format: list[str] | None = declared(
        "PATTERN",
        "How times are written: a Spark datetime pattern, iso, epoch (s) or epoch-ms; several are tried in order.",
        None,
    )
    time_zone: str | None = declared("ZONE", "Time zone of times without one, such as Europe/Paris. [UTC]", None)
    encoding: str | None = declared("NAME", "How lines are encoded, such as latin-1 or cp1252. [UTF-8]", None)

    @property
    def texts(self) -> Raw:
        """The options of text files only, as `lay_over` takes them.

        Examples:
            >>> sim.LayoutOptions(delimiter="tab").texts["delimiter"]
            'tab'
        """
        return {"delimiter": self.delimiter, "header": self.header, "quote": self.quote}

    @property
    def times(self) -> Raw:
        """The formats of times, as `lay_over` takes them.

        Examples:
            >>> sim.LayoutOptions(time_zone="Europe/Paris").times
            {'time_formats': (), 'time_zone': 'Europe/Paris'}
        """
        return {"time_formats": self.time_format or (), "time_zone": self.time_zone}


@dataclass(frozen=True)
class TimeSpan:
    """The rows to use, by their times.

    Examples:
        >>> sim.TimeSpan("2024-05-01", stop="2024-06-01").stop
        '2024-06-01'
    """

    start: str | None = declared("--from TIME", "Use only rows from this ISO date or time on.", None)
    stop: str | None = declared("--to TIME", "Use only rows before this ISO date or time.", None)

    def micros(self, zone: str) -> tuple[int | None, int | None]:
        """The first time and the end in µs since 1970, each None if not given; times without a zone are in `zone`.

        Examples:
            >>> sim.TimeSpan(stop="1970-01-02").micros("UTC")
            (None, 86400000000)
        """
        start, stop = (_instant(name, text, zone) for name, text in (("--from", self.start), ("--to", self.stop)))
        if start is not None and stop is not None and start >= stop:
            raise InputError(f"--from '{self.start}', --to '{self.stop}': the first must be before the second")
        return start, stop


@dataclass(frozen=True)
class SparkOptions:
    """What reads and validates the rows, and how Spark is started.

    Examples:
        >>> sim.SparkOptions(engine="in-process").master
        'local[*]'
    """

    engine: Literal["spark", "in-process"] = declared(
        "",
        "What reads and validates the rows: spark, on all cores or a cluster; or in-process, this process alone.",
        "spark",
    )
    master: str = declared("", "Spark master: local[N], spark://HOST:PORT, …", "local[*]")
    partitions: int | None = declared(
        "", "Number of Spark partitions (the files written do not depend on it).", None, min=1, max=100_000
    )
    driver_memory: str = declared("SIZE", "Memory of the Spark driver.", "1g")
    executor_memory: str | None = declared("SIZE", "Memory of each Spark executor of a cluster. [1g]", None)
    work: str | None = declared(
        "URL",
        "A folder of an object store, such as s3://bucket/folder, through which the machines of a cluster exchange intermediate "
        "results; needed if they share no storage. [default: beside the workload]",
        None,
    )
    conf: list[str] | None = declared(
        "KEY=VALUE",
        "A setting of Spark, such as spark.ui.enabled=true for its pages, or spark.eventLog.enabled=true and "
        "spark.eventLog.dir=FOLDER for its event log. May be repeated.",
        None,
    )

    @contextmanager
    def started(
        self, sources: Sequence[Source], layouts: Sequence[Layout], quiet: bool
    ) -> Iterator[tuple[sql.SparkSession | None, Raw]]:
        """Start a session for these files in these layouts, and return it with the common arguments.

        None in its place stands for this process.

        Examples:
            >>> with sim.SparkOptions(engine="in-process").started([], [], quiet=True) as (session, more):
            ...     session is None
            True
        """
        from sim.spark import spark_session
        from sim.workloads.traces.judging import beyond_kernels
        from sim.workloads.traces.spark_conf import read_conf

        if self.engine == "in-process" and (self.conf or self.executor_memory):
            raise InputError("--conf, --executor-memory: have no effect with --engine in-process, which uses no Spark")
        conf = read_conf(self.conf or ())
        with progress_lines(quiet) as progress:
            size = sum(source.bytes for source in sources)
            alone = (
                self.engine == "in-process"
                or (  # which reads brokers' own logs; tasks divide the rows of long ones
                    all(layout.kind == "log" for layout in layouts)
                    and size < LONG_LOG
                    and self.master == SparkOptions.master
                )
            )
            if alone:
                yield None, {"partitions": self.partitions, "progress": progress}
                return
            progress(f"starting Spark ({self.master})", "")
            light = not any(map(beyond_kernels, layouts))  # the JVM does no more than hand out tasks
            short = light or size < SHORT
            with spark_session(
                self.master, self.driver_memory, short, executor_memory=self.executor_memory, conf=conf
            ) as spark:
                if page := spark.sparkContext.uiWebUrl:
                    progress(f"Spark's pages are at {page}", "")
                yield spark, {"partitions": self.partitions, "progress": progress}


SHORT = 64 << 20  # bytes of input read in a few seconds
LONG_LOG = 256 << 20  # bytes of a log from which on it may have more rows than one process handles


def choose_layout(
    name: str | None,
    presets: Mapping[str, Layout],
    sources: Sequence[Source],
    columns: str | None,
    over: LayoutOptions,
) -> Layout:
    """Choose a layout: a preset or plain layout by name, or that of the first file, overridden by the other options.

    Raises InputError where the name is unknown, or both name and columns are missing.
    """
    from sim.workloads.traces.layouts import PLAIN, encoded, guess_layout, lay_over

    if name is None and columns is None:
        raise InputError(f"--format ({', '.join(presets)}) or --columns is needed to know the fields of the files")
    known = {**PLAIN, **presets}
    if name is not None and name not in known:
        raise InputError(f"--format: {unknown('layout', name, known)}")
    layout = guess_layout(sources[0].path) if name is None else known[name]
    return encoded(lay_over(layout, columns=columns, **over.texts, **over.times), over.encoding)


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
    if before < after and len(text.strip()) > len("2009-03-01"):  # a day begins even if clocks skip midnight
        raise InputError(f"{option} '{text}': clocks in {zone} skipped this time")
    return micros


@contextmanager
def progress_lines(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """Show steps on stderr: on a terminal one line with the step and its tasks, otherwise a line per step; nothing when quiet.

    Implausible data in a trace is always reported.
    """
    from rich.text import Text

    from sim.workloads.traces.strays import TraceWarning

    shown = console(stderr=True)

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        shown.print(Text(f"brokersim: warning: {message}"), soft_wrap=True)

    def say(step: str, detail: str) -> None:
        if not detail:
            print(f"brokersim: {step}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TraceWarning)
        warnings.showwarning = warn
        if quiet:
            yield lambda step, detail: None
        elif sys.stderr.isatty():
            with shown.status("") as status:
                yield lambda step, detail: status.update(Text(f"{step} … {detail}".rstrip()))
        else:
            yield say
