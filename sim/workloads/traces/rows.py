"""The rows of a trace's files, in any layout: split by Spark, with their true positions; none is lost, and none raises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

# Any: PyArrow has no types for its schemas.
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base.errors import WorkloadError, suggestion
from sim.files.compression import Damaged, first_bytes
from sim.files.readable import ReadableFile
from sim.files.stores import opened
from sim.spark import F, T, sql
from sim.workloads.traces.fields import field_pattern, unquoted
from sim.workloads.traces.layouts import Layout, name_keys
from sim.workloads.traces.sources import is_parquet, readable
from sim.workloads.traces.times import TYPED, check_times

BOOLEANS = ("retain", "clean")
TIMES = ("time", "since", "until")
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"

_DIGITS = 38  # of a decimal number of Spark


def named(rows: sql.DataFrame, *fields: str) -> sql.Column:
    """The first of these fields that is not empty; null where all are, or the layout has none of them."""
    return F.coalesce(
        F.lit(None).cast("string"), *(F.when(F.trim(f) != "", F.col(f)) for f in fields if f in rows.columns)
    )


def with_texts(rows: sql.DataFrame, fields: Sequence[str]) -> sql.DataFrame:
    """`read_rows` with the texts of these fields kept beside what they are typed as, for `found`."""
    return rows.withColumns({f"{field}_text": F.col(field) for field in rows.columns if field in fields})


def found(rows: sql.DataFrame) -> sql.Column:
    """The text of the field that a row's `column` names, of those kept by `with_texts`; null for a row as a whole."""
    texts = [name for name in rows.columns if name.endswith("_text")]
    return F.coalesce(*(F.when(F.col("column") == name.removesuffix("_text"), F.col(name)) for name in texts))


def judged_as(judged: sql.DataFrame, types: Mapping[str, pa.DataType]) -> sql.DataFrame:
    """Rows that are validated, with the place and the text of each, columns of declared types, and what is wrong."""
    from pyspark.sql.pandas.types import from_arrow_type

    typed = (F.col(name).cast(from_arrow_type(kind)).alias(name) for name, kind in types.items())
    return judged.select("source", "block", "row", "raw", *typed, "reason", "column", "found")


def read_rows(spark: sql.SparkSession, folder: Path, layout: Layout, used: Sequence[str]) -> sql.DataFrame:
    """The rows of the files in `folder` (see `link_sources`), a string per field.

    Columns: source, block, row (in Parquet the row's number, else ascending in a block), raw, `parsed` (false
    where the row cannot be taken apart: all fields are null then), and each of `used` that the layout has; null where the
    row lacks it. Values of Parquet become text without loss: whole numbers as they are, times so that `parse_time` reads
    them; its rows' raw is JSON. Raises WorkloadError where a file lacks a column or is of another kind.
    """
    check_times(spark, layout)
    fields = [field for field in used if field in layout.columns]
    shapes: dict[Any, list[Path]] = {}
    for link in sorted(folder.iterdir()):
        path = readable(link)
        shapes.setdefault(_shape(path, link.resolve(), layout, fields), []).append(path)
    frames = []
    for shape, members in shapes.items():
        paths = [str(path) for path in members]
        if layout.kind == "text":
            frames.append(_read_text(spark, paths, layout, fields, shape))
        elif layout.kind == "jsonl":
            frames.append(_read_json(spark, paths, layout, fields))
        else:
            frames.append(_read_parquet(spark, paths, layout, fields, shape))
    return reduce(lambda one, other: one.unionByName(other), frames)


def _shape(path: ReadableFile, file: ReadableFile, layout: Layout, fields: Sequence[str]) -> Any:
    """What files have in common that are read together: nothing, the names in their headers, or their schema.

    `file` is what people call the one at `path`.
    """
    parquet = is_parquet(path)
    if layout.kind != "parquet" and parquet:
        raise WorkloadError(f"{file}: a Parquet file; give --format parquet")
    if layout.kind == "parquet":
        try:
            schema = pq.read_schema(opened(path))
        except (pa.ArrowException, OSError) as error:
            found = f"damaged Parquet file ({error})" if parquet else "not a Parquet file, as --format parquet requires"
            raise WorkloadError(f"{file}: {found}") from None
        _check_columns(file, layout, fields, schema.names)
        _check_types(file, layout, fields, schema)
        return schema.remove_metadata()
    if isinstance(layout.columns, Mapping) and layout.kind == "text":
        names = _header(path, file, layout)
        _check_columns(file, layout, fields, names)
        return names
    return None


def names_in(path: ReadableFile, layout: Layout, used: Sequence[str]) -> tuple[str, ...]:
    """The names of the fields in the lines of a file. Raises WorkloadError where it lacks one, or is of another kind."""
    found = _shape(path, path, layout, [field for field in used if field in layout.columns])
    return tuple(layout.columns) if found is None else found


