"""Parse names and numbers in whole columns of text, with the same results as the pipelines' Spark expressions."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.files.columns import codes, flags, masked, values_of
from sim.files.parquet import arrow
from sim.workloads.traces.shapes import shaped

SPACE = r"[ \t\n\x0b\f\r]*"
_NUMBER = re.compile(rf"{SPACE}[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?{SPACE}")
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def nonempty(column: pa.StringArray) -> pa.StringArray:
    """A column in which empty and blank texts are null."""
    blank = values_of(pc.binary_length(column)) == 0
    if len(where := np.flatnonzero(flags(pc.starts_with(column, " ")))):
        blank[where] = values_of(pc.binary_length(pc.utf8_trim(column.take(arrow(where)), " "))) == 0
    return masked(column, ~blank)


def first_named(*columns: pa.StringArray) -> pa.StringArray:
    """The first text of each row that is not blank; null where none is."""
    return pc.coalesce(*map(nonempty, columns))


def parse_numbers(column: pa.StringArray) -> NDArray[np.float64]:
    """The numbers in texts; NaN where a text is not a number."""
    shapes = shaped(column)
    kinds = [
        2 * (_NUMBER.fullmatch(shape) is not None) - (_PLAIN.fullmatch(shape) is not None) for shape in shapes.shapes
    ]
    kind = np.array([*kinds, 0], np.int8)[shapes.code]
    values = np.full(len(column), np.nan)
    plain, odd = np.flatnonzero(kind == 1), np.flatnonzero(kind == 2)
    values[plain] = values_of(column.take(arrow(plain)).cast(pa.float64()))
    values[odd] = [float(text) for text in shapes.texts(odd)]
    return values


def words(column: pa.StringArray) -> tuple[NDArray[np.int32], list[str]]:
    """A column of few different texts by their numbers, -1 for null, and the texts."""
    coded = column.dictionary_encode()
    return codes(coded), coded.dictionary.to_pylist()
