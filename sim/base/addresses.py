"""Access arrays in compiled code by address: records by reference, numbers by pointer, without bounds checks."""

from __future__ import annotations

from collections.abc import Callable

# Any: Numba has no types for compilers' own objects, nor for records.
from typing import Any

import numba
import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sim.base.compiled import kernel


def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], target.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


_pointer_to: Any = intrinsic(_pointer)


@kernel
def small_integers(address: int, size: int) -> NDArray[np.int32]:
    """The array of `int32` that begins at an address."""
    return numba.carray(_pointer_to(address), (size,), np.int32)  # type: ignore[attr-defined]


@kernel
def integers(address: int, size: int) -> NDArray[np.int64]:
    """The array of `int64` that begins at an address."""
    return numba.carray(_pointer_to(address), (size,), np.int64)  # type: ignore[attr-defined]


@kernel
def integer_rows(address: int, rows: int, columns: int) -> NDArray[np.int64]:
    """The two-dimensional array of `int64` that begins at an address."""
    return numba.carray(_pointer_to(address), (rows, columns), np.int64)  # type: ignore[attr-defined]


@kernel
def tiny_integers(address: int, size: int) -> NDArray[np.int8]:
    """The array of `int8` (or truth values) that begins at an address."""
    return numba.carray(_pointer_to(address), (size,), np.int8)  # type: ignore[attr-defined]


@kernel
def reals(address: int, size: int) -> NDArray[np.float64]:
    """The array of `float64` that begins at an address."""
    return numba.carray(_pointer_to(address), (size,), np.float64)  # type: ignore[attr-defined]


def accessor(dtype: Any) -> Callable[[int, int], Any]:
    """A compiled function (address, index) that returns a record of an array by reference."""
    record = from_dtype(dtype)

    def item(context: Any, address: Any, index: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size = target.get_constant(types.int64, dtype.itemsize)
            place = builder.add(arguments[0], builder.mul(arguments[1], size))
            return builder.inttoptr(place, target.get_value_type(record))

        return record(types.int64, types.int64), generate

    return intrinsic(item)  # type: ignore[return-value]  # numba types it without the context