def _check_columns(file: ReadableFile, layout: Layout, fields: Sequence[str], names: Sequence[str]) -> None:
    assert isinstance(layout.columns, Mapping)
    for field in fields:
        column = layout.columns[field]
        if column not in names:
            near = suggestion(column, names)
            raise WorkloadError(f"{file}: no column '{column}' for {field}{near} (it has {', '.join(names)})")
        if list(names).count(column) > 1:
            raise WorkloadError(f"{file}: two columns '{column}', one of them for {field}")


def _header(path: ReadableFile, file: ReadableFile, layout: Layout) -> tuple[str, ...]:
    try:
        line = (
            first_bytes(path, 1 << 20)
            .partition(b"\n")[0]
            .decode(layout.encoding)
            .removeprefix("\ufeff")
            .removesuffix("\r")
        )
    except (UnicodeDecodeError, Damaged, OSError) as error:
        raise WorkloadError(f"{file}: line 1: no header that can be read ({error})") from None
    if not layout.quote:
        return tuple(line.split(layout.delimiter))
    found = re.findall(field_pattern(layout), layout.delimiter + line)
    return tuple(map(unquoted, found))


def _read_lines(spark: sql.SparkSession, paths: list[str]) -> sql.DataFrame:
    """Source, block, row, raw, and `text`, null where it is not UTF-8.

    `row` ascends in a block, the part of a file from byte `block` on that one task reads.
    """
    value, raw = F.make_valid_utf8("value"), F.col("raw")
    # "\n" alone ends a line: Spark would also cut at a lone "\r", and no tool then agrees on line numbers.
    lines = spark.read.text(paths, lineSep="\n").select(
        _source(),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
        # for display, without the line's end; invalid bytes become U+FFFD
        F.when(value.endswith("\r"), F.substring(value, F.lit(1), F.length(value) - 1)).otherwise(value).alias("raw"),
        F.is_valid_utf8("value").alias("valid"),
    )
    text = F.when(raw.startswith("\ufeff"), F.substring(raw, F.lit(2), F.length(raw))).otherwise(raw)
    return lines.select("source", "block", "row", "raw", F.when(F.col("valid"), text).alias("text"))


def _source() -> sql.Column:
    return F.substring("_metadata.file_name", 1, 6).cast("int").alias("source")


def _read_text(
    spark: sql.SparkSession, paths: list[str], layout: Layout, fields: Sequence[str], names: tuple[str, ...] | None
) -> sql.DataFrame:
    order = list(layout.columns) if names is None else list(names)
    column = layout.columns if isinstance(layout.columns, Mapping) else {field: field for field in fields}
    text, count = F.col("text"), len(order)
    # Not from_csv: even a permissive one dies of a line with very many fields, and it changes quotes and NULs.
    found = F.split(text, re.escape(layout.delimiter), count + 1)
    if layout.quote:
        one, whole = field_pattern(layout), F.concat(F.lit(layout.delimiter), text)
        quoted = F.when(whole.rlike(rf"^(?:{one}){{{count}}}\z"), F.regexp_extract_all(whole, F.lit(one), F.lit(1)))
        found = F.when(text.contains('"'), F.transform(quoted, _unquoted)).otherwise(found)
    lines = _read_lines(spark, paths).withColumn("fields", found)
    lines = lines.withColumn("fields", F.when(F.size("fields") == count, F.col("fields")))
    return lines.select(
        *("source", "block", "row", "raw"),
        F.col("fields").isNotNull().alias("parsed"),
        *(F.get("fields", F.lit(order.index(column[field]))).alias(field) for field in fields),
    )


def _unquoted(field: sql.Column) -> sql.Column:
    inner = F.substring(field, F.lit(2), F.length(field) - 2)
    return F.when(field.startswith('"'), F.replace(inner, F.lit('""'), F.lit('"'))).otherwise(field)


