"""Tables of events in several files, `TABLE/part-00000.parquet` and so on: written by many tasks, read as one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path

# Any: a table's columns follow from its name.
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import Columns
from sim.files.parquet import count_rows, read_columns
from sim.workloads.format.workload import ColumnTable, Interests

LaterTable = TypeVar("LaterTable", bound=ColumnTable | Interests)
_IN_MEMORY = (
    1 << 32
)  # bytes of a column; a longer one is in a temporary file, of which the system keeps in memory what it can


def part_name(table: str, number: int) -> str:
    """The name of a file with rows of a table."""
    return f"{table}/part-{number:05}.parquet"


def files_of(table: str, files: Iterable[str]) -> list[str]:
    """The names, in order, of the files that have a table's rows, among all of a workload."""
    return sorted(name for name in files if name == f"{table}.parquet" or name.startswith(f"{table}/"))


def read_parts(folder: Path, names: list[str], types: Mapping[str, pa.DataType]) -> Columns:
    """The columns of a table's files, one after the other. Raises WorkloadError as `read_columns` does."""
    if len(names) == 1:
        return read_columns(folder / names[0], types)
    rows = [count_rows(folder / name) for name in names]
    columns = {name: _room(sum(rows), kind.to_pandas_dtype()) for name, kind in types.items()}
    at = 0
    for name, count in zip(names, rows, strict=True):
        for column, values in read_columns(folder / name, types).items():
            columns[column][at : at + count] = values
        at += count
    return columns


def _room(rows: int, dtype: Any) -> NDArray[Any]:
    if rows * np.dtype(dtype).itemsize <= _IN_MEMORY:
        return np.empty(rows, dtype)
    with tempfile.TemporaryFile() as file:  # which is there as long as it is mapped
        return np.memmap(file, dtype, "w+", shape=rows)


def read_later(kind: type[LaterTable], rows: int, read: Callable[[], Columns]) -> LaterTable:
    """A table, with its number of rows, that is read when one of its columns is first asked for."""
    named = {field.name for field in fields(kind)}  # type: ignore[arg-type]

    class Later(kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            pass

        def __len__(self) -> int:
            return rows

        def __getattr__(self, name: str) -> NDArray[Any]:
            if name not in named:
                raise AttributeError(name)
            self.__dict__.update(vars(kind(**read())))  # with the optional ones
            found: NDArray[Any] = self.__dict__[name]
            return found

    later: LaterTable = Later()
    return later
