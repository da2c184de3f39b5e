"""What the pipelines do to raw rows, done by DuckDB and by Polars: the same reading, parsing, validating and counting.

Both write the usable rows, typed, and the quarantine with line, raw row and reason as Parquet; both return how many rows there were
of each kind. Layouts and reasons are those of `benchmarks.traces`; nothing here is as general as the pipelines are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

Counts = dict[str, int]
"""Rows by reason, "kept" for the usable ones; and how many different "users" and "topics" these name."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def duckdb_checkins(source: Path, out: Path, threads: int) -> Counts:
    """Check-ins in Gowalla's layout by DuckDB."""
    base = _duckdb(out, threads)
    base.execute(
        f"""
        CREATE TABLE judged AS
        WITH lines AS (
            SELECT row_number() OVER () AS line, raw, string_split(raw, chr(9)) AS field
            FROM {_LINES}
        ), typed AS (
            SELECT line, raw, len(field) = 5 AND trim(field[1]) != '' AS form, field[1] AS user,
                epoch_us(try_strptime(field[2], '{_TIME}')) AS micros,
                try_cast(field[3] AS DOUBLE) AS latitude, try_cast(field[4] AS DOUBLE) AS longitude
            FROM lines
        ), reasoned AS (
            SELECT *, CASE
                WHEN NOT form THEN 'unparsable'
                WHEN micros IS NULL THEN 'bad_time'
                WHEN NOT coalesce(abs(latitude) <= 90 AND abs(longitude) <= 180, false) THEN 'bad_position'
                WHEN latitude = 0 AND longitude = 0 THEN 'null_island'
            END AS reason
            FROM typed
        )
        SELECT line, raw, user, micros, latitude, longitude, coalesce(reason, CASE WHEN
            row_number() OVER (PARTITION BY reason, user, micros, latitude, longitude ORDER BY line) > 1
            THEN 'duplicate' END) AS reason
        FROM reasoned
        """,
        [str(source)],
    )
    cells = "count(DISTINCT (floor(latitude), floor(longitude)))"
    return _duckdb_finish(base, out, "user, micros, latitude, longitude", "user", cells)


def duckdb_events(source: Path, out: Path, threads: int) -> Counts:
    """A log in the layout `mqtt` by DuckDB."""
    base = _duckdb(out, threads)
    base.execute(
        f"""
        CREATE TABLE judged AS
        WITH lines AS (
            SELECT row_number() OVER () AS line, raw, string_split(raw, chr(9)) AS field
            FROM {_LINES}
        ), typed AS (
            SELECT line, raw, len(field) = 7 AS parsed, lower(trim(field[2])) AS action,
                (try_cast(field[1] AS DECIMAL(22, 6)) * 1000000)::BIGINT AS micros,
                nullif(field[3], '') AS client, nullif(field[4], '') AS topic, try_cast(field[5] AS INTEGER) AS size
            FROM lines WHERE line > 1
        )
        SELECT line, CASE WHEN reason IS NOT NULL OR action NOT IN ('publish', 'deliver') THEN raw END AS raw,
            micros, action, client, topic, size, reason
        FROM (SELECT *, CASE
            WHEN NOT coalesce(parsed AND action IN {tuple(_ACTIONS)}
                AND (action = 'publish' OR client IS NOT NULL)
                AND (action IN ('connect', 'disconnect') OR topic IS NOT NULL)
                AND (action != 'publish' OR size >= 0), false) THEN 'unparsable'
            WHEN micros IS NULL THEN 'bad_time'
        END AS reason FROM typed)
        """,
        [str(source)],
    )
    return _duckdb_finish(base, out, "line, micros, action, client, topic, size", "client", "count(DISTINCT topic)")


_ACTIONS = ("connect", "subscribe", "unsubscribe", "publish", "deliver", "disconnect")
_LINES = "read_csv(?, columns={'raw': 'VARCHAR'}, header=false, auto_detect=false, delim=chr(1), quote='', escape='')"


def _duckdb(out: Path, threads: int) -> Any:
    import duckdb

    base = duckdb.connect(config={"threads": threads, "temp_directory": str(out / "spilled")})
    base.execute("SET enable_progress_bar = false")
    return base


