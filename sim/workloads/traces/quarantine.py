"""Rows that a pipeline cannot use: why, how many, and where they stood."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.files.parquet import ROW_GROUP, arrow, strings
from sim.spark import F, sql
from sim.workloads.traces.layouts import Layout
from sim.workloads.traces.rows import name_keys
from sim.workloads.traces.sources import Source
from sim.workloads.traces.times import example_time

# A row's reason is the first of these that applies. The last three are of users of whom no row is used.
_REASONS = (
    *("unparsable", "bad_time", "bad_position", "null_island", "outside_box", "outside_window"),
    *("no_effect", "duplicate"),
    *("not_sampled", "not_every_month", "few_visits"),
)
# These tell that a file is not in the layout it is read in; the others only tell what is in it.
FORM = _REASONS[:3]

_SCHEMA = pa.schema({"source": pa.string(), "line": pa.int64(), "raw": pa.string(), "reason": pa.string()})
_LINE_BITS = 40


def row_number(source: NDArray[np.int32], line: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each row, ascending as (source, line) do."""
    return source.astype(np.int64) << _LINE_BITS | line


def check_form(
    rows: sql.DataFrame, layout: Layout, sources: Sequence[Source], expected: Mapping[str, str], first: int = 0
) -> Counter[str | None]:
    """How many rows have each reason, and how many have none. Raises where a source is empty or not in this layout.

    `rows` have source, line, raw, reason, column and found: which field a reason of `FORM` speaks of, null for the whole row,
    and what stands there; `expected` tells what should, unless it is a time. `sources` are numbered from `first` on.
    WorkloadError where a source has no rows, or where more than half of all rows have such a reason.
    """
    counted = rows.groupBy("source", "reason", "column").agg(F.count("*").alias("rows")).collect()
    for number in sorted(set(range(len(sources))) - {row["source"] - first for row in counted}):
        raise WorkloadError(f"{sources[number].path}: the file is empty{' but for its header' * layout.header}")
    reasons: Counter[str | None] = Counter()
    wrong: Counter[tuple[str, str | None]] = Counter()
    for row in counted:
        reasons[row["reason"]] += row["rows"]
        if row["reason"] in FORM:
            wrong[row["reason"], row["column"]] += row["rows"]
    if 2 * wrong.total() <= reasons.total():
        return reasons
    reason, column = max(sorted(wrong, key=str), key=wrong.__getitem__)
    blamed = rows.where((F.col("reason") == reason) & F.col("column").eqNullSafe(F.lit(column)))
    [row] = blamed.orderBy("source", "line").select("source", "line", "raw", "found").limit(1).collect()
    share = f"({wrong.total():,} of {reasons.total():,} rows cannot be read as --format {layout.name})"
    place = f"{sources[row['source'] - first].path}: {'row' if layout.kind == 'parquet' else 'line'} {row['line']}"
    if column is None:
        raise WorkloadError(f"{place}: expected {_line(layout)}, found {_shown(row['raw'])} {share}")
    wanted = expected.get(column) or f"a time such as {example_time(rows.sparkSession, layout)}"
    found = "nothing" if row["found"] is None else repr(row["found"][:80])
    raise WorkloadError(f"{place}: {_column(layout, column)} looks wrong: expected {wanted}, found {found} {share}")


def _line(layout: Layout) -> str:
    if layout.kind == "jsonl":
        return f"an object of JSON in UTF-8, with a text or a number as {' and '.join(name_keys(layout))}"
    if isinstance(layout.columns, Mapping):
        return f"as many fields as line 1 names, separated by {layout.delimiter!r}, in UTF-8"
    return f"{len(layout.columns)} fields ({', '.join(layout.columns)}) separated by {layout.delimiter!r} in UTF-8"


def _shown(raw: str) -> str:
    short = textwrap.shorten(raw.replace("\t", " "), 80, placeholder=" …")
    return repr(short) if short else "an empty line"


def _column(layout: Layout, field: str) -> str:
    if isinstance(layout.columns, Mapping):
        name = layout.columns[field]
        return f"{'key' if layout.kind == 'jsonl' else 'column'} '{name}'" + f" ({field})" * (name != field)
    return f"column {layout.columns.index(field) + 1} ({field})"


def store_quarantine(
    spark: sql.SparkSession, rows: sql.DataFrame, dropped: Mapping[str, NDArray[np.int64]], folder: Path
) -> None:
    """Fill `folder`/sorted with Parquet of the rows that have a reason or are among `dropped`: row numbers by reason.

    `rows` have source, line, raw and reason. Spark sorts them, because there may be more than fit into memory.
    """
    columns = ("source", "line", "raw", "reason")
    bad = rows.where("reason IS NOT NULL").select(*columns)
    if any(len(numbers) for numbers in dropped.values()):
        folder.mkdir()
        pq.write_table(_dropped(dropped), folder / "dropped.parquet")
        others = rows.where("reason IS NULL").drop("reason")
        chosen = spark.read.schema("source int, line bigint, reason string").parquet(str(folder / "dropped.parquet"))
        bad = bad.unionByName(others.join(chosen, ["source", "line"]).select(*columns))
    bad.orderBy("source", "line").write.parquet(str(folder / "sorted"))


def _dropped(dropped: Mapping[str, NDArray[np.int64]]) -> pa.Table:
    number = np.concatenate(list(dropped.values()))
    code = np.repeat(np.arange(len(dropped), dtype=np.int8), [len(numbers) for numbers in dropped.values()])
    reason = pa.DictionaryArray.from_arrays(arrow(code), strings(dropped))
    source, line = (number >> _LINE_BITS).astype(np.int32), number & ((1 << _LINE_BITS) - 1)
    return pa.table({"source": arrow(source), "line": arrow(line), "reason": reason})


def read_quarantine(folder: Path, names: Sequence[str]) -> Iterator[pa.Table]:
    """What `store_quarantine` stored, as source (one of `names`), line, raw, reason, a million rows at a time."""
    texts = strings(names)
    waiting = _SCHEMA.empty_table()
    for path in sorted((folder / "sorted").glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=_SCHEMA.names, use_threads=False):
                table = pa.Table.from_batches([batch])
                table = table.set_column(0, "source", texts.take(table["source"].combine_chunks())).cast(_SCHEMA)
                waiting = pa.concat_tables([waiting, table])
                while len(waiting) >= ROW_GROUP:
                    yield waiting.slice(0, ROW_GROUP)
                    waiting = waiting.slice(ROW_GROUP)
    yield waiting


def account(reasons: Counter[str | None]) -> dict[str, Any]:
    """The manifest's `rows`: read = kept + all quarantined; reasons in their order, those that never applied left out."""
    quarantined = {reason: reasons[reason] for reason in _REASONS if reasons[reason]}
    return {"read": reasons.total(), "kept": reasons[None], "quarantined": quarantined}


def describe_reasons(rows: Mapping[str, Any]) -> str:
    """The quarantined `rows` of a manifest in words: `duplicate 8`."""
    return ", ".join(f"{reason} {count:,}" for reason, count in rows["quarantined"].items())
