"""Layouts of trace files: a description of each, on which the pipelines depend, not on its name."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from sim.base.errors import WorkloadError, nearest, suggestion
from sim.base.naming import Raw
from sim.files.readable import ReadableFile
from sim.workloads.traces.sources import is_parquet

Kind = Literal["text", "jsonl", "parquet", "log"]

SKIPPED = "_"
# Fields with names.
_NAMES = ("user", "place", "client", "publisher", "topic", "kind", "group")
# Fields that give a time where there is no `time`: one of these dates, and a time of the day or none.
_DATES = (("date",), ("year", "month", "day"), ("weekday",))
_CLOCKS = ("clock", "minute")
# Time formats with a name instead of a pattern, with an example of each.
NAMED_TIMES = {"iso": "2010-10-19T23:55:27Z", "epoch": "1287532527.5", "epoch-ms": "1287532527500"}


@dataclass(frozen=True)
class Layout:
    """Files of lines (`text` or `jsonl`) or of `parquet`, one row each; or a `log` that a reader of its own turns into rows.

    `columns` names the fields of a line in order; others are skipped. Or it maps the pipeline's names to the file's: keys of
    JSON lines, columns of Parquet, or names in a text's first line, the `header`. With `quote`, a field of a text may be in double
    quotes (RFC 4180), but never span lines. `time_formats` are tried in order: datetime patterns of Spark, which may begin with a
    weekday (EEE), or one of `NAMED_TIMES`. Times without a zone are in `time_zone`. `encoding` is that of lines. `text` is a
    description for help, and `chosen` tells whether a user has named the columns. Raises WorkloadError where the layout is invalid.
    """

    name: str
    columns: tuple[str, ...] | Mapping[str, str] = ()
    kind: Kind = "text"
    delimiter: str = ","
    header: bool = False
    quote: bool = False
    time_formats: tuple[str, ...] = ("iso",)
    time_zone: str = "UTC"
    encoding: str = "utf-8"
    text: str = ""
    chosen: bool = False

    def __post_init__(self) -> None:
        if not self.delimiter or set(self.delimiter) & set('"\r\n'):
            raise WorkloadError(
                f"--delimiter {self.delimiter!r}: expected characters, neither quotes nor ends of a line"
            )
        if isinstance(self.columns, Mapping) and self.kind == "text" and not self.header:
            raise WorkloadError(
                f"columns {self.said()}: fields without a --header have no names; name all of them in order"
            )
        for pattern in self.time_formats:
            _check_pattern(pattern)
        zone_of(self.time_zone)
        _check_encoding(self.encoding)

    def require(self, what: str, fields: Sequence[str], option: str = "--columns", others: Sequence[str] = ()) -> None:
        """Raise WorkloadError unless it has each of these fields, which `what` needs; `option` is the option to set them.

        Of further fields a user may have chosen `others`, and those of a time.
        """
        for field in fields:
            if field not in self.columns:
                near = nearest(field, [name for name in self.columns if name not in fields])
                hint = f", did '{near}' mean it?" if near else ""
                raise WorkloadError(
                    f"{option} {self.said() or 'is not given'}: no {field}{hint} ({what} need {', '.join(fields)})"
                )
        known = dict.fromkeys([*fields, *others, "time", *chain(*_DATES), *_CLOCKS, SKIPPED])
        for field in self.columns if self.chosen else ():
            if field not in known:
                hint = suggestion(field, known)
                raise WorkloadError(
                    f"{option} {self.said()}: unknown field '{field}'{hint} (allowed: {', '.join(known)}, which skips a field)"
                )

    @property
    def beyond_expressions(self) -> str | None:
        """What of it only kernels can read; None where Spark's expressions can read all of it."""
        if self.encoding != "utf-8":
            return f"files in {self.encoding}"
        if (
            self.kind == "jsonl"
            and isinstance(self.columns, Mapping)
            and any("." in key for key in self.columns.values())
        ):
            return "keys with dots"
        return None

    @property
    def time_fields(self) -> tuple[str, ...]:
        """The fields that give its times: `time`, or those of a date and of a time of the day, if it has one."""
        date = next((fields for fields in _DATES if set(fields) <= set(self.columns)), None)
        if date is None or "time" in self.columns:
            return ("time",)
        return date + tuple(field for field in _CLOCKS if field in self.columns)[:1]

    def said(self) -> str:
        """Its columns as written after `--columns`."""
        if isinstance(self.columns, Mapping):
            return ",".join(f"{field}={column}" for field, column in self.columns.items())
        return ",".join(self.columns)

    def parameters(self) -> Raw:
        """Its entries in a manifest."""
        text = {"delimiter": self.delimiter, "header": self.header, "quote": self.quote} if self.kind == "text" else {}
        times = {"time_formats": list(self.time_formats), "time_zone": self.time_zone}
        encoding = {} if self.encoding == "utf-8" else {"encoding": self.encoding}
        return {"format": self.name, "columns": self.said(), **text, **times, **encoding}


