"""What tasks exchange in files: rows divided among parts by a name, rows in order, and arrays that all of them map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

# Any: PyArrow has no types for its columns.
from typing import Any, Self
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns, Integers
from sim.files.columns import codes, values_of
from sim.files.directories import Directory
from sim.files.parquet import arrow

PART_ROWS = 1 << 20
"""Rows that a task has in memory at once, unless a single user has more."""
BATCH_ROWS = 1 << 16
BLOCK_ROWS = 1 << 20
"""Rows of a file of a table."""
_SAMPLE_BITS = 14


class SplitWriter:
    """Divides rows among `parts` by the names in the first column of a schema, and writes them to a file.

    It has a batch for each part in turn, again and again.
    """

    def __init__(self, folder: Directory, name: str, schema: pa.Schema, parts: int) -> None:
        self.schema, self.parts = schema, parts
        self._waiting, self._rows, self._files = list[pa.RecordBatch](), 0, ExitStack()
        file = self._files.enter_context(folder.output(name))
        self._writer = self._files.enter_context(pa.ipc.new_file(file, schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._write()
        self._files.__exit__(*error)  # type: ignore[arg-type]

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows with these columns."""
        batch = pa.record_batch([arrow(columns[field.name]).cast(field.type) for field in self.schema], self.schema)
        self._waiting.append(batch)
        self._rows += len(batch)
        if self._rows >= PART_ROWS:
            self._write()

    def _write(self) -> None:
        if not self._rows:
            return
        rows = pa.Table.from_batches(self._waiting).combine_chunks().to_batches()[0]
        part = _part_of(rows[0], self.parts)
        order = np.argsort(part, kind="stable")
        rows = rows.take(arrow(order))
        ends = np.searchsorted(part[order], np.arange(self.parts), side="right").tolist()
        for start, stop in zip([0, *ends], ends, strict=False):
            self._writer.write_batch(rows.slice(start, stop - start))
        self._waiting, self._rows = [], 0


def _part_of(names: pa.StringArray, parts: int) -> Integers:
    names = names.dictionary_encode()
    found: Integers = np.array(
        [crc32(name) % parts for name in names.dictionary.cast(pa.binary()).to_pylist()], np.min_scalar_type(parts)
    )
    return found[codes(names)]


def split_rows(folder: Directory, files: Sequence[str], part: int, parts: int) -> Iterator[pa.RecordBatch]:
    """The rows of a part in files of `SplitWriter`."""
    for name in files:
        with folder.input(name) as file, pa.ipc.open_file(file) as split:
            for number in range(part, split.num_record_batches, parts):
                yield split.get_batch(number)


@dataclass(frozen=True)
class SortedRows:
    """A file of rows in ascending order of their first column, in batches of `BATCH_ROWS`, which begin with the values `starts`.

    Its ids are those of an `owner`, which others know by other numbers.
    """

    name: str
    owner: str
    starts: NDArray[np.int64]


def write_sorted(
    folder: Directory, name: str, columns: Columns, owner: str = "", batch: int | None = None
) -> SortedRows:
    """Write rows that are in order of their first column, which is of integers, in batches of `BATCH_ROWS` or this number."""
    batch = batch or BATCH_ROWS
    rows = pa.record_batch({column: arrow(values) for column, values in columns.items()})
    with folder.output(name) as file, pa.ipc.new_file(file, rows.schema) as writer:
        for start in range(0, max(len(rows), 1), batch):
            writer.write_batch(rows.slice(start, batch))
    return SortedRows(name, owner, next(iter(columns.values()))[::batch].astype(np.int64))


def some_values(values: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values of one row in 2^`_SAMPLE_BITS`, for `cut_blocks`: drawn by the numbers of rows, so however files are cut."""
    drawn: NDArray[np.uint64] = row.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - _SAMPLE_BITS)
    some: NDArray[np.int64] = values[drawn == 0]
    return some


def cut_blocks(starts: Sequence[Integers], rows: int, most: int) -> NDArray[np.int64]:
    """The values of sorted rows at which blocks begin of about `most` of `rows`, none for the first; few rows are of one value.

    `starts` are values at equal distances among them, or a sample.
    """
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *starts]))
    blocks = max(1, -(-rows // most))
    return np.unique(every[np.arange(1, blocks) * len(every) // blocks])


def block_limits(blocks: NDArray[np.int64], block: int) -> tuple[int, int]:
    """The values of a block: from the first to before the second."""
    everything = np.iinfo(np.int64)
    first = int(blocks[block - 1]) if block else int(everything.min)
    return first, int(blocks[block]) if block < len(blocks) else int(everything.max)


@dataclass(frozen=True)
class SharedArrays:
    """Arrays and sorted rows in a folder, which tasks map."""

    folder: Directory

    def keep(self, name: str, *arrays: Integers) -> None:
        """Write arrays of one type for tasks to map."""
        schema = pa.schema({"": pa.from_numpy_dtype(arrays[0].dtype)})
        with self.folder.output(name) as file, pa.ipc.new_file(file, schema) as writer:
            for values in arrays:
                writer.write_batch(pa.record_batch({"": arrow(values)}))

    def read(self, name: str, number: int = 0) -> Integers:
        """One of the arrays that `keep` has written."""
        with self.folder.input(name) as file, pa.ipc.open_file(file) as stored:
            found: Integers = _values(stored.get_batch(number)[0])
        return found

    def rows(self, name: str, first: int = 0, stop: int | None = None) -> Columns:
        """The columns of a file of `write_sorted`, from one of its batches to another."""
        with self.folder.input(name) as file, pa.ipc.open_file(file) as stored:
            batches = range(first, stored.num_record_batches if stop is None else stop)
            rows = pa.Table.from_batches([stored.get_batch(n) for n in batches], stored.schema).combine_chunks()
        return {column: _values(rows[column].chunk(0)) for column in rows.column_names}

    def between(self, rows: SortedRows, first: int, stop: int) -> Columns | None:
        """The columns of those rows of a file with first values in [first, stop); None where certainly none has."""
        begin = max(int(np.searchsorted(rows.starts, first, side="left")) - 1, 0)
        end = int(np.searchsorted(rows.starts, stop, side="left"))
        if begin >= end:
            return None
        columns = self.rows(rows.name, begin, end)
        here = slice(*np.searchsorted(next(iter(columns.values())), (first, stop)).tolist())
        return {name: values[here] for name, values in columns.items()}


def _values(column: pa.Array) -> Any:
    return values_of(column) if len(column) else np.empty(0, column.type.to_pandas_dtype())
