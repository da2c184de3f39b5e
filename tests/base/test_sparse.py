"""Sparse counts against a dictionary."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import pytest

from sim.base.sparse import SparseCounts
from sim.base.sparse_kernels import change_at, count_at


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 40, 500])
def test_counts_are_those_of_a_dictionary_however_rows_grow_and_shrink(columns: int) -> None:
    rng, counts = np.random.default_rng(columns), dict[tuple[int, int], int]()
    table = SparseCounts(6, columns)
    for turn in range(8):
        # rows differ in how full they get: the first stays empty, the last has nearly all columns
        for row, column in zip(rng.integers(0, 6, 300), rng.integers(0, columns, 300), strict=True):
            if column * 6 < columns * (row + 1) and row:
                change = 3 if turn % 3 < 2 else -counts.get((row, column), 0)
                table.reserve(1)
                before = change_at(table.records[0], row, column, change)
                assert before == counts.get((row, column), 0)
                counts[row, column] = before + change
        expected = np.zeros((6, columns), np.int32)
        for pair, count in counts.items():
            expected[pair] = count
        assert (table.dense() == expected).all()
        some = rng.integers(0, columns, 5).astype(np.int32)
        for row in range(6):
            assert (table.row(row) == expected[row]).all()
            assert (table.in_row(row, some) == expected[row, some]).all()
        assert (table.in_column(columns // 2) == expected[:, columns // 2]).all()
        assert count_at(table.records[0], 5, columns - 1) == expected[5, columns - 1]
    table.replace(3, expected[5])
    assert (table.row(3) == expected[5]).all()


def test_memory_follows_the_pairs_and_not_rows_times_columns() -> None:
    table = SparseCounts(10_000, 10_000)
    table.expect(np.full(10_000, 5))
    for row in range(0, 10_000, 100):
        assert change_at(table.records[0], row, row, 1) == 0
    assert table.records["used"][0] == 2 * 5 * 10_000  # 400 kB, of 400 MB
    full = SparseCounts(10, 100)
    full.expect(np.full(10, 60))
    assert full.records["used"][0] == 10 * 100  # no more than a number for each pair


def test_copies_change_by_themselves() -> None:
    table = SparseCounts(3, 100)
    table.reserve(1)
    change_at(table.records[0], 1, 7, 5)
    for other in (copy(table), deepcopy(table)):
        change_at(other.records[0], 1, 7, 1)
        change_at(other.records[0], 1, 3, 2)
        assert (other.in_row(1, np.array([3, 7], np.int32)) == [2, 6]).all()
        assert (table.in_row(1, np.array([3, 7], np.int32)) == [0, 5]).all()


def test_space_that_was_not_reserved_is_not_written_to() -> None:
    with pytest.raises(AssertionError):
        change_at(SparseCounts(3, 100).records[0], 0, 0, 1)


def test_there_is_no_access_beyond_its_rows_and_columns() -> None:
    table, beyond = SparseCounts(3, 10), np.array([10], np.int32)
    for access in (
        lambda: table.at(3, 0),
        lambda: table.at(0, 10),
        lambda: table.row(-1),
        lambda: table.in_row(0, beyond),
        lambda: table.in_column(0, beyond),
        lambda: table.replace(3, np.zeros(10, np.int32)),
    ):
        with pytest.raises(IndexError, match="of 3 rows and 10 columns"):
            access()
    assert SparseCounts(0, 10).in_column(5).size == 0
