"""Read validated rows as arrays: names become numbers, without a Python object per row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.base.naming import name_key
from sim.files.columns import codes, values_of
from sim.workloads.traces.quarantine import row_number
from sim.workloads.traces.shelves import Shelf


class Names:
    """Numbers for names, in order of appearance until they are sorted."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self.names: list[str] = []

    def number(self, column: pa.StringArray | pa.DictionaryArray) -> NDArray[np.int32]:
        """The number of each of these names; -1 for null."""
        known, column = self._number, column.dictionary_encode()
        numbers = [known.setdefault(name, len(known)) for name in column.dictionary.to_pylist()]
        ids: NDArray[np.int32] = np.array([*numbers, -1], np.int32)[codes(column)]
        return ids

    @property
    def unsorted(self) -> list[str]:
        """The names by their numbers."""
        return list(self._number)

    def sort(self) -> NDArray[np.int32]:
        """The place in `names` of each number; -1 for -1. Whole numbers come first, by value, then the others by code points."""
        self.names = sorted(self._number, key=name_key)
        ranks = np.full(len(self.names) + 1, -1, np.int32)
        ranks[[self._number[name] for name in self.names]] = np.arange(len(self.names))
        return ranks


def read_typed(
    shelf: Shelf, types: Mapping[str, pa.DataType], names: Mapping[str, Names]
) -> tuple[Columns, NDArray[np.int64]]:
    """The columns of the usable rows that are declared by `types`: texts as numbers of `names`, by column.

    And the `row_number` of each row. Rows are by source and line.
    """
    row = np.empty(shelf.rows, np.int64)
    loaded: Columns = {
        name: np.empty(shelf.rows, np.int32 if name in names else kind.to_pandas_dtype())
        for name, kind in types.items()
    }
    at = 0
    for source, line, batch in shelf.usable():
        part = slice(at, at + len(batch))
        row[part] = row_number(source, line)
        for name in types:
            loaded[name][part] = names[name].number(batch[name]) if name in names else values_of(batch[name])
        at = part.stop
    return loaded, row