def name_keys(layout: Layout, fields: Sequence[str] = _NAMES) -> list[str]:
    """The file's keys or columns with names."""
    assert isinstance(layout.columns, Mapping)
    return list(dict.fromkeys(layout.columns[field] for field in fields if field in _NAMES and field in layout.columns))


def zone_of(name: str) -> tzinfo:
    """The time zone with this name or offset from UTC, such as +02:00. Raises WorkloadError where there is none."""
    try:
        if re.fullmatch(r"[+-](0\d|1[0-7]):[0-5]\d", name):
            return datetime.strptime(name, "%z").tzinfo or UTC
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hint = suggestion(name, available_timezones())
        raise WorkloadError(
            f"--time-zone '{name}': no such zone{hint} (expected such as Europe/Paris or +02:00)"
        ) from None


def encoded(layout: Layout, encoding: str | None) -> Layout:
    """`layout` with lines in an encoding, unless that is None."""
    if encoding is None:
        return layout
    if layout.kind == "parquet":
        raise WorkloadError(f"--encoding: has no effect with --format {layout.name}")
    _check_encoding(encoding)
    return replace(layout, encoding=codecs.lookup(encoding).name)


def _check_encoding(encoding: str) -> None:
    """Raise WorkloadError unless there is such an encoding, in which a line ends and fields are separated as in ASCII."""
    plain = "\n,\t{}"
    try:
        if plain.encode(encoding) == plain.encode("ascii"):
            return
        found = "no encoding in which ASCII characters are as they are"
    except (LookupError, ValueError):
        found = "no such encoding"
    raise WorkloadError(f"--encoding '{encoding}': {found} (expected such as latin-1, cp1252, shift_jis or utf-8)")


def lay_over(
    layout: Layout,
    *,
    columns: str | None = None,
    option: str = "--columns",
    delimiter: str | None = None,
    header: bool | None = None,
    quote: bool | None = None,
    time_formats: Sequence[str] = (),
    time_zone: str | None = None,
) -> Layout:
    """`layout` with these settings replaced, except for None and (). Texts are those of the command line.

    `columns`, as `option` says them: `user,time,_,latitude` in order, or by name `user=label,time`, which Parquet and JSON lines
    always are.
    `delimiter`: characters, or `tab`. Quoting depends on the delimiter unless given: only a comma implies it.
    """
    if layout.kind == "log" and columns is not None:
        raise WorkloadError(
            f"{option}: has no effect with --format {layout.name}, whose lines have a meaning of their own"
        )
    if layout.kind != "text":
        for text_option, value in (("delimiter", delimiter), ("header", header), ("quote", quote)):
            if value is not None:
                raise WorkloadError(f"--{text_option}: has no effect with --format {layout.name}")
    changes: Raw = {}
    if delimiter is not None:
        changes["delimiter"] = {"tab": "\t", r"\t": "\t"}.get(delimiter, delimiter)
        changes["quote"] = changes["delimiter"] == ","
    if quote is not None:
        changes["quote"] = quote
    if header is not None:
        changes["header"] = header
    if columns is not None:
        changes["columns"], changes["chosen"] = _columns(columns, layout.kind != "text", option), True
    if time_formats:
        changes["time_formats"] = tuple(time_formats)
    if time_zone is not None:
        changes["time_zone"] = time_zone
    return replace(layout, **changes)


