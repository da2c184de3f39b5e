"""Workloads shared by many processes: written once as an Arrow IPC file, and mapped read-only by all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

# Any: it goes through the fields of any dataclass.
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa

from sim.files.parquet import arrow
from sim.workloads.format.workload import Workload


def write_mapped(workload: Workload, path: Path) -> None:
    """Write a loaded workload to one file for `open_mapped` of the same version.

    Each array of its tables is a column of one row, which holds a list; everything else is JSON in the schema's metadata.
    """
    columns: dict[str, pa.Array] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    values: dict[str, Any] = {}
    for name, value in _parts("", workload):
        if isinstance(value, np.ndarray):
            shapes[name], value = value.shape, _column(value.ravel())
        if isinstance(value, pa.Array):
            columns[name] = pa.LargeListArray.from_arrays(arrow(np.array([0, len(value)])), value)
        else:
            values[name] = value
    schema = pa.schema(
        [pa.field(name, column.type) for name, column in columns.items()],
        metadata={"shapes": json.dumps(shapes), "values": json.dumps(values)},
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema))


def open_mapped(path: Path) -> Workload:
    """Map the workload: its arrays are read-only, read on first use, and in memory once for all processes."""
    with pa.memory_map(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    shapes, found = (json.loads(batch.schema.metadata[key]) for key in (b"shapes", b"values"))
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        found[name] = _values(column.values).reshape(shapes[name]) if name in shapes else column.values
    workload: Workload = _built(Workload, "", found)
    return workload


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values in nested dataclasses, by dotted names."""
    if not is_dataclass(value):
        yield name, value
        return
    for field in fields(value):
        yield from _parts(f"{name}.{field.name}", getattr(value, field.name))


def _built(kind: Any, name: str, found: dict[str, Any]) -> Any:
    """Build a value of a type from its parts by dotted names."""
    if name in found:
        return tuple(found[name]) if isinstance(found[name], list) else found[name]
    [kind] = [one for one in (kind, *get_args(kind)) if is_dataclass(one)]
    return kind(**{key: _built(hint, f"{name}.{key}", found) for key, hint in get_type_hints(kind).items()})


def _column(values: np.ndarray[Any, Any]) -> pa.Array:
    """The array as an arrow column without copying; NaN is not turned into null."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _values(column: pa.Array) -> np.ndarray[Any, Any]:
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1], dtype, len(column)) if len(column) else np.empty(0, dtype)
