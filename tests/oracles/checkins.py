"""A slow, obvious reader of check-ins in any layout, and of the users that remain."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pyarrow.parquet as pq

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)


@dataclass
class Layout:
    """`columns`: field names in order, or from the pipeline's to the file's; `times`: formats of strptime, or functions."""

    columns: object
    kind: str = "text"
    delimiter: str = "\t"
    header: bool = False
    quote: bool = False
    times: tuple = ()
    zone: tzinfo = UTC


@dataclass
class Reading:
    kept: list[tuple[str, datetime, float, float]] = field(default_factory=list)
    lines: list[tuple[str, int, str]] = field(default_factory=list)  # source, line, raw of those kept
    quarantine: list[tuple[str, int, str, str]] = field(default_factory=list)  # source, line, raw, reason

    @property
    def reasons(self) -> dict[str, int]:
        return dict(Counter(reason for *_, reason in self.quarantine))

    @property
    def users(self) -> set[str]:
        return {user for user, *_ in self.kept}

    def cells(self, side: float) -> set[tuple[int, int]]:
        return {cell(latitude, longitude, side) for *_, latitude, longitude in self.kept}

    def visits(self, side: float) -> list[tuple[str, datetime, tuple[int, int]]]:
        """(user, arrival, cell), user by user."""
        visits: list[tuple[str, datetime, tuple[int, int]]] = []
        for user, time, place in sorted((u, t, cell(lat, lon, side)) for u, t, lat, lon in self.kept):
            if not visits or (user, place) != (visits[-1][0], visits[-1][2]):
                visits.append((user, time, place))
        return visits


def cell(latitude: float, longitude: float, side: float) -> tuple[int, int]:
    return math.floor(latitude / side), math.floor(longitude / side)


def read(paths: list[Path], layout: Layout | None = None, box=None, window=(None, None), places=None) -> Reading:
    """`box` is (south, west, north, east), `window` two datetimes or None, `places` more paths and their layout."""
    layout = layout or SNAP
    positions = known_places(*places) if places else None
    reading, seen = Reading(), set()
    for path in paths:
        for line, raw, fields in rows_of(path, layout):
            if positions is not None and fields is not None:
                fields = {**fields, **positions.get(fields.get("place"), {})}
            row, reason = judge(fields, layout, box, window)
            if reason is None and row in seen:
                reason = "duplicate"
            if reason is None:
                seen.add(row)
                reading.kept.append(row)
                reading.lines.append((path.name, line, raw))
            else:
                reading.quarantine.append((path.name, line, raw, reason))
    return reading


def known_places(paths: list[Path], layout: Layout) -> dict:
    found: dict = {}
    for path in paths:
        for _, _, fields in rows_of(path, layout):
            if fields is not None:
                place = fields.pop("place")
                found.setdefault(place, fields)
    return found


def rows_of(path: Path, layout: Layout):
    """(line, raw, what stands in the fields by the pipeline's names, None where it cannot be taken apart)."""
    if layout.kind == "parquet":
        for number, row in enumerate(pq.read_table(path).to_pylist(), 1):
            yield number, None, {field: row[column] for field, column in layout.columns.items()}
        return
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    names = None
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\r")
        raw = line.decode(errors="replace")
        try:
            text = line.decode().removeprefix("\ufeff")
        except UnicodeDecodeError:
            yield number, raw, None
            continue
        if layout.kind == "jsonl":
            yield number, raw, object_of(text, layout)
            continue
        fields = fields_of(text, layout)
        if names is None:
            names = fields if isinstance(layout.columns, dict) else list(layout.columns)
            if layout.header:
                continue
        if fields is None or len(fields) != len(names):
            yield number, raw, None
        elif isinstance(layout.columns, dict):
            yield number, raw, {field: fields[names.index(column)] for field, column in layout.columns.items()}
        else:
            yield number, raw, dict(zip(names, fields, strict=True))


def fields_of(text: str, layout: Layout) -> list[str] | None:
    if not layout.quote:
        return text.split(layout.delimiter)
    fields, rest = [], layout.delimiter + text
    while rest:
        if not rest.startswith(layout.delimiter):
            return None
        rest = rest.removeprefix(layout.delimiter)
        if rest.startswith('"'):
            field, rest, closed = "", rest[1:], False
            while not closed:
                inside, quote, rest = rest.partition('"')
                if not quote:
                    return None
                closed = not rest.startswith('"')
                field, rest = field + inside + '"' * (not closed), rest if closed else rest[1:]
        else:
            field = rest.partition(layout.delimiter)[0]
            rest = rest.removeprefix(field)
            if '"' in field:
                return None
        fields.append(field)
    return fields


def object_of(text: str, layout: Layout) -> dict | None:
    def refuse(text: str) -> None:
        raise ValueError(text)

    try:
        row = json.loads(text, parse_constant=refuse)
    except ValueError:
        return None
    return {field: row.get(key) for field, key in layout.columns.items()} if isinstance(row, dict) else None


def judge(fields, layout: Layout, box, window):
    if fields is None or fields["user"] is None or not str(fields["user"]).strip(" "):
        return None, "unparsable"
    time = time_of(fields["time"], layout)
    if time is None:
        return None, "bad_time"
    if "space" in fields:
        latitude, _, longitude = str(fields["space"]).partition(" ")
    else:
        latitude, longitude = fields.get("latitude"), fields.get("longitude")
    latitude, longitude = degrees(str(latitude), 90), degrees(str(longitude), 180)
    if latitude is None or longitude is None:
        return None, "bad_position"
    row = (str(fields["user"]), time, latitude, longitude)
    if latitude == 0 and longitude == 0:
        return row, "null_island"
    if box and not (box[0] <= latitude < box[2] and box[1] <= longitude < box[3]):
        return row, "outside_box"
    if (window[0] and time < window[0]) or (window[1] and time >= window[1]):
        return row, "outside_window"
    return row, None


def time_of(value, layout: Layout) -> datetime | None:
    time = moment_of(value, layout)
    return None if time is None or time.year in (1, 9999) else time  # which programs write for no time


def settled(time: datetime, zone: tzinfo) -> datetime | None:
    """A time in UTC, None where clocks in the zone, which holds where it names none, never showed it."""
    if time.tzinfo:
        return time.astimezone(UTC)
    there = time.replace(tzinfo=zone).astimezone(UTC)
    return there if there.astimezone(zone).replace(tzinfo=None) == time else None


def moment_of(value, layout: Layout) -> datetime | None:
    if isinstance(value, datetime):
        return settled(value, layout.zone)
    for form in layout.times:
        try:
            time = form(value) if callable(form) else datetime.strptime(value, form)
        except (ValueError, TypeError):
            continue
        if time is not None:
            return settled(time, layout.zone)
    return None


def snap_time(text: str) -> datetime | None:
    match = TIME.fullmatch(text)
    if not match:
        return None
    try:
        time = datetime(*map(int, match.groups()[:6]), int((match[7] or "0").ljust(6, "0")), tzinfo=UTC)
    except ValueError:
        return None
    if match[8]:
        offset = timedelta(hours=int(match[9]), minutes=int(match[10]))
        time += -offset if match[8] == "+" else offset
    return time


SNAP = Layout(("user", "time", "latitude", "longitude", "place"), times=(snap_time,))


def select(reading: Reading, side: float, zone: tzinfo, months: int = 0, visits: int = 0, sample=None) -> Reading:
    """The users of `sample` that have rows in enough months and, of these, those that have enough visits."""
    for reason in ("not_sampled", "not_every_month", "few_visits"):
        users = reading.users
        if reason == "not_sampled" and sample is not None:
            users = sample
        if reason == "not_every_month" and months:
            mine = defaultdict(set)
            for user, time, *_ in reading.kept:
                local = time.astimezone(zone)
                mine[user].add((local.year, local.month))
            users = {user for user in users if len(mine[user]) == months}
        if reason == "few_visits":
            counted = Counter(user for user, *_ in reading.visits(side))
            users = {user for user in users if counted[user] >= visits}
        left = Reading(quarantine=list(reading.quarantine))
        for row, place in zip(reading.kept, reading.lines, strict=True):
            if row[0] in users:
                left.kept.append(row)
                left.lines.append(place)
            else:
                left.quarantine.append((*place, reason))
        left.quarantine.sort(key=lambda row: row[:2])
        reading = left
    return reading


def degrees(text: str, limit: float) -> float | None:
    if not NUMBER.fullmatch(text.strip()):
        return None
    value = float(text)
    return value if abs(value) <= limit else None