def _read_json(spark: sql.SparkSession, paths: list[str], layout: Layout, fields: Sequence[str]) -> sql.DataFrame:
    assert isinstance(layout.columns, Mapping)
    keys = list(dict.fromkeys(layout.columns[field] for field in fields))
    # As an array of one, because the parser would not look at what stands behind an object.
    text = F.when(F.col("text").rlike(r"^\s*\{[\s\S]*\}\s*$"), F.concat(F.lit("["), "text", F.lit("]")))

    def objects(type: T.DataType) -> sql.Column:
        row = T.ArrayType(T.StructType([T.StructField(key, type) for key in keys]))
        return F.from_json(text, row, {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"})

    def no_name(key: str) -> sql.Column:
        """Whether a list, an object, true or false stands there: as text they look like names, so few are parsed for it."""
        kind = F.schema_of_variant(F.get(objects(T.VariantType()), F.lit(0)).getField(key))
        return F.when(F.col("object").getField(key).rlike(r"^(?:[\[{]|true$|false$)"), ~kind.eqNullSafe("STRING"))

    lines = _read_lines(spark, paths).withColumn("objects", objects(T.StringType()))
    lines = lines.withColumn("object", F.when(F.size("objects") == 1, F.get("objects", F.lit(0))))
    for key in name_keys(layout, fields):
        lines = lines.withColumn("object", F.when(~F.coalesce(no_name(key), F.lit(False)), F.col("object")))
    return lines.select(
        *("source", "block", "row", "raw"),
        F.col("object").isNotNull().alias("parsed"),
        *(F.col("object").getField(layout.columns[field]).alias(field) for field in fields),
    )


def _read_parquet(
    spark: sql.SparkSession, paths: list[str], layout: Layout, fields: Sequence[str], schema: pa.Schema
) -> sql.DataFrame:
    assert isinstance(layout.columns, Mapping)
    # Said and not left to Spark, which refuses the whole file where it does not know the type of a column.
    types = {column.name: _spark_type(column.type) for column in schema}
    known = T.StructType([T.StructField(name, type) for name, type in types.items() if type is not None])
    # Names are quoted so that a dot in one is no path.
    columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in known.names}
    values = {name: _timed(column, schema.field(name).type).alias(name) for name, column in columns.items()}
    raw = F.to_json(F.struct(*values.values()), {"ignoreNullFields": "false", "timestampNTZFormat": TYPED})
    return (
        spark.read.schema(known)
        .parquet(*paths)
        .select(
            _source(),
            F.lit(0).cast("bigint").alias("block"),
            F.col("_metadata.row_index").alias("row"),
            F.make_valid_utf8(raw).alias("raw"),
            F.lit(True).alias("parsed"),
            *(
                _text_of(values[layout.columns[field]], schema.field(layout.columns[field]).type).alias(field)
                for field in fields
            ),
        )
    )


def _plain(type: pa.DataType) -> pa.DataType:
    return type.value_type if pa.types.is_dictionary(type) else type


def _spark_type(type: pa.DataType) -> T.DataType | None:
    """The type that Spark reads a column of Parquet as; None where it has none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type

    type = _plain(type)
    special = {
        pa.uint8(): T.ShortType(),
        pa.uint16(): T.IntegerType(),
        pa.uint32(): T.LongType(),
        pa.uint64(): T.DecimalType(20),
        pa.string_view(): T.StringType(),
    }
    if type in special:
        return special[type]
    if _in_ns(type):
        return T.LongType()
    inner = [type.field(n).type for n in range(type.num_fields)] if pa.types.is_nested(type) else []
    if any(_spark_type(part) is None or _in_ns(part) for part in inner):
        return None
    if pa.types.is_time(type) or (pa.types.is_decimal(type) and type.precision > _DIGITS):
        return None
    try:
        return from_arrow_type(type, prefer_timestamp_ntz=True)
    except PySparkException:
        return None


def _in_ns(type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type) and type.unit == "ns")


def _timed(value: sql.Column, type: pa.DataType) -> sql.Column:
    """The value itself, but times that Spark reads as whole ns as times to the µs, of no zone."""
    if not _in_ns(type):
        return value
    micros = F.call_function("div", value, F.lit(1000)) - F.when(value % 1000 < 0, 1).otherwise(0)
    return F.timestamp_add("MICROSECOND", micros, F.lit("1970-01-01").cast("timestamp_ntz"))


def _text_of(value: sql.Column, type: pa.DataType) -> sql.Column:
    text = value.cast("string")
    if pa.types.is_timestamp(type):
        if type.tz is not None and not _in_ns(type):
            return F.date_format(value, f"{TYPED}XXX")
        # Not date_format, which takes a time of no zone for one of the session's, and moves it where clocks there skip it.
        point = F.when(text.contains("."), "").otherwise(".")
        text = F.rpad(F.concat(F.translate(text, " ", "T"), point), len("2010-10-19T23:55:27.000000"), "0")
        return text if type.tz is None else F.concat(text, F.lit("Z"))
    if pa.types.is_floating(type):  # pandas writes NaN where there is nothing
        return F.when(~F.isnan(value), text)
    return F.when(F.is_valid_utf8(text), text)


def _check_types(file: ReadableFile, layout: Layout, fields: Sequence[str], schema: pa.Schema) -> None:
    assert isinstance(layout.columns, Mapping)
    for field in fields:
        column = layout.columns[field]
        type = _plain(schema.field(column).type)
        if pa.types.is_nested(type) or (type == pa.bool_() and field not in BOOLEANS) or _spark_type(type) is None:
            raise WorkloadError(
                f"{file}: column '{column}' ({field}) has the type {type}, which cannot be read "
                "(expected a text, a number, a date or a time in each row)"
            )
        number = pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
        if field in TIMES and number and not {"epoch", "epoch-ms"} & set(layout.time_formats):
            raise WorkloadError(
                f"{file}: column '{column}' ({field}) has numbers ({type}), not dates: name a column that has "
                f"dates (it has {', '.join(schema.names)}), or give --time-format epoch or epoch-ms if they count from 1970"
            )
