"""Types of arrays for which NumPy and Numba have no name, each with its reason, and a sum."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

# Any: fields of records are known to Numba alone, which compiles a kernel for their types; a column's type follows from its name;
# the second parameter of NumPy's integers is how wide they are.
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Item: TypeAlias = Any
"""A record in an array, by reference, whose fields are its attributes."""
Items: TypeAlias = NDArray[Any]
"""An array of records of one type."""
Integers: TypeAlias = NDArray[np.integer[Any]]
"""Integers of any width."""
Columns: TypeAlias = dict[str, Any]
"""A table: arrays or lists of one length, by the names of columns."""


Number = TypeVar("Number", bound=np.generic)


def summed(values: Iterable[float]) -> float:
    """The sum, rounded after each addition in this order, as compiled code does; from Python 3.12 on, `sum` rounds once."""
    return functools.reduce(operator.add, values, 0.0)


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """The array, made read-only."""
    array.flags.writeable = False
    return array
