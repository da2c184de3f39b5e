"""Validation by pydantic models, with readable messages: what was found, what is allowed, the closest valid name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from sim.base.errors import cut, suggestion
from sim.base.naming import Keys, RawValue

Model = TypeVar("Model", bound=BaseModel)
Mistake = tuple[Keys, str]
"""The path of a mistake, as keys from the root, and its message."""
UNKNOWN = "unknown key"
_FEW = 40
"""The most names that a message lists."""


def validate(model: type[Model], values: RawValue) -> Model:
    """Validate values read from TOML, strictly: neither "5" nor true is a number. Raises ValidationError."""
    return model.model_validate_json(json.dumps(values, default=str), strict=True)


def problems(error: ValidationError, model: type[BaseModel], more: Sequence[str] = ()) -> list[Mistake]:
    """All mistakes in values that `validate` refused; `more` are keys allowed at the root beside the model's.

    A model may have a class variable `replaced`: what to write instead of keys that it no longer has.
    """
    return list(_problems(error, model, more))


def nested(found: Sequence[Mistake]) -> PydanticCustomError:
    """An error for a validator to raise that carries several problems, with paths relative to its value."""
    return PydanticCustomError("nested", "several problems", {"problems": found})


def unknown_key(allowed: Sequence[str], key: str, value: object) -> str:
    """The message for an unknown key."""
    return f"{UNKNOWN}{hint(key, allowed)} (found {show(value)})"


def hint(name: object, allowed: Sequence[str]) -> str:
    """The closest valid name, if one is close, and all valid names, or how many there are and an example."""
    few = len(allowed) <= _FEW
    listed = f"allowed: {', '.join(allowed)}" if few else f"there are {len(allowed):,}, such as '{allowed[0]}'"
    return f"{suggestion(str(name), allowed)} ({listed})"


def show(value: object) -> str:
    """A value as written in the file, shortened if long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return cut(text)


def dotted(keys: Keys) -> str:
    """Keys as people write them: `network.geometry.bits`, `report.metrics[1]`."""
    return ".".join(f"[{key}]" if isinstance(key, int) else key for key in keys).replace(".[", "[")


def _problems(error: ValidationError, model: type[BaseModel], more: Sequence[str]) -> Iterator[Mistake]:
    for found in error.errors(include_url=False):
        keys, kind, message, context = found["loc"], found["type"], found["msg"], found.get("ctx", {})
        got = f" (found {show(found['input'])})"
        if kind == "nested":
            yield from (((*keys, *inner), text) for inner, text in context["problems"])
        elif kind == "extra_forbidden":
            allowed = [*(more if len(keys) == 1 else ()), *_fields(model, keys[:-1])]
            replaced = getattr(model, "replaced", {}) if len(keys) == 1 else {}
            yield keys, replaced.get(keys[0]) or unknown_key(allowed, str(keys[-1]), found["input"])
        elif kind == "missing":
            yield keys, "missing"
        elif kind == "model_type":
            yield keys, f"expected a table{got}"
        elif kind == "literal_error":
            allowed = re.findall(r"'([^']*)'", context["expected"])
            yield keys, f"unknown value{hint(found['input'], allowed)}{got}"
        elif kind == "value_error":
            yield keys, str(context["error"])
        else:
            message = re.sub(r"^Input should be (?=greater|less)", "expected a value ", message)
            yield keys, message.replace("Input should be ", "expected ").replace("a valid tuple", "a valid list") + got


def _fields(model: type[BaseModel], keys: Keys) -> list[str]:
    """The fields of the nested model at the path `keys` in `model`, which may lead through optional tables and lists of tables."""
    for key in keys:
        if isinstance(key, int):  # the place in a list, whose type has been resolved by the key before
            continue
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
        inner = next((kind for kind in kinds if issubclass(kind, BaseModel)), None)
        if inner is None:
            return []
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]
