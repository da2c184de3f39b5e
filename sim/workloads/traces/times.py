"""Parse times in the rows of a trace with Spark, in the formats of a layout; times that clocks skipped are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.base.errors import WorkloadError
from sim.spark import F, sql
from sim.workloads.traces.layouts import NAMED_TIMES, Layout

# Times from the first to before the second, µs since 1970; None where there is no such limit.
Window = tuple[int | None, int | None]

_EPOCH = r"^\s*[+-]?[0-9]+(\.[0-9]*)?([eE]\+?[0-9]{1,2})?\s*$"
_ISO = ("yyyy-MM-dd'T'HH:mm[:ss[.SSSSSSSSS]][XXX]", "yyyy-MM-dd HH:mm[:ss[.SSSSSSSSS]][XXX]", "yyyy-MM-dd")
NOMINAL_DAYS = {
    name[:length]: f"1970-01-{5 + day:02}"
    for day, name in enumerate(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
    for length in (len(name), 3)
}
"""The days that weekdays stand for where there is no date: those of a nominal week, by their English names."""
DAY_MINUTES = 24 * 60
TYPED = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_FAR = r"[+][0-9]{6}"  # a year in which Spark's numbers overflow
_WEEKDAY = r"^(?i:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?i:day)?([\s\S]*)$"
_ZONE = "[VzOXxZ]"  # letters of a datetime pattern
_OPTIONAL_ZONE = rf"\[(?:[^\[\]']|'[^']*')*{_ZONE}(?:[^\[\]']|'[^']*')*\]"
# s; ISO 8601 counts a year 0, calendars do not
_YEAR_1, _YEAR_2, _YEAR_9999, _YEAR_10000 = -62_135_596_800, -62_104_060_800, 253_370_764_800, 253_402_300_800


def iso(micros: int) -> str:
    """A time in µs since 1970 as ISO 8601, UTC, to the second."""
    return f"{np.datetime64(micros, 'us').astype('datetime64[s]')}Z"


def outside(micros: sql.Column, window: Window) -> sql.Column:
    """Whether times (µs since 1970) are before or after a window."""
    first, end = window
    before = F.lit(False) if first is None else micros < first
    return before if end is None else before | (micros >= end)


def parse_time(column: sql.Column, layout: Layout, *, bound: bool = False) -> sql.Column:
    """The time that a text stands for, in µs since 1970, UTC; null where it is in none of the layout's formats, or was never.

    Times without a zone are in the session's, which `partitioned` takes from the layout: what clocks showed twice was the first
    time, what they skipped was never. Programs write the years 1 and 9999 for times that they do not have, so only a `bound`
    may be in them.
    """
    micros = F.coalesce(*(_micros(column, pattern, layout.time_zone) for pattern in patterns_of(layout)))
    first, end = limits(bound)
    return F.when(micros.between(first, end - 1), micros)


def time_text(layout: Layout) -> sql.Column:
    """The text to parse as a time: the field `time`, or the parts of it joined, see `time_kernels.time_texts`."""
    fields = layout.time_fields
    parts = {field: F.col(field) for field in fields}
    if "weekday" in parts:
        names = F.create_map(*(F.lit(text) for pair in NOMINAL_DAYS.items() for text in pair))
        parts["weekday"] = F.try_element_at(names, F.lower(F.trim("weekday")))
    if "minute" in parts:
        minute = F.when(F.col("minute").rlike(r"^ *[0-9]{1,4} *$"), F.trim("minute").cast("int"))
        clock = F.format_string("%02d:%02d", F.floor(minute / 60), minute % 60)
        parts["minute"] = F.when(minute < DAY_MINUTES, clock)
    *dates, last = parts.values()
    if len(fields) == 1:
        return last
    if fields[-1] in ("clock", "minute"):
        return F.concat(_hyphenated(dates), F.lit(" "), last)
    return _hyphenated([*dates, last])


def _hyphenated(parts: Sequence[sql.Column]) -> sql.Column:
    return F.concat(parts[0], *(text for part in parts[1:] for text in (F.lit("-"), part)))


def patterns_of(layout: Layout) -> list[str]:
    """The datetime patterns of a layout's times, and those of `NAMED_TIMES` that are none."""
    formats = list(layout.time_formats)
    if layout.kind == "parquet" and "iso" not in formats:  # its own times and dates need no format
        formats.append("iso")
    return [pattern for format in formats for pattern in (_ISO if format == "iso" else (format,))]


