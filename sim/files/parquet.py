"""Read and write tables of numpy columns as parquet: equal values make equal bytes, and pandas is not imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

# Any: PyArrow has no types; arrays follow from the type of the column.
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.base.arrays import Columns, Number
from sim.base.errors import WorkloadError
from sim.files.columns import bits

if TYPE_CHECKING:
    import pandas as pd


ROW_GROUP = 1_000_000


def strings(values: Iterable[str]) -> pa.StringArray:
    """A column of text."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return _strings(offsets, b"".join(encoded))


def numbers(count: int) -> pa.StringArray:
    """A text column "0", "1", …, as default names."""
    return arrow(np.arange(count, dtype=np.int32)).cast(pa.string())


def repeated(text: str, count: int) -> pa.StringArray:
    """A column of `count` times the same text; `pa.repeat` would import pandas."""
    encoded = text.encode()
    return _strings(np.arange(count + 1) * len(encoded), encoded * count)


def _strings(offsets: NDArray[np.int64], text: bytes) -> pa.StringArray:
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))


def arrow(values: NDArray[np.generic] | pa.StringArray) -> pa.Array:
    """An arrow column, null where there is NaN; `pa.array` would import pandas."""
    if isinstance(values, pa.Array):
        return values
    values = np.ascontiguousarray(values)
    if values.dtype == np.bool_:
        return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, bits(values.view(np.bool_))])
    validity = None
    if values.dtype.kind == "f" and np.isnan(values).any():
        validity = bits(~np.isnan(values))
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)  # values masked by nulls are not data
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(values)])


def column(values: Any) -> pa.Array:
    """An arrow column from an array or a list; NaN and None become null, and a column of only those is float64."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return arrow(values)
    found = pa.array(values)
    return found.cast(pa.float64()) if found.type == pa.null() else found


def write_table(path: Path, table: pa.Table) -> None:
    """Write one parquet file; equal tables make equal bytes."""
    write_tables(path, [table])


def write_tables(path: Any, tables: Iterable[pa.Table]) -> None:
    """Write one parquet file, named or open, of the concatenation of these tables, at least one."""
    tables = iter(tables)
    first = next(tables)
    text = [field.name for field in first.schema if field.type == pa.string()]
    with pq.ParquetWriter(path, first.schema, compression="zstd", version="2.6", use_dictionary=text) as writer:
        for table in chain([first], tables):
            writer.write_table(table, ROW_GROUP)


def write_columns(path: Path, columns: Columns) -> None:
    """Write one parquet file of these columns."""
    write_table(path, pa.table({name: arrow(values) for name, values in columns.items()}))


def read_columns(path: Path, types: Mapping[str, pa.DataType]) -> Columns:
    """Read the columns named in `types`: numpy arrays (null is NaN) and, for text, arrow arrays; others are ignored.

    Raises WorkloadError where the file is missing or not parquet, a column is missing or of another type, or a value of a type
    other than float is null.
    """
    with _reading(path, types) as file:
        return {
            name: _values(path, name, file.read([name], use_threads=False).column(0), kind)
            for name, kind in types.items()
        }


def read_batches(path: Path, types: Mapping[str, pa.DataType]) -> Iterator[Columns]:
    """Read columns as `read_columns` does, in batches of rows, to save memory."""
    first = 0
    with _reading(path, types) as file:
        for batch in file.iter_batches(ROW_GROUP, columns=list(types), use_threads=False):
            columns = {name: pa.chunked_array([batch.column(name)]) for name in types}
            yield {name: _values(path, name, columns[name], kind, first) for name, kind in types.items()}
            first += len(batch)


def read_frame(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read all or some columns of a parquet file into pandas; errors are those of pyarrow.

    Like pandas.read_parquet, but without pyarrow's threads: a process that exits while they are stopping sometimes aborts.
    """
    with pq.ParquetFile(path) as file:
        frame: pd.DataFrame = file.read(columns, use_threads=False).to_pandas(use_threads=False)
    return frame


def count_rows(path: Path) -> int:
    """The number of rows of a parquet file. Raises WorkloadError where it is missing or not parquet."""
    with _reading(path, {}) as file:
        return int(file.metadata.num_rows)


def column_names(path: Path) -> list[str]:
    """The names of the columns of a parquet file. Raises WorkloadError where it is missing or not parquet."""
    with _reading(path, {}) as file:
        return list(file.schema_arrow.names)


@contextmanager
def _reading(path: Path, types: Mapping[str, pa.DataType]) -> Iterator[pq.ParquetFile]:
    """Open a parquet file after checking that it has columns of these types."""
    try:
        with _sparing(), pq.ParquetFile(path) as file:
            found = {field.name: field.type for field in file.schema_arrow}
            for name, kind in types.items():
                if name not in found:
                    raise WorkloadError(f"{path}: no column '{name}' (found: {', '.join(found) or 'none'})")
                if found[name] != kind and not (kind == pa.string() and found[name] == pa.large_string()):
                    raise WorkloadError(f"{path}: column '{name}' is {found[name]}, expected {kind}")
            yield file
    except FileNotFoundError:
        raise WorkloadError(f"{path}: missing file") from None
    except (pa.ArrowException, OSError) as error:
        raise WorkloadError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from None


@contextmanager
def _sparing() -> Iterator[None]:
    """Let arrow allocate from the system while the body runs, as its pools would keep tens of megabytes after reading."""
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(pool)


def _values(path: Path, name: str, column: pa.ChunkedArray, kind: pa.DataType, first: int = 0) -> Any:
    null = _copy(column.is_null().cast(pa.int8()), np.dtype(np.int8)) > 0 if column.null_count else np.zeros(0, bool)
    if len(null) and kind != pa.float64():
        raise WorkloadError(f"{path}: row {first + int(null.argmax())}: {name} is null, expected {kind}")
    if kind == pa.string():
        return pa.concat_arrays(column.cast(kind).chunks) if column.num_chunks else strings([])
    values = _copy(column, np.dtype(kind.to_pandas_dtype()))
    if len(null):
        values[null] = np.nan
    return values


def _copy(column: pa.ChunkedArray, dtype: np.dtype[Number]) -> NDArray[Number]:
    values = np.empty(len(column), dtype)
    start = 0
    for chunk in column.chunks:
        stop = start + len(chunk)
        if len(chunk):
            values[start:stop] = np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset : chunk.offset + len(chunk)]
        start = stop
    return values
