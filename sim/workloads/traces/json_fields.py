"""The fields of JSON lines as columns of text, with the same results as Spark's parser."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Never

import numpy as np
import pyarrow as pa

from sim.base.naming import Raw, RawValue
from sim.files.columns import masked
from sim.files.parquet import strings
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.layouts import Layout, name_keys
from sim.workloads.traces.ranges import Lines

_MOST_DIGITS = 1000  # of a number that Spark's parser takes


def json_fields(lines: Lines, layout: Layout, used: Mapping[str, str]) -> Fields:
    """The fields of lines of one object of JSON each; `used` are the keys of those that are wanted, by the pipeline's names.

    A key such as `meta.topic` is one of the object `meta`. A line that is anything else, or has a list, an object, true or false where
    a name should be, is not parsed. Whole numbers are as they stand there, others as Java writes them.
    """
    keys = list(dict.fromkeys(used.values()))
    names = {keys.index(key) for key in name_keys(layout, list(used))}
    # not of the module, which goes to executors by value
    decode = json.JSONDecoder(parse_float=_fraction, parse_int=_number, parse_constant=_no_number).decode
    rows = [_values(lines, line, keys, names, decode) for line in range(len(lines))]
    parsed = np.array([row is not None for row in rows], np.bool_)
    nothing = [None] * len(keys)
    columns = dict(zip(keys, zip(*(row or nothing for row in rows), strict=True), strict=True))
    return Fields(lines, parsed, {field: _column(columns[key]) for field, key in used.items()})


def _values(
    lines: Lines, line: int, keys: Sequence[str], names: set[int], decode: Callable[[str], object]
) -> list[str | None] | None:
    """The texts of these keys in a line; None where it is not parsed."""
    if not lines.valid[line]:
        return None
    try:
        found = decode(lines.data[lines.start[line] : lines.end[line]].decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    values = [_value(found, key) for key in keys]
    for number, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            if number in names:
                return None
            values[number] = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return values


def _value(found: Raw, key: str) -> RawValue:
    """The value of a key: of its own, or else in the objects that the parts of a dotted key name."""
    if key in found or "." not in key:
        return found.get(key)
    first, _, rest = key.partition(".")
    within = found.get(first)
    return _value(within, rest) if isinstance(within, dict) else None


def _number(text: str) -> str:
    if len(text) > _MOST_DIGITS:
        raise ValueError("a number that is too long")
    return "0" if text == "-0" else text


def _fraction(text: str) -> str:
    return java_number(float(_number(text)))


def java_number(value: float) -> str:
    """A number, perhaps of NumPy's single precision, as Java writes it: with an exponent below 0.001 and from ten million on."""
    written = str(value)
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        return written
    if not math.isfinite(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if len(Decimal(written).normalize().as_tuple().digits) == 1 and float(two := f"{value:.1e}") == value:
        written = two  # Java never writes fewer than two digits, and these are the closest
    sign, digits, exponent = Decimal(written).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"


def _no_number(text: str) -> Never:
    raise ValueError(f"{text} is not JSON")


def _column(texts: Sequence[str | None]) -> pa.StringArray:
    there = np.array([text is not None for text in texts], np.bool_)
    try:
        column = strings(text or "" for text in texts)
    except UnicodeEncodeError:  # half of a character that takes two, which Java writes as a question mark
        column = strings((text or "").encode(errors="replace").decode() for text in texts)
    return masked(column, there)
