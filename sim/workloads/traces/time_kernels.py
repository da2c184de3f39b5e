"""Parse times in whole columns of text, with the same results as `times` with Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.files.columns import places
from sim.files.parquet import repeated, strings
from sim.workloads.traces.layouts import NAMED_TIMES, Layout, zone_of
from sim.workloads.traces.shapes import Shaped, shaped
from sim.workloads.traces.text_kernels import words
from sim.workloads.traces.times import DAY_MINUTES, NOMINAL_DAYS, limits, patterns_of, without_options

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_EPOCH = re.compile(
    r"[ \t\n\x0b\f\r]*[+-]?(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?(?:[eE]\+?[0-9]{1,2})?[ \t\n\x0b\f\r]*"
)
_DIGITS = {"epoch": 6, "epoch-ms": 3}
_BEYOND = 2**62  # µs
_MOST_SECONDS = 12  # digits of a number of seconds that may be within the limits of times
_WEEKDAY = r"(?ai:mon|tues?+|wed(?:nes)?+|thu(?:rs)?+|fri|sat(?:ur)?+|sun)(?ai:day)?+"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Letters of a datetime pattern, and what Java reads for them: as much as it can, which it never gives back.
_LETTERS = {
    "yyyy": r"(?P<year>\+[0-9]{5}(?![0-9])|[0-9]{4}(?![0-9]))",
    "MM": r"(?P<month>[0-9]{2})",
    "M": r"(?P<month>[0-9]{1,19}+)",
    "MMM": rf"(?P<name>(?i:{'|'.join(_MONTHS)}))",
    "dd": r"(?P<day>[0-9]{2})",
    "d": r"(?P<day>[0-9]{1,19}+)",
    "HH": r"(?P<hour>[0-9]{2})",
    "H": r"(?P<hour>[0-9]{1,19}+)",
    "mm": r"(?P<minute>[0-9]{2})",
    "m": r"(?P<minute>[0-9]{1,19}+)",
    "ss": r"(?P<second>[0-9]{2})",
    "s": r"(?P<second>[0-9]{1,19}+)",
    "XXX": r"(?:[Zz]|(?P<sign>[+-])(?P<ahead>[0-9]{2}):(?P<beyond>[0-9]{2}))(?P<zone>)",
    "Z": r"(?P<sign>[+-])(?P<ahead>[0-9]{2})(?P<beyond>[0-9]{2})(?P<zone>)",
}
_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|([\s\S])")
_SECOND, _DAY = 10**6, 86_400 * 10**6  # µs
_SLOT = 900 * _SECOND  # clocks are put forward and back on quarters of an hour
_MOST_AHEAD = 18 * 3600  # s, of a zone


@dataclass(frozen=True)
class Pattern:
    """A datetime pattern as an expression for a shape; `clock` is whether it may tell a time of the day."""

    expression: re.Pattern[str]
    clock: bool


# No functools.cache, which would be sent to executors by its name alone
_KNOWN: dict[str, Pattern | None] = {}


def uncovered(layout: Layout) -> str | None:
    """The first time format of a layout that is not supported here; None where all are."""
    patterns = (pattern for pattern in patterns_of(layout) if pattern not in NAMED_TIMES)
    return next((pattern for pattern in patterns if understood(pattern) is None), None)


def understood(pattern: str) -> Pattern | None:
    """A datetime pattern of Spark, where columns are read by it here; None where Spark has to."""
    if pattern not in _KNOWN:
        _KNOWN[pattern] = _understood(pattern)
    return _KNOWN[pattern]


def _understood(pattern: str) -> Pattern | None:
    rest = re.sub("^E{1,4}", "", pattern)
    expression, numbers, seen = "", 0, set[str]()
    if "''" in rest or rest.count("'") % 2:
        return None
    for match in _TOKEN.finditer(rest):
        token, literal = match[0], match[1] if match[1] is not None else match[3]
        if literal in ("[", "]") and match[1] is None:
            expression += "(?:" if literal == "[" else ")?+"
            continue
        if match[2] is None:
            expression += f"(?i:{re.escape(literal)})"
            numbers = 0
            continue
        read = _LETTERS.get(token) or (
            rf"(?P<fraction>[0-9]{{1,{len(token)}}}+)" if re.fullmatch("S{1,9}", token) else None
        )
        numbers = 0 if token in ("XXX", "Z", "MMM") else numbers + 1
        if read is None or numbers > 1 or token[0] in seen:  # Java divides digits between adjacent fields
            return None
        seen.add(token[0])
        expression += read
    if not ({"y", "M", "d"} <= seen) or "HmsS"[: len(seen & set("HmsS"))] != "".join(c for c in "HmsS" if c in seen):
        return None
    try:
        compiled = re.compile((_WEEKDAY if pattern.startswith("E") else "") + expression)
    except re.error:  # brackets that do not match
        return None
    return Pattern(compiled, "H" in seen)


def example_of(layout: Layout) -> str:
    """A time as the first of the layout's formats, which is covered, writes it."""
    first = layout.time_formats[0]
    if first in NAMED_TIMES:
        return NAMED_TIMES[first]
    moment = datetime.fromtimestamp(1_287_532_527, zone_of(layout.time_zone))
    return "".join(_written(token, moment) for token in _TOKEN.finditer(without_options(first) or first))


