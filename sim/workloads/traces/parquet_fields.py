"""The fields of rows in Parquet as columns of text, and rows as JSON, with the same results as Spark's expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# Any: PyArrow has no types for its arrays and files.
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.files.columns import flags, masked, valid, values_of
from sim.files.compression import codec_of
from sim.files.parquet import arrow, repeated, strings
from sim.files.readable import ReadableFile
from sim.files.stores import opened
from sim.workloads.traces.fields import Fields
from sim.workloads.traces.json_fields import java_number
from sim.workloads.traces.layouts import Layout

_ROWS = 1 << 16
"""The rows that are processed at once."""
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(32)}
_ESCAPES |= {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_UNIT = {"ms": 1000, "us": 1, "ns": 1}  # µs


@dataclass(frozen=True)
class JsonRows:
    """Rows whose text is an object of JSON."""

    raw: pa.StringArray

    def texts(self, wanted: NDArray[np.bool_]) -> pa.StringArray:
        """The rows that are wanted; null for the others."""
        return masked(self.raw, wanted)

    def text(self, line: int) -> str:
        """A row for display."""
        return str(self.raw[line].as_py())


def beyond_parquet(path: ReadableFile, layout: Layout) -> str | None:
    """What in a file only Spark can read; None where kernels can read all of it."""
    if codec_of(path) is not None:
        return "compressed Parquet is not read by Arrow kernels"
    for column in pq.read_schema(opened(path)):
        type = column.type
        known = _texts_of(type) is not None or pa.types.is_boolean(type)
        if not known or (getattr(type, "tz", None) is not None and layout.time_zone != "UTC"):
            return f"columns of the type {type} are not read by Arrow kernels"
    return None


def parquet_rows(path: ReadableFile, groups: tuple[int, ...], used: Mapping[str, str]) -> Iterator[Fields]:
    """Some row groups of a file, some thousand rows at a time; `used` are the columns that are wanted, by the pipeline's names."""
    with pq.ParquetFile(opened(path)) as file:
        for batch in file.iter_batches(_ROWS, row_groups=list(groups)):
            columns = {name: _column(batch[name]) for name in batch.schema.names}
            raw = JsonRows(_objects(columns))
            texts = {field: columns[name].plain for field, name in used.items()}
            yield Fields(raw, np.ones(len(batch), np.bool_), texts)


@dataclass(frozen=True)
class _Texts:
    """A column as text, and as values of JSON, null where it is null."""

    plain: pa.StringArray
    json: pa.StringArray


def _column(column: Any) -> _Texts:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        text = pc.if_else(column, "true", "false")
        return _Texts(text, text)
    kind = _texts_of(column.type)
    assert kind is not None
    return kind(column)


def _texts_of(type: pa.DataType) -> Callable[[Any], _Texts] | None:
    """How a column of a type becomes text; None where it is not read here."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return _strings
    if pa.types.is_integer(type):
        return _integers
    if pa.types.is_float32(type) or pa.types.is_float64(type):
        return _floats
    if type == pa.date32():
        return _dates
    return _times if pa.types.is_timestamp(type) and type.unit in _UNIT else None


def _strings(column: Any) -> _Texts:
    text = column.cast(pa.string())
    try:
        text.validate(full=True)
        sound = text
    except pa.ArrowInvalid:
        found = text.cast(pa.binary()).to_pylist()
        read = [None if value is None else value.decode(errors="replace") for value in found]
        good = np.array(
            [one is not None and one.encode() == two for one, two in zip(read, found, strict=True)], np.bool_
        )
        whole = strings(value or "" for value in read)
        text, sound = masked(whole, good), masked(whole, valid(column))
    odd = np.flatnonzero(flags(pc.match_substring_regex(sound, _ESCAPED.pattern)))
    escaped = sound
    if len(odd):
        texts = sound.to_pylist()
        for row in odd.tolist():
            texts[row] = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], texts[row])
        escaped = masked(strings(value or "" for value in texts), valid(sound))
    quote = repeated('"', len(sound))
    return _Texts(text, pc.binary_join_element_wise(quote, escaped, quote, ""))


def _integers(column: Any) -> _Texts:
    text = column.cast(pa.string())
    return _Texts(text, text)


def _floats(column: Any) -> _Texts:
    """Numbers as Java writes them; NaN is nothing as text, but stands in JSON."""
    there, values = valid(column), values_of(column)
    size = np.abs(values)
    text = column.cast(pa.string())
    whole = there & ~flags(pc.match_substring(text, "."))
    text = pc.if_else(arrow(whole), pc.binary_join_element_wise(text, repeated(".0", len(text)), ""), text)
    plain = json = text
    if len(odd := np.flatnonzero(there & ~((size >= 1e-3) & (size < 1e7)) & (size != 0))):
        texts = text.to_pylist()
        for row in odd.tolist():
            texts[row] = '"NaN"' if np.isnan(values[row]) else java_number(values[row])
        json = masked(strings(value or "" for value in texts), there)
        plain = masked(strings((value or "").strip('"') for value in texts), there & ~np.isnan(values))
    return _Texts(plain, json)


def _dates(column: Any) -> _Texts:
    days = values_of(column.view(pa.int32())).view(np.int32).astype("datetime64[D]")
    text = _written(days, valid(column))
    return _Texts(text, _quoted(text))


def _times(column: Any) -> _Texts:
    """Times to the µs, in UTC with a Z if they have a zone; in JSON those with a zone are to the ms, unless they are of ns."""
    unit, zone = column.type.unit, column.type.tz is not None
    values = values_of(column.view(pa.int64())).view(np.int64)
    there = valid(column)
    values = np.where(there, values, 0)
    micros = values // 1000 if unit == "ns" else values * _UNIT[unit]
    text = _written(micros.astype("datetime64[us]"), there)
    if not zone:
        return _Texts(text, _quoted(text))
    mark = repeated("Z", len(text))
    with_zone = pc.binary_join_element_wise(text, mark, "")
    if unit == "ns":
        return _Texts(with_zone, _quoted(text))
    millis = _written((micros // 1000).astype("datetime64[ms]"), there)
    return _Texts(with_zone, _quoted(pc.binary_join_element_wise(millis, mark, "")))


def _written(times: NDArray[np.datetime64], there: NDArray[np.bool_]) -> pa.StringArray:
    return masked(strings(np.datetime_as_string(times).tolist()), there)


def _quoted(text: pa.StringArray) -> pa.StringArray:
    quote = repeated('"', len(text))
    return pc.binary_join_element_wise(quote, text, quote, "")


def _objects(columns: Mapping[str, _Texts]) -> pa.StringArray:
    """Rows as objects of JSON."""
    parts = list[Any]()
    for number, (name, column) in enumerate(columns.items()):
        key = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
        parts += [repeated(f'{"," if number else "{"}"{key}":', len(column.json)), pc.fill_null(column.json, "null")]
    return pc.binary_join_element_wise(*parts, repeated("}", len(parts[0])), "")
