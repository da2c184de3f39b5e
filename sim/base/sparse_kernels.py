"""Compiled access to sparse counts. Slow twin: a dictionary, in tests/base/test_sparse.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.addresses import accessor, integers, small_integers
from sim.base.arrays import Item, Items
from sim.base.compiled import inlined, kernel

SPARSE = np.dtype(
    [(name, "i8") for name in ("rows", "columns", "used", "size", "numbers", "first", "many", "room")], align=True
)
"""The record of a table: addresses of `numbers` (size; int32) and, by row, of where it begins there and how many it has room for.

A row with `room` for all columns is an array of them. Any other has the columns of its first `many` places, ascending, and
`room` places later their counts, some of which may be 0.
"""
sparse_at = accessor(SPARSE)


@inlined
def _found(numbers: NDArray[np.int32], first: int, end: int, column: int) -> int:
    """The first place from `first` to `end` with at least this column."""
    while first < end:
        middle = (first + end) // 2
        if numbers[middle] < column:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def count_at(table: Item, row: int, column: int) -> int:
    """The count of a pair."""
    first, room = integers(table.first, row + 1)[row], integers(table.room, row + 1)[row]
    numbers = small_integers(table.numbers, table.size)
    if room == table.columns:
        return int(numbers[first + column])
    end = first + integers(table.many, row + 1)[row]
    place = _found(numbers, first, end, column)
    return int(numbers[place + room]) if place < end and numbers[place] == column else 0


@kernel
def change_at(table: Item, row: int, column: int, change: int) -> int:
    """Change the count of a pair, for which there has to be space; returns the previous one."""
    numbers = small_integers(table.numbers, table.size)
    if integers(table.room, row + 1)[row] == table.columns:
        place = integers(table.first, row + 1)[row] + column
    else:
        place = _place(table, row, column)
    before = numbers[place]
    numbers[place] = before + change
    return int(before)


@kernel
def _place(table: Item, row: int, column: int) -> int:
    """The place of the count of a pair, which is new where there was none, in a row that has not room for all columns."""
    numbers, many = small_integers(table.numbers, table.size), integers(table.many, table.rows)
    firsts, rooms = integers(table.first, table.rows), integers(table.room, table.rows)
    end = firsts[row] + many[row]
    place = _found(numbers, firsts[row], end, column)
    if place < end and numbers[place] == column:
        return int(place + rooms[row])
    if many[row] == rooms[row]:
        _make_room(table, row)
        if rooms[row] == table.columns:
            return int(firsts[row] + column)
        end = firsts[row] + many[row]
        place = _found(numbers, firsts[row], end, column)
    room = rooms[row]
    for i in range(end, place, -1):
        numbers[i] = numbers[i - 1]
        numbers[i + room] = numbers[i + room - 1]
    numbers[place], numbers[place + room] = column, 0
    many[row] += 1
    return int(place + room)


@kernel
def _make_room(table: Item, row: int) -> None:
    """Drop counts of 0 from a full row; if that leaves little room, move it to where there is twice as much."""
    numbers, many = small_integers(table.numbers, table.size), integers(table.many, table.rows)
    first, rooms = integers(table.first, table.rows), integers(table.room, table.rows)
    start, room, left = first[row], rooms[row], 0
    for i in range(start, start + many[row]):
        if numbers[i + room]:
            numbers[start + left], numbers[start + left + room] = numbers[i], numbers[i + room]
            left += 1
    many[row] = left
    if 4 * left > 3 * room or room == 0:
        take_room(table, row, max(2 * room, 4))


@kernel
def take_room(table: Item, row: int, more: int) -> None:
    """Move a row, which may be empty, to where it has room for `more`; for all columns if that takes no more memory."""
    numbers, first = small_integers(table.numbers, table.size), integers(table.first, table.rows)
    many, rooms = integers(table.many, table.rows), integers(table.room, table.rows)
    start, room, there = first[row], rooms[row], table.used
    assert there + min(2 * more, table.columns) <= table.size
    first[row], rooms[row] = there, more if 2 * more < table.columns else table.columns
    table.used += min(2 * more, table.columns)
    if rooms[row] == table.columns:
        numbers[there : there + table.columns] = 0
        for i in range(start, start + many[row]):
            numbers[there + numbers[i]] = numbers[i + room]
    else:
        for i in range(many[row]):
            numbers[there + i], numbers[there + more + i] = numbers[start + i], numbers[start + room + i]


@kernel
def take_rooms(tables: Items, most: NDArray[np.int64]) -> None:
    """Give empty rows room for this many columns each."""
    for row in range(most.size):
        if most[row]:
            take_room(tables[0], row, most[row])


@kernel
def copy_rows(tables: Items, to: NDArray[np.int32]) -> int:
    """Copy all rows to other numbers, one after the other; returns how many are used there."""
    table, used = tables[0], 0
    numbers, first = small_integers(table.numbers, table.size), integers(table.first, table.rows)
    many, rooms = integers(table.many, table.rows), integers(table.room, table.rows)
    for row in range(table.rows):
        start, room = first[row], rooms[row]
        first[row] = used
        if room == table.columns:
            to[used : used + room] = numbers[start : start + room]
            used += room
        else:
            to[used : used + many[row]] = numbers[start : start + many[row]]
            to[used + room : used + room + many[row]] = numbers[start + room : start + room + many[row]]
            used += 2 * room
    return used


@kernel
def has_space(table: Item) -> bool:
    """Whether there is space for any changes of one row."""
    return bool(table.size - table.used >= 3 * table.columns)


@kernel
def dense_row(tables: Items, row: int) -> NDArray[np.int32]:
    """All counts of a row (columns)."""
    table, counts = tables[0], np.zeros(tables[0].columns, np.int32)
    numbers, first = small_integers(table.numbers, table.size), integers(table.first, table.rows)[row]
    room = integers(table.room, table.rows)[row]
    if room == table.columns:
        counts[:] = numbers[first : first + room]
    else:
        for place in range(first, first + integers(table.many, table.rows)[row]):
            counts[numbers[place]] = numbers[place + room]
    return counts


@kernel
def one_count(tables: Items, row: int, column: int) -> int:
    """`count_at`, from outside kernels."""
    return count_at(tables[0], row, column)


@kernel
def some_of_row(tables: Items, row: int, columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """The counts of a row in some columns, up to the first that does not exist."""
    counts = np.empty(columns.size, np.int32)
    for i in range(columns.size):
        if columns[i] < 0 or columns[i] >= tables[0].columns:
            return counts[:i].copy()
        counts[i] = count_at(tables[0], row, columns[i])
    return counts


@kernel
def some_of_column(tables: Items, rows: NDArray[np.int32], column: int) -> NDArray[np.int32]:
    """The counts of a column in some rows."""
    counts = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        counts[i] = count_at(tables[0], rows[i], column)
    return counts


@kernel
def dense_rows(tables: Items) -> NDArray[np.int32]:
    """All counts (rows, columns)."""
    table, counts = tables[0], np.zeros((tables[0].rows, tables[0].columns), np.int32)
    numbers, firsts = small_integers(table.numbers, table.size), integers(table.first, table.rows)
    many, rooms = integers(table.many, table.rows), integers(table.room, table.rows)
    for row in range(table.rows):
        first, room = firsts[row], rooms[row]
        if room == table.columns:
            counts[row] = numbers[first : first + room]
        else:
            for place in range(first, first + many[row]):
                counts[row, numbers[place]] = numbers[place + room]
    return counts


@kernel
def replace_row(tables: Items, row: int, counts: NDArray[np.int32]) -> None:
    """Replace all counts of a row by those of another (columns)."""
    table = tables[0]
    if integers(table.room, table.rows)[row] == table.columns:
        first = integers(table.first, table.rows)[row]
        small_integers(table.numbers, table.size)[first : first + counts.size] = counts
    else:
        integers(table.many, table.rows)[row] = 0
        for column in range(counts.size):
            if counts[column]:
                change_at(table, row, column, counts[column])
