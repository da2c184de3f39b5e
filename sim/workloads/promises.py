"""The contract of workload generators, and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.plugins import Found, Promises, promise
from sim.workloads.format.folder import COLUMN_TYPES
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import Workload


class Generator(Protocol):
    """Makes a workload from random streams. Plug-in group `brokersim.workload`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is created by `Generator(parameters)`.
    """

    def generate(self, streams: Streams) -> Workload:
        """The workload, in the format's order: the same for the same streams."""


class WorkloadPromises(Promises):
    """The contract of a workload generator."""

    group, protocol = "workload", Generator

    @promise("generate")
    def arrays(self, found: Found, _: Streams) -> Iterator[str]:
        """`generate` returns a Workload whose columns are arrays of the format's types."""
        if not isinstance(found, Workload):
            yield f"generate returned {found!r}, expected a Workload"
        for table, types in COLUMN_TYPES.items():
            for column, type_ in types.items():
                values = getattr(getattr(found, table, None), column, None)
                if values is not None and not _is_column(values, type_):
                    kind = getattr(values, "dtype", type(values).__qualname__)
                    yield f"{table}.{column} is {kind}{np.shape(values)}, expected an array of one {type_} for each row"
        indptr, indices = found.interests.indptr, found.interests.indices
        ends = (indptr.dtype == np.int64 and indices.dtype == np.int32) and (indptr[0], indptr[-1]) == (0, len(indices))
        if not ends or len(indptr) != len(found.users) + 1 or (np.diff(indptr) < 0).any():
            users = f"{len(found.users)} users and {len(indices)} interests"
            yield f"interests.indptr is {indptr.dtype}{indptr.shape} for {users}, expected int64 rising from 0 to their number"

    @promise("generate")
    def well_formed(self, found: Workload, _: Streams) -> Iterator[str]:
        """The workload conforms to the format: sorted by time up to the horizon, with known users and topics and possible changes."""
        try:
            validate_workload(found, Path())
        except WorkloadError as error:
            yield str(error)


def _is_column(values: Found, type_: pa.DataType) -> bool:
    if pa.types.is_string(type_):
        return isinstance(values, pa.StringArray)
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == type_.to_pandas_dtype()