def _duckdb_finish(base: Any, out: Path, columns: str, user: str, topics: str) -> Counts:
    for name, wanted, where in (("kept", columns, "IS NULL"), ("quarantine", "line, raw, reason", "IS NOT NULL")):
        select = f"SELECT {wanted} FROM judged WHERE reason {where}"
        base.execute(f"COPY ({select}) TO '{out / name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    counts = dict(base.execute("SELECT coalesce(reason, 'kept'), count(*) FROM judged GROUP BY 1").fetchall())
    users, named = base.execute(f"SELECT count(DISTINCT {user}), {topics} FROM judged WHERE reason IS NULL").fetchone()
    return {**counts, "users": users, "topics": named}


def polars_checkins(source: Path, out: Path, threads: int) -> Counts:
    """Check-ins in Gowalla's layout by Polars; POLARS_MAX_THREADS sets the threads."""
    import polars as pl

    assert pl.thread_pool_size() == threads
    field = pl.col("field").struct.field
    good = (pl.col("latitude").abs() <= 90) & (pl.col("longitude").abs() <= 180)
    used = ["user", "micros", "latitude", "longitude"]
    judged = (
        _polars_lines(source)
        .with_columns(form=pl.col("raw").str.count_matches("\t", literal=True) == 4, field=_split("raw", 4))
        .with_columns(
            field("field_0").alias("user"),
            field("field_1").str.to_datetime(_TIME, time_unit="us", strict=False).to_physical().alias("micros"),
            field("field_2").cast(pl.Float64, strict=False).alias("latitude"),
            field("field_3").cast(pl.Float64, strict=False).alias("longitude"),
        )
        .with_columns(
            reason=pl.when(~pl.col("form") | (pl.col("user").str.strip_chars() == ""))
            .then(pl.lit("unparsable"))
            .when(pl.col("micros").is_null())
            .then(pl.lit("bad_time"))
            .when(~good.fill_null(False))
            .then(pl.lit("bad_position"))
            .when((pl.col("latitude") == 0) & (pl.col("longitude") == 0))
            .then(pl.lit("null_island"))
        )
        .select("line", "raw", *used, "reason")
        .with_columns(
            reason=pl.when(pl.col("reason").is_null() & ~pl.struct("reason", *used).is_first_distinct())
            .then(pl.lit("duplicate"))
            .otherwise("reason")
        )
        .collect()
    )
    return _polars_finish(judged, out, used, "user", pl.struct(pl.col("latitude").floor(), pl.col("longitude").floor()))


def polars_events(source: Path, out: Path, threads: int) -> Counts:
    """A log in the layout `mqtt` by Polars; POLARS_MAX_THREADS sets the threads."""
    import polars as pl

    assert pl.thread_pool_size() == threads
    field, action = pl.col("field").struct.field, pl.col("action")
    publishes, controls = action == "publish", ~action.is_in(["publish", "deliver"])
    good = pl.col("parsed") & action.is_in(_ACTIONS) & (publishes | pl.col("client").is_not_null())
    good &= action.is_in(["connect", "disconnect"]) | pl.col("topic").is_not_null()
    good &= ~publishes | (pl.col("size") >= 0)
    used = ["line", "micros", "action", "client", "topic", "size"]
    judged = (
        _polars_lines(source)
        .filter(pl.col("line") > 1)
        .with_columns(parsed=pl.col("raw").str.count_matches("\t", literal=True) == 6, field=_split("raw", 6))
        .with_columns(
            (field("field_0").cast(pl.Decimal(22, 6), strict=False) * 1_000_000).cast(pl.Int64).alias("micros"),
            field("field_1").str.strip_chars().str.to_lowercase().alias("action"),
            field("field_2").replace("", None).alias("client"),
            field("field_3").replace("", None).alias("topic"),
            field("field_4").cast(pl.Int32, strict=False).alias("size"),
        )
        .with_columns(
            reason=pl.when(~good.fill_null(False))
            .then(pl.lit("unparsable"))
            .when(pl.col("micros").is_null())
            .then(pl.lit("bad_time"))
        )
        .with_columns(raw=pl.when(pl.col("reason").is_not_null() | controls).then("raw"))
        .select(*used, "raw", "reason")
        .collect()
    )
    return _polars_finish(judged, out, used, "client", pl.col("topic").drop_nulls())


def _split(column: str, parting: int) -> Any:
    import polars as pl

    return pl.col(column).str.split_exact("\t", parting)


def _polars_lines(source: Path) -> Any:
    import polars as pl

    return pl.scan_csv(
        source, separator="\x01", has_header=False, quote_char=None, schema={"raw": pl.String}
    ).with_row_index("line", 1)


def _polars_finish(judged: Any, out: Path, columns: list[str], user: str, topics: Any) -> Counts:
    import polars as pl

    kept = judged.filter(pl.col("reason").is_null()).select(columns)
    kept.write_parquet(out / "kept.parquet", compression="zstd")
    rest = judged.filter(pl.col("reason").is_not_null()).select("line", "raw", "reason")
    rest.write_parquet(out / "quarantine.parquet", compression="zstd")
    counts = dict(rest.group_by("reason").len().iter_rows())
    users, named = kept.select(pl.col(user).drop_nulls().n_unique(), topics.n_unique().alias("topics")).row(0)
    return {**counts, "kept": len(kept), "users": users, "topics": named}
