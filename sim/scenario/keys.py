"""Keys of tables that models read: the type and the unit of a key, and its values as text."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel, TypeAdapter

from sim.base.naming import Keys, Raw, RawValue
from sim.base.units import parse_duration, write_duration
from sim.files import toml
from sim.scenario.brokers import PRESET_ENDING
from sim.scenario.kinds import Kinds, Table
from sim.scenario.reading import tables_of

Schema = Raw


def is_integer(model: type[BaseModel], keys: Keys, values: object) -> bool | None:
    """Whether a key of a model takes only integers; None where there is no such key.

    `values` is the model's table, before or after reading; only its kinds matter.
    """
    schema = _schema_of(model, keys, values)
    if schema is None:
        return None
    types = {option.get("type") for option in schema.get("anyOf", [schema])}
    return "integer" in types and "number" not in types


def unit_at(model: type[BaseModel], keys: Keys, values: object) -> str:
    """The unit of a key of a model, "" where it has none; `values` are those of `is_integer`."""
    schema = _schema_of(model, keys, values) or {}
    return next((str(part["x-unit"]) for part in (schema, *schema.get("anyOf", ())) if "x-unit" in part), "")


def text_of(value: RawValue, unit: str = "") -> str:
    """A value with its unit, numbers with six digits at most: `36 ms`, `0.3 km`, `20`."""
    if isinstance(value, (bool, str)):
        return toml.text(value)
    if unit == "s":
        return write_duration(value)
    text = toml.text(value) if isinstance(value, int) else f"{value:.0f}" if abs(value) >= 1e6 else f"{value:g}"
    return f"{text} {unit}".rstrip()


def option_of(value: RawValue, unit: str = "") -> str:
    """A value as `--set` takes it, with all its digits; durations with their unit: `36ms`, `20`."""
    if unit != "s" or isinstance(value, (bool, str)):
        return toml.text(value)
    text = write_duration(value).replace(" ", "")
    return text if parse_duration(text) == value else f"{value!r}s"


def _schema_of(model: type[BaseModel], keys: Keys, values: object) -> Schema | None:
    """The JSON Schema of the field at a key path, None where there is no such field."""
    *above, last = map(str, keys)
    for key in above:
        inner = tables_of(model).get(key)
        values = values.get(key) if isinstance(values, dict) else getattr(values, key, None)
        if isinstance(values, Table):
            inner, values = type(values.parameters), values.parameters
        elif isinstance(inner, Kinds):
            kind = values.get("kind", inner.default) if isinstance(values, dict) else inner.default
            inner = inner.model(kind) if kind in inner.names() else None  # a kind whose plug-in is no longer installed
        if inner is None:
            return None
        model = inner
    return _schema(model, last) if last in model.model_fields else None


@cache
def _schema(model: type[BaseModel], key: str) -> Schema:
    field = model.model_fields[key]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return {**TypeAdapter[object](field.rebuild_annotation()).json_schema(), **extra}


PATHS = {("workload", "path"), ("network", "brokers"), ("brokers", "service", "preset")}
"""Keys whose texts are paths, besides those named `file` or `*_file`."""


def is_path(keys: Keys) -> bool:
    """Whether a text at this key path of a scenario file is a path relative to its folder, or a name instead."""
    own = keys[2:] if keys[:1] == ("variant",) else keys
    return own in PATHS or (own != () and (own[-1] == "file" or str(own[-1]).endswith("_file")))


def is_name(keys: Keys, text: str) -> bool:
    """Whether a text where paths may be is a name."""
    return text == "cells" or (keys[-1] == "preset" and not text.endswith(PRESET_ENDING))