def _written(token: re.Match[str], moment: datetime) -> str:
    """What a token of a pattern writes for a time."""
    letter, width = token[2], len(token[0])
    if letter is None:
        return token[0] if token[1] is None else token[1]
    if letter in "EXSZ":
        zone = f"{moment:%z}"
        texts = {"Z": zone, "X": "Z" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}", "S": "0" * width}
        return texts.get(letter) or f"{moment:{'%A' if width > 3 else '%a'}}"
    if token[0] == "MMM":
        return _MONTHS[moment.month - 1].capitalize()
    fields = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
    return f"{getattr(moment, fields[letter]):0{width}}"


def time_texts(texts: Mapping[str, pa.StringArray], layout: Layout) -> pa.StringArray:
    """The text of each row to parse as a time; null where a part of it is missing.

    The field `time`; or a date (`date`, `year-month-day`, or `weekday`, a day of a nominal week) and, after a space, a time of
    the day (`clock`, or `minute`, a number of minutes, as HH:mm).
    """
    fields = layout.time_fields
    parts = [_part(field, texts[field]) for field in fields]
    joined = parts[0]
    for field, part in zip(fields[1:], parts[1:], strict=True):
        between = repeated(" " if field in ("clock", "minute") else "-", len(part))
        joined = pc.binary_join_element_wise(joined, part, between, null_handling="emit_null")
    return joined


def _part(field: str, column: pa.StringArray) -> pa.StringArray:
    if field not in ("weekday", "minute"):
        return column
    number, found = words(column)
    read = (lambda text: NOMINAL_DAYS.get(text.strip(" ").lower())) if field == "weekday" else _clock
    known = [read(text) for text in found]
    which = np.array([*(text is not None for text in known), False])[number]
    return strings([*(text or "" for text in known), ""]).take(places(number.astype(np.int64), which))


def _clock(text: str) -> str | None:
    """A number of minutes as a time of the day."""
    digits = text.strip(" ")
    if not (len(digits) <= len("1439") and re.fullmatch("[0-9]+", digits) and int(digits) < DAY_MINUTES):
        return None
    return f"{int(digits) // 60:02}:{int(digits) % 60:02}"


def parse_times(column: pa.StringArray, layout: Layout, *, bound: bool = False) -> tuple[Ints, Flags]:
    """As `times.parse_time`: µs since 1970 and, because there is no null among them, which values are times."""
    shapes = shaped(column)
    micros, found = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_)
    first, end = limits(bound)
    for pattern in patterns_of(layout):
        if found.all():
            break
        for shape, rows in shapes:
            rows = rows[~found[rows]]
            if len(rows):
                value, good = _read(shapes, shape, rows, pattern, layout.time_zone)
                # A time outside of the limits is one all the same: no other format is tried
                micros[rows], found[rows] = value, good
    return micros, found & (micros >= first) & (micros < end)


def _read(shapes: Shaped, shape: str, rows: Ints, pattern: str, zone: str) -> tuple[Ints, Flags]:
    if pattern in NAMED_TIMES:
        return _epoch(shapes, shape, rows, _DIGITS[pattern])
    known = understood(pattern)
    assert known is not None
    if (match := known.expression.fullmatch(shape)) is None:
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    local, good = _date(shapes, match, rows)
    if match.groupdict().get("zone") is None:
        micros, there = _in_zone(local, zone, good)
        return micros, there if known.clock else good
    ahead = np.zeros(len(rows), np.int64)
    if match["sign"]:
        parts = [shapes.digits(rows, *match.span(name)) for name in ("ahead", "beyond")]
        ahead = parts[0] * 3600 + parts[1] * 60
        good &= (parts[1] < 60) & (ahead <= _MOST_AHEAD)
        ahead = -ahead if match["sign"] == "-" else ahead
    return local - ahead * _SECOND, good