def limits(bound: bool) -> tuple[int, int]:
    """Which times are taken for times, µs since 1970: from the first to before the second; a `bound` may be further away."""
    first, end = (_YEAR_1, _YEAR_10000) if bound else (_YEAR_2, _YEAR_9999)
    return first * 10**6, end * 10**6


def _micros(column: sql.Column, pattern: str, zone: str) -> sql.Column:
    if pattern in NAMED_TIMES:
        digits = {"epoch": 6, "epoch-ms": 3}[pattern]
        number = F.when(column.rlike(_EPOCH), F.trim(column).try_cast(f"decimal(22,{digits})"))
        limits = (bound * 10 ** (6 - digits) for bound in (_YEAR_1, _YEAR_10000))
        return F.when(number.between(*limits), (number * 10**digits).cast("bigint"))
    if pattern.startswith("E"):  # which Spark prints but does not read
        column, pattern = F.regexp_extract(column, _WEEKDAY, 1), pattern.lstrip("E")
    column = F.when(~column.rlike(_FAR), column)
    moment = F.try_to_timestamp(column, F.lit(pattern))
    local = re.sub(_OPTIONAL_ZONE, "", pattern)
    letters = re.sub("'[^']*'", "", local)
    if zone != "UTC" and not re.search(_ZONE, letters):
        # Spark moves a time that clocks skipped; a day begins with its first moment, whatever clocks show then.
        kind = "timestamp_ntz" if re.search("[HhKk]", letters) else "date"
        said = F.when(F.try_to_timestamp(column, F.lit(local)).isNotNull(), _local_time(column, local))
        moment = F.when(F.coalesce(said.cast(kind) == moment.cast(kind), F.lit(True)), moment)
    return F.unix_micros(moment)


def _local_time(column: sql.Column, pattern: str) -> sql.Column:
    return F.call_function("to_timestamp_ntz", column, F.lit(pattern))


def example_time(spark: sql.SparkSession, layout: Layout) -> str:
    """A time as the first of the layout's formats writes it."""
    first = layout.time_formats[0]
    if first in NAMED_TIMES:
        return NAMED_TIMES[first]
    moment = F.timestamp_micros(F.lit(1_287_532_527_000_000))
    [row] = _one_row(spark).select(F.date_format(moment, without_options(first) or first)).collect()
    return str(row[0])


def _one_row(spark: sql.SparkSession) -> sql.DataFrame:
    """A row that Spark holds itself: what is selected from it is found without a job."""
    return spark.sql("VALUES (0)")


def without_options(pattern: str) -> str:
    """A datetime pattern without what is in brackets; a bracket that is not closed ends with the pattern."""
    kept, depth = [], 0
    for part in re.findall(r"'[^']*'|.", pattern):
        depth += (part == "[") - (part == "]")
        if depth == 0 and part != "]":
            kept.append(part)
    return "".join(kept)


def check_times(spark: sql.SparkSession, layout: Layout) -> None:
    """Raise WorkloadError where a format of the layout is not a datetime pattern of Spark."""
    from pyspark.errors import PySparkException

    for pattern in set(layout.time_formats) - set(NAMED_TIMES):
        try:
            _one_row(spark).select(parse_time(F.lit(""), replace(layout, time_formats=(pattern,)))).collect()
        except PySparkException:
            raise WorkloadError(
                f"--time-format '{pattern}': not a datetime pattern of Spark "
                "(letters that stand for themselves are quoted: yyyy-MM-dd'T'HH:mm:ss)"
            ) from None