def guess_layout(path: ReadableFile) -> Layout:
    """The layout of `PLAIN` detected for a file: Parquet by its first bytes, others by the ending of its name."""
    if is_parquet(path):
        return PARQUET
    endings = {ending.lower() for ending in path.suffixes[-2:]}
    if endings & {".jsonl", ".ndjson", ".json"}:
        return JSONL
    return TSV if endings & {".tsv", ".tab"} else CSV


def _columns(text: str, by_name: bool, option: str) -> tuple[str, ...] | dict[str, str]:
    parts = [part.strip() for part in text.split(",")]
    pairs = [(field.strip(), column.strip() if equals else field) for field, equals, column in map(_halves, parts)]
    fields = [field for field, _ in pairs if field != SKIPPED]
    if not all(field and column for field, column in pairs):
        raise WorkloadError(f"{option} '{text}': an empty name; {SKIPPED} skips a field")
    if twice := sorted({field for field in fields if fields.count(field) > 1}):
        raise WorkloadError(f"{option} '{text}': {twice[0]} is named twice")
    if by_name or "=" in text:
        return {field: column for field, column in pairs if field != SKIPPED}
    return tuple(field for field, _ in pairs)


def _halves(part: str) -> tuple[str, str, str]:
    return part.partition("=")


def _check_pattern(pattern: str) -> None:
    """Raise WorkloadError for mistakes in a pattern that Spark would find late or never: unknown letters, or no date."""
    if pattern in NAMED_TIMES:
        return
    letters = re.sub(r"'[^']*'|[^A-Za-z']", "", re.sub("^E{1,4}", "", pattern))
    said = f"--time-format '{pattern}'"
    expected = f"expected a datetime pattern of Spark, such as yyyy-MM-dd HH:mm:ss, or one of {', '.join(NAMED_TIMES)}"
    if wrong := re.sub("[GyMLdDHhKkmsSaVzOXxZ']", "", letters):
        where = "a weekday (E) may only stand at its start" if wrong[0] == "E" else f"{wrong[0]!r} means nothing in it"
        raise WorkloadError(f"{said}: {where}; {expected}")
    if not ("y" in letters and ("D" in letters or {"M", "d"} <= set(letters.replace("L", "M")))):
        raise WorkloadError(f"{said}: it lacks a year, month or day; {expected}")


CSV = Layout("csv", quote=True, text="lines with commas, fields in the order of --columns or named by a --header")
TSV = Layout("tsv", delimiter="\t", text="the same with tabs")
JSONL = Layout("jsonl", kind="jsonl", text="an object of JSON on each line, fields as --columns names them")
PARQUET = Layout("parquet", kind="parquet", text="Parquet, columns as --columns names them")
# How files are written, but not yet what their columns mean.
PLAIN = {layout.name: layout for layout in (CSV, TSV, JSONL, PARQUET)}

GOWALLA = Layout(
    "gowalla",
    ("user", "time", "latitude", "longitude", "place"),
    delimiter="\t",
    time_formats=("yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",),
    text="the SNAP collection: tab-separated, no header: user, ISO time, latitude, longitude, place",
)
FOURSQUARE = Layout(
    "foursquare-tist",
    ("user", "place", "time", "offset"),
    delimiter="\t",
    time_formats=("EEE MMM dd HH:mm:ss Z yyyy",),
    text="the global check-ins of 2012 and 2013 (TIST2015): user, place, time; --places names the file of places, with positions",
)
FOURSQUARE_PLACES = Layout("foursquare-tist", ("place", "latitude", "longitude", "category", "country"), delimiter="\t")

LAYOUTS = {layout.name: layout for layout in (GOWALLA, FOURSQUARE)}
PLACE_LAYOUTS = {FOURSQUARE.name: FOURSQUARE_PLACES}
