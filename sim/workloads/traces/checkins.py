"""Raw check-ins, validated and loaded as arrays: every row ends as a usable check-in or with a reason in quarantine.

`checkin_kernels` has the same rules for whole columns; Spark's expressions here validate what kernels do not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.errors import WorkloadError
from sim.base.ordering import lex_order
from sim.spark import F, sql
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.rows import NUMBER, found, judged_as, named, read_rows, with_texts
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.times import Window, outside, parse_time, time_text
from sim.workloads.traces.typed import Names, read_typed

CHECKIN_TYPES = {"user": pa.string(), "micros": pa.int64(), "latitude": pa.float64(), "longitude": pa.float64()}
"""What a usable row is typed as: time in µs since 1970, UTC, and degrees."""
# What each field should contain, for messages.
CHECKIN_EXPECTED = {
    "user": "a user, which is not empty",
    "latitude": "degrees from -90 to 90",
    "longitude": "degrees from -180 to 180",
    "space": "latitude and longitude in degrees, such as '40.7 -74.0'",
    "place": "a place to which --places gives a latitude and longitude in degrees",
}


@dataclass(frozen=True)
class Box:
    """Positions with south ≤ latitude < north and west ≤ longitude < east, degrees; west > east crosses the date line."""

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        longitudes = abs(self.west) <= 180 and abs(self.east) <= 180 and self.west != self.east
        if not (-90 <= self.south < self.north <= 90 and longitudes):
            raise WorkloadError(
                f"--bounding-box {self.south:g},{self.west:g},{self.north:g},{self.east:g}: expected S,W,N,E in degrees, "
                "-90 <= S < N <= 90, W and E different and from -180 to 180"
            )


BOXES = {"us-paper": Box(30.0, -126.0, 50.0, -66.0)}  # 20 × 60 cells of one degree (DYNATOPS, section IV.A.1)


@dataclass(frozen=True)
class Checkins:
    """Check-ins, one entry each, ordered by (user, time, latitude, longitude, row).

    `user` is a position in `names`; `micros` is the time in µs since 1970, UTC; positions are degrees; `row` is its place in the
    files, see `row_number`.
    """

    names: list[str]
    user: NDArray[np.int32]
    micros: NDArray[np.int64]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.user)

    def repeated(self) -> NDArray[np.bool_]:
        """Which ones equal the previous one, that is, an earlier row, in everything but the row."""
        same = np.zeros(len(self), np.bool_)
        same[1:] = True
        for column in (self.user, self.micros, self.latitude, self.longitude):
            same[1:] &= column[1:] == column[:-1]
        return same

    def where(self, which: NDArray[np.bool_]) -> Checkins:
        """Only these, with the names of only the remaining users, in order."""
        user = self.user[which]
        left = np.bincount(user, minlength=len(self.names)) > 0
        user = (np.cumsum(left, dtype=np.int32) - np.int32(1))[user]
        names = [name for name, stays in zip(self.names, left, strict=True) if stays]
        return Checkins(names, user, self.micros[which], self.latitude[which], self.longitude[which], self.row[which])


_POSITION = ("latitude", "longitude", "space", "place")


def check_layouts(layout: Layout, places: Layout | None) -> None:
    """Raise WorkloadError where the layout of check-ins, or of places that have their positions, lacks a field."""
    if places is None and "place" in layout.columns and not {"latitude", "longitude", "space"} & set(layout.columns):
        raise WorkloadError(f"--columns {layout.said()}: places without positions; --places FILE gives their positions")
    layout.require("check-ins", checkin_fields(layout, places), others=_POSITION)
    if places is not None:
        places.require("places", ("place", *position_fields(places)), "--places-columns", _POSITION)


def checkin_fields(layout: Layout, places: Layout | None) -> tuple[str, ...]:
    """The fields of check-ins that are used."""
    return ("user", *layout.time_fields, *(position_fields(layout) if places is None else ("place",)))


def position_fields(layout: Layout) -> tuple[str, ...]:
    """The fields in which a layout has positions."""
    return ("space",) if "space" in layout.columns and "latitude" not in layout.columns else ("latitude", "longitude")


def read_checkins(
    spark: sql.SparkSession, folder: Path, layout: Layout, places: tuple[Path, Layout] | None
) -> sql.DataFrame:
    """`read_rows` of the check-ins in `folder`, their positions from the files in the folder of `places` where it is given.

    Where a place has several rows, the first counts.
    """
    if places is None:
        return read_rows(spark, folder, layout, checkin_fields(layout, None))
    where = position_fields(places[1])
    by_place = read_rows(spark, places[0], places[1], ("place", *where)).groupBy("place")
    first = F.min_by(F.struct(*where), F.struct("source", "block", "row"))
    known = by_place.agg(first.alias("position")).select("place", "position.*")
    joined = read_rows(spark, folder, layout, checkin_fields(layout, places[1])).join(known, "place", "left")
    return joined.repartition("source", "block").sortWithinPartitions("source", "block", "row")


def judge_checkins(rows: sql.DataFrame, layout: Layout, box: Box | None, window: Window) -> sql.DataFrame:
    """Type the fields of `read_checkins`: user, micros, latitude, longitude; null where they are not usable.

    Adds `reason`, null where the row by itself is usable, and, for a reason about a field's form, `column` and `found`, its name
    and its text. No row raises, whatever it contains, even under ANSI rules.
    """

    def inside(value: sql.Column, low: float, high: float) -> sql.Column:
        return (value >= low) | (value < high) if low > high else (value >= low) & (value < high)

    def number(text: sql.Column, limit: float) -> sql.Column:
        value = F.when(text.rlike(NUMBER), text.try_cast("double"))
        return F.when(F.abs(value) <= limit, value)

    if "space" in rows.columns:
        pair = r"^\s*([^\s,;]+)[\s,;]+([^\s,;]+)\s*$"
        degrees = [F.regexp_extract("space", pair, part) for part in (1, 2)]
    else:
        degrees = [F.col("latitude"), F.col("longitude")]
    texts = ("user", *layout.time_fields, "place", "space", "latitude", "longitude")
    typed = with_texts(rows, texts).withColumns(
        {
            "user": named(rows, "user"),
            "micros": parse_time(time_text(layout), layout),
            "latitude": number(degrees[0], 90),
            "longitude": number(degrees[1], 180),
        }
    )
    user, micros, latitude, longitude = (F.col(name) for name in ("user", "micros", "latitude", "longitude"))
    reason = F.when(user.isNull(), "unparsable").when(micros.isNull(), "bad_time")
    reason = reason.when(latitude.isNull() | longitude.isNull(), "bad_position")
    reason = reason.when((latitude == 0) & (longitude == 0), "null_island")
    if box is not None:
        within = inside(latitude, box.south, box.north) & inside(longitude, box.west, box.east)
        reason = reason.when(~within, "outside_box")
    reason = reason.when(outside(micros, window), "outside_window")
    said = next((F.lit(name) for name in ("place", "space") if name in rows.columns), None)
    position = F.when(latitude.isNull(), "latitude").otherwise("longitude") if said is None else said
    column = F.when(F.col("reason") == "bad_time", layout.time_fields[0]).when(
        F.col("reason") == "bad_position", position
    )
    column = column.when((F.col("reason") == "unparsable") & F.col("parsed"), "user")
    judged = typed.withColumn("reason", reason).withColumn("column", column)
    return judged_as(judged.withColumn("found", found(judged)), CHECKIN_TYPES)


def load_checkins(shelf: Shelf) -> Checkins:
    """The usable rows.

    Users are numbered by their names: whole numbers by value, then the others by code points.
    """
    users = Names()
    loaded, row = read_typed(shelf, CHECKIN_TYPES, {"user": users})
    return ordered_checkins(users, {**loaded, "row": row})


def ordered_checkins(users: Names, loaded: Columns) -> Checkins:
    """Check-ins with these columns in any order, but by row; `user` as numbered among these names so far."""
    user, row = users.sort()[loaded["user"]], loaded["row"]
    micros, latitude, longitude = (loaded[name] for name in ("micros", "latitude", "longitude"))
    order = lex_order(user, micros, latitude, longitude)  # else by row, as they stand
    return Checkins(users.names, user[order], micros[order], latitude[order], longitude[order], row[order])
