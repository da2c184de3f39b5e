"""Raw check-ins, read and judged by Spark: every row ends as a usable check-in or with a reason in quarantine.

Stages hand over typed Parquet, so that each row is parsed once. A row has its true place (source, line) and its fate
whatever the partitions; nothing that depends on them leaves this module.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.dataset as ds
from numpy.typing import NDArray

from sim.errors import WorkloadError
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.quarantine import FORM
from sim.workloads.traces.rows import NUMBER, example_time, parse_time
from sim.workloads.traces.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

USED = ("user", "time", "latitude", "longitude")


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
                f"bounding box {self.south:g},{self.west:g},{self.north:g},{self.east:g}: expected S,W,N,E in degrees, "
                "-90 <= S < N <= 90, W and E different and from -180 to 180"
            )


BOXES = {"us-paper": Box(30.0, -126.0, 50.0, -66.0)}  # 20 × 60 cells of one degree (DYNATOPS, section IV.A.1)


@dataclass(frozen=True)
class Checkins:
    """Usable check-ins, one entry each, ordered by (user, time, latitude, longitude), in which no two are equal.

    `user` is a position in `names`; `micros` is the time in µs since 1970, UTC; positions are degrees.
    """

    names: list[str]
    user: NDArray[np.int32]
    micros: NDArray[np.int64]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.user)


def judge_rows(rows: DataFrame, layout: Layout, box: Box | None, window: tuple[int, int] | None) -> DataFrame:
    """Type the fields of `read_rows`: user, micros, latitude, longitude, `reason` and `column`, of which the reason speaks.

    `reason` is null where the row is usable, as far as one row can tell. `window` is [first, end) in µs since 1970.
    No row raises, whatever it holds, under ANSI rules too.
    """
    from pyspark.sql import functions as F

    def number(name: str, limit: float) -> Column:
        value = F.when(F.col(name).rlike(NUMBER), F.col(name).try_cast("double"))
        return F.when(F.abs(value) <= limit, value).alias(name)

    def inside(value: Column, low: float, high: float) -> Column:
        return (value >= low) & (value < high) if low < high else (value >= low) | (value < high)

    typed = rows.select(
        *(name for name in rows.columns if name not in USED),
        F.when(F.trim("user") != "", F.col("user")).alias("user"),
        parse_time(F.col("time"), layout).alias("micros"),
        number("latitude", 90),
        number("longitude", 180),
    )
    user, micros, latitude, longitude = (F.col(name) for name in ("user", "micros", "latitude", "longitude"))
    reason = F.when(user.isNull(), "unparsable").when(micros.isNull(), "bad_time")
    reason = reason.when(latitude.isNull() | longitude.isNull(), "bad_position")
    reason = reason.when((latitude == 0) & (longitude == 0), "null_island")
    if box is not None:
        within = inside(latitude, box.south, box.north) & inside(longitude, box.west, box.east)
        reason = reason.when(~within, "outside_box")
    if window is not None:
        reason = reason.when(~inside(micros, *window), "outside_window")
    column = (
        F.when(F.col("reason") == "bad_time", "time")
        .when((F.col("reason") == "bad_position") & latitude.isNull(), "latitude")
        .when(F.col("reason") == "bad_position", "longitude")
    )
    return typed.drop("parsed").withColumn("reason", reason).withColumn("column", column)


def mark_duplicates(rows: DataFrame) -> DataFrame:
    """Give the reason `duplicate` to usable rows that equal an earlier one (source, line) in every used column."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    usable = rows.where("reason IS NULL")
    same = Window.partitionBy("user", "micros", "latitude", "longitude").orderBy("source", "line")
    marked = usable.withColumn("reason", F.when(F.row_number().over(same) > 1, "duplicate"))
    return marked.unionByName(rows.where("reason IS NOT NULL"))


def check_form(rows: DataFrame, layout: Layout, sources: Sequence[Source]) -> int:
    """The number of rows. Raises WorkloadError where a source has none, or more than half are not in this layout."""
    from pyspark.sql import functions as F

    counted = rows.groupBy("source", "reason", "column").agg(F.count("*").alias("rows")).collect()
    for number in sorted(set(range(len(sources))) - {row["source"] for row in counted}):
        raise WorkloadError(f"{sources[number].path}: the file is empty")
    wrong: Counter[tuple[str, str | None]] = Counter()
    for row in counted:
        if row["reason"] in FORM:
            wrong[row["reason"], row["column"]] += row["rows"]
    read = sum(int(row["rows"]) for row in counted)
    if 2 * wrong.total() <= read:
        return read
    reason, column = max(sorted(wrong, key=str), key=wrong.__getitem__)
    blamed = (F.col("reason") == reason) & F.col("column").eqNullSafe(F.lit(column))
    first = rows.where(blamed).orderBy("source", "line").select("source", "line", "raw").head()
    assert first is not None
    place = f"{sources[first['source']].path}: line {first['line']}"
    share = f"({wrong.total():,} of {read:,} rows cannot be read as --format {layout.name})"
    if column is None:
        found = textwrap.shorten(first["raw"].replace("\t", " "), 80, placeholder=" …") or "an empty line"
        raise WorkloadError(
            f"{place}: expected {len(layout.columns)} fields ({', '.join(layout.columns)}) parted by {layout.delimiter!r} "
            f"in UTF-8 and a user that is not empty, found {found!r} {share}"
        )
    assert isinstance(layout.columns, tuple)
    position = layout.columns.index(column)
    expected = {
        "time": f"a time such as {example_time(rows.sparkSession, layout)}",
        "latitude": "degrees from -90 to 90",
        "longitude": "degrees from -180 to 180",
    }
    raise WorkloadError(
        f"{place}: column {position + 1} ({column}) looks wrong: expected {expected[column]}, "
        f"found {first['raw'].split(layout.delimiter)[position][:80]!r} {share}"
    )


def load_checkins(folder: Path) -> Checkins:
    """The typed Parquet of usable rows (none where there is no such folder); the order of its rows means nothing.

    Users are numbered by their names: whole numbers by value, then the others by code points.
    """
    if not folder.is_dir():
        return Checkins([], np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0), np.empty(0))
    columns = ["micros", "latitude", "longitude"]
    table = ds.dataset(folder, format="parquet").to_table(columns=["user", *columns])
    coded = table["user"].dictionary_encode().unify_dictionaries().combine_chunks()
    found = coded.dictionary.to_pylist()
    names = sorted(found, key=user_key)
    rank = {name: position for position, name in enumerate(names)}
    user = np.array([rank[name] for name in found], np.int32)[coded.indices.to_numpy()]
    micros, latitude, longitude = (table[name].to_numpy() for name in columns)
    order = np.lexsort((longitude, latitude, micros, user))
    return Checkins(names, user[order], micros[order], latitude[order], longitude[order])


def user_key(name: str) -> tuple[bool, int, str]:
    """Orders names: whole numbers by value, then the others by code points."""
    whole = name.isascii() and name.isdecimal()
    return not whole, int(name) if whole else 0, name
