"""Arrow columns as numpy arrays and back, without Python values: pyarrow imports pandas for the first one that it is given."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def bits(values: NDArray[np.bool_]) -> pa.Buffer:
    """Flags as Arrow stores them."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def flags(column: pa.BooleanArray) -> NDArray[np.bool_]:
    """The values of a column; False for null."""
    found = _unpacked(column.buffers()[1], column)
    return found if column.null_count == 0 else found & valid(column)


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Which values of a column are not null."""
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    if column.buffers()[0] is None:  # a column of the type null
        return np.zeros(len(column), np.bool_)
    return _unpacked(column.buffers()[0], column)


def _unpacked(buffer: pa.Buffer, column: pa.Array) -> NDArray[np.bool_]:
    every = np.unpackbits(np.frombuffer(buffer, np.uint8), count=column.offset + len(column), bitorder="little")
    return every[column.offset :].view(np.bool_)


def places(values: NDArray[np.int64], known: NDArray[np.bool_]) -> pa.Array:
    """A column of places in another, null where they are not known."""
    return pa.Array.from_buffers(pa.int64(), len(values), [bits(known), pa.py_buffer(np.ascontiguousarray(values))])


def masked(column: pa.Array, wanted: NDArray[np.bool_]) -> pa.Array:
    """A column that is null where it is not wanted."""
    return column if wanted.all() else column.take(places(np.arange(len(column)), wanted))


def codes(column: pa.DictionaryArray) -> NDArray[np.int32]:
    """The places of a column's values in its dictionary; -1 for null."""
    indices = column.indices
    found = np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)]
    return found if indices.null_count == 0 else np.where(valid(indices), found, np.int32(-1))


def values_of(column: pa.Array) -> NDArray[np.generic]:
    """The values of a column of numbers; what stands for null is any of them."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]


def int64_values(column: pa.Int64Array) -> NDArray[np.int64]:
    """The values of a column of integers, in which there is no null."""
    return values_of(column).view(np.int64)
