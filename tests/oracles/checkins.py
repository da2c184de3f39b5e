"""A slow, obvious reader of check-ins in the SNAP layout."""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
FORM = {"unparsable", "bad_time", "bad_position"}


@dataclass
class Reading:
    kept: list[tuple[str, datetime, float, float]] = field(default_factory=list)
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


def read(paths: list[Path], box=None, window=None) -> Reading:
    """`box` is (south, west, north, east), `window` two datetimes."""
    reading, seen = Reading(), set()
    for path in paths:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        lines = content.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        for number, line in enumerate(lines, 1):
            line = line.removesuffix(b"\r")
            row, reason = judge(line, box, window)
            if reason is None and row in seen:
                reason = "duplicate"
            if reason is None:
                seen.add(row)
                reading.kept.append(row)
            else:
                reading.quarantine.append((path.name, number, line.decode(errors="replace"), reason))
    return reading


def judge(line: bytes, box, window):
    try:
        fields = line.decode().removeprefix("\ufeff").split("\t")
    except UnicodeDecodeError:
        return None, "unparsable"
    if len(fields) != 5 or not fields[0].strip(" "):
        return None, "unparsable"
    time = parse_time(fields[1])
    if time is None:
        return None, "bad_time"
    latitude, longitude = degrees(fields[2], 90), degrees(fields[3], 180)
    if latitude is None or longitude is None:
        return None, "bad_position"
    row = (fields[0], time, latitude, longitude)
    if latitude == 0 and longitude == 0:
        return row, "null_island"
    if box and not (box[0] <= latitude < box[2] and box[1] <= longitude < box[3]):
        return row, "outside_box"
    if window and not window[0] <= time < window[1]:
        return row, "outside_window"
    return row, None


def parse_time(text: str) -> datetime | None:
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


def degrees(text: str, limit: float) -> float | None:
    if not NUMBER.fullmatch(text.strip()):
        return None
    value = float(text)
    return value if abs(value) <= limit else None
