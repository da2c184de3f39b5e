"""Columns of text by the shapes of their values, in which every digit is 0: values of one shape are parsed at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.files.columns import codes
from sim.files.parquet import arrow, strings

_ZERO = ord("0")
_SHAPE = np.arange(256, dtype=np.uint8)
_SHAPE[_ZERO : _ZERO + 10] = _ZERO
_MOST_DIGITS = 18  # of a number that int64 holds, whatever they are


@dataclass(frozen=True)
class Shaped:
    """A column with the `shapes` that occur in it, and the number of each value's shape, -1 for null."""

    column: pa.StringArray
    shapes: list[str]
    code: NDArray[np.int32]
    start: NDArray[np.int32]
    bytes: NDArray[np.uint8]

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Each shape, and which values have it."""
        order = np.argsort(self.code, kind="stable")
        ends = np.searchsorted(self.code[order], np.arange(-1, len(self.shapes)), side="right")
        for number, shape in enumerate(self.shapes):
            yield shape, order[ends[number] : ends[number + 1]]

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """These values."""
        return self.column.take(arrow(rows)).to_pylist()  # type: ignore[no-any-return]

    def digits(self, rows: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
        """The number that the bytes from `start` to `stop` of these values, all of them digits, make; at most 10^18."""
        at = self.start[rows] + start
        value = np.zeros(len(rows), np.int64)
        for place in range(stop - start):
            digit = self.bytes[at + place] - np.uint8(_ZERO)
            value = np.minimum(value, 10**17) * 10 + digit if stop - start > _MOST_DIGITS else value * 10 + digit
        return value


def shaped(column: pa.StringArray) -> Shaped:
    """A column of text by its shapes."""
    if column.offset or column.buffers()[2] is None:
        column = pa.concat_arrays([column, strings([""])]).take(arrow(np.arange(len(column))))
    validity, offsets, data = column.buffers()
    bytes_ = np.frombuffer(data if data is not None else b"\0", np.uint8)
    reduced = pa.StringArray.from_buffers(len(column), offsets, pa.py_buffer(_SHAPE[bytes_]), validity)
    coded = reduced.dictionary_encode()
    start = np.frombuffer(offsets, np.int32)[: len(column)] if len(column) else np.zeros(0, np.int32)
    return Shaped(column, coded.dictionary.to_pylist(), codes(coded), start, bytes_)
