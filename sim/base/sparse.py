"""Sparse matrices of counts, shared by compiled code and numpy: memory follows the entries that are not 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import Integers
from sim.base.sparse_kernels import (
    SPARSE,
    copy_rows,
    dense_row,
    dense_rows,
    one_count,
    replace_row,
    some_of_column,
    some_of_row,
    take_rooms,
)


class SparseCounts:
    """A matrix of counts (rows, columns) most of which are 0.

    A row takes 8 bytes per entry that it has room for, and never more than 4 per column. Kernels take `records`; before they change
    counts, `reserve` has to provide the space.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.records = np.zeros(1, SPARSE)
        self.shape = rows, columns
        self._used, self._numbers = self.records["used"], np.empty(0, np.int32)
        self._rows = np.zeros((3, rows), np.int64)
        self.records["rows"], self.records["columns"] = rows, columns
        for name, row in zip(("first", "many", "room"), self._rows, strict=True):
            self.records[name] = row.ctypes.data

    def expect(self, most: Integers) -> None:
        """Give the rows, all of them empty, room for this many columns each; then these need no `reserve`."""
        most = np.minimum(most, self.shape[1])
        self._move(int(np.minimum(2 * most, self.shape[1]).sum()))
        take_rooms(self.records, most.astype(np.int64))

    def reserve(self, changes: int) -> None:
        """Provide space for this many changes of counts by kernels, or for any changes of one row."""
        used, columns = self._used.item(), self.shape[1]
        if used + changes * 3 * columns <= len(self._numbers):
            return
        # a row that grows to some size leaves less behind on the way, and becomes an array of all columns at half of their number
        most = min(changes * 3 * columns, max(3 * columns, 6 * used + 32 * changes))
        if used + most > len(self._numbers):
            self._move(most + used // 2)

    def _move(self, more: int) -> None:
        """Move the rows to memory with space for `more` numbers, without what rows have left behind."""
        rooms = self._rows[2]
        needed = int(np.where(rooms == self.shape[1], rooms, 2 * rooms).sum())
        numbers = np.empty(needed + more, np.int32)
        self._use(numbers, copy_rows(self.records, numbers))

    def _use(self, numbers: NDArray[np.int32], used: int) -> None:
        self._numbers, self._used[0] = numbers, used
        self.records["numbers"], self.records["size"] = numbers.ctypes.data, len(numbers)

    def __getstate__(self) -> tuple[tuple[int, int], NDArray[np.int64], NDArray[np.int32], int]:
        """What copies need, without addresses."""
        return self.shape, self._rows, self._numbers, self._used.item()

    def __setstate__(self, state: tuple[tuple[int, int], NDArray[np.int64], NDArray[np.int32], int]) -> None:
        """Become a copy."""
        shape, rows, numbers, used = state
        self.__init__(*shape)  # type: ignore[misc]  # the addresses are new
        self._rows[:] = rows
        self._use(numbers.copy(), used)

    def _check(self, row: int, column: int = 0) -> None:
        """Raise IndexError for a row or column that does not exist, for which compiled code would read other memory."""
        rows, columns = self.shape
        if not (0 <= row < rows and 0 <= column < columns):
            raise IndexError(f"({row}, {column}) of {rows} rows and {columns} columns")

    def replace(self, row: int, counts: NDArray[np.int32]) -> None:
        """Replace a row (columns)."""
        self._check(row, len(counts) - 1)
        self.reserve(1)
        replace_row(self.records, row, counts)

    def at(self, row: int, column: int) -> int:
        """The count of a pair."""
        self._check(row, column)
        return one_count(self.records, row, column)

    def row(self, row: int) -> NDArray[np.int32]:
        """A copy of a row (columns)."""
        self._check(row)
        return dense_row(self.records, row)

    def in_row(self, row: int, columns: NDArray[np.int32]) -> NDArray[np.int32]:
        """The counts of a row in some columns."""
        self._check(row)
        counts = some_of_row(self.records, row, columns)
        if len(counts) < len(columns):
            self._check(row, columns.item(len(counts)))
        return counts

    def in_column(self, column: int, rows: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The counts of a column, in some rows or in all."""
        if rows is None:
            rows = np.arange(self.shape[0], dtype=np.int32)
        if len(rows):
            self._check(int(rows.max()), column)
        return some_of_column(self.records, rows, column)

    def dense(self) -> NDArray[np.int32]:
        """A copy of all (rows, columns)."""
        return dense_rows(self.records)