def _date(shapes: Shaped, match: re.Match[str], rows: Ints) -> tuple[Ints, Flags]:
    """The local time (µs since 1970) at the places of a shape that matches, and where it is one of the calendar."""
    groups = match.groupdict()

    def number(name: str) -> Ints:
        start, stop = match.span(name)
        return shapes.digits(rows, start + (groups[name] or "").startswith("+"), stop)

    year, day = number("year"), number("day")
    name = (groups.get("name") or "").lower()
    month = np.full(len(rows), 1 + _MONTHS.index(name)) if name else number("month")
    good = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1)
    year, month, day = (np.where(good, part, 1) for part in (year, month, day))
    begin = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = begin.astype("datetime64[D]").astype(np.int64)
    good &= day <= (begin + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - days
    micros = (days + np.minimum(day, 31) - 1) * _DAY
    for name, length, most in (("hour", 3600, 24), ("minute", 60, 60), ("second", 1, 60)):
        if groups.get(name):
            part = number(name)
            good &= part < most
            micros += np.minimum(part, most) * (length * _SECOND)
    if groups.get("fraction"):
        start, stop = match.span("fraction")
        stop = min(stop, start + 6)
        micros += shapes.digits(rows, start, stop) * 10 ** (6 - (stop - start))
    return micros, good


def _in_zone(local: Ints, name: str, good: Flags) -> tuple[Ints, Flags]:
    """Local times as UTC, the first of two, and which of them clocks in the zone have shown."""
    if name == "UTC":
        return local, good
    zone, micros, there = zone_of(name), local.copy(), good.copy()
    left = np.flatnonzero(good)
    for step in (_DAY, _SLOT, 1):  # what begins and ends alike is alike throughout
        starts, which = np.unique(local[left] // step * step, return_inverse=True)
        begin, end = ([_offset(start + more, zone) for start in starts.tolist()] for more in (0, step - 1))
        alike = np.array([one == two for one, two in zip(begin, end, strict=True)], np.bool_)[which]
        ahead, shown = (
            (np.array(column, np.int64)[which] for column in zip(*begin, strict=True)) if begin else (which, which)
        )
        micros[left[alike]] -= ahead[alike]
        there[left[alike]] = shown[alike] != 0
        left = left[~alike]
    return micros, there


def _offset(local: int, zone: tzinfo) -> tuple[int, bool]:
    """How far (µs) a local time is ahead of UTC, and whether clocks have shown it."""
    try:
        time = datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=local)
        ahead = time.utcoffset() or timedelta()
        there = time.astimezone(UTC).astimezone(zone)
    except OverflowError:  # at the ends of the calendar
        return 0, True
    return ahead // timedelta(microseconds=1), there.replace(tzinfo=None) == time.replace(tzinfo=None)


def _epoch(shapes: Shaped, shape: str, rows: Ints, digits: int) -> tuple[Ints, Flags]:
    """Numbers of seconds or of milliseconds, of which `digits` digits after the point are used."""
    micros = np.zeros(len(rows), np.int64)
    match = _EPOCH.fullmatch(shape)
    if match is None:
        return micros, np.zeros(len(rows), np.bool_)
    whole, fraction = match.span("whole"), match.span("fraction")
    plain = match["whole"] + ("" if match["fraction"] is None else f".{match['fraction']}") == shape
    if plain and whole[1] <= _MOST_SECONDS + 6 - digits and fraction[1] - fraction[0] <= digits:
        micros = shapes.digits(rows, *whole) * 10**digits
        if match["fraction"]:
            micros += shapes.digits(rows, *fraction) * 10 ** (digits - len(match["fraction"]))
    else:  # signs, exponents, more digits than count
        micros[:] = [_scaled(text, digits) for text in shapes.texts(rows)]
    first, end = limits(bound=True)
    return micros, (micros >= first) & (micros < end + 1)


def _scaled(text: str, digits: int) -> int:
    """A number of seconds or milliseconds in µs, rounded half up; what is far beyond all limits is as good as any other."""
    number = Decimal(text.strip())
    if not number:
        return 0
    if number.adjusted() > _MOST_SECONDS + 3:
        return _BEYOND
    return max(-_BEYOND, min(int((number * 10**digits).to_integral_value(ROUND_HALF_UP)), _BEYOND))
