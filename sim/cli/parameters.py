"""Parameters of plug-ins on the command line: their descriptions, and the given values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

# Any: parameters of whichever plug-in is asked for.
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.base.errors import InputError, cut
from sim.base.naming import Raw

if TYPE_CHECKING:
    from pydantic import BaseModel


class Given(NamedTuple):
    """A parameter, the text of its value, and how it was given."""

    key: str
    text: str
    given: str


class Described(NamedTuple):
    """The description of a parameter: `default` is "" where there is none, and `kind` is what is allowed."""

    key: str
    kind: str
    default: str
    text: str


def described(model: type[BaseModel]) -> Iterator[Described]:
    """All parameters of a model."""
    for key, field in model.model_json_schema()["properties"].items():
        optional = field.get("default", "") is None
        default = _default(field) if "default" in field and not optional else ""
        kind = _type(field) + (", optional" if optional else "" if default else ", required")
        yield Described(key, kind, default, " ".join(field.get("description", "").split()))


def settings(texts: Sequence[str]) -> list[Given]:
    """Parameters given as `--set KEY=VALUE`."""
    found = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"--set {cut(text, 300)}: expected KEY=VALUE, such as users=200")
        found.append(Given(key.strip(), value, f"--set {key.strip()}"))
    return found


def options(arguments: Sequence[str]) -> list[Given]:
    """Parameters given as options of their names, `--per-user 5` or `--per-user=5`."""
    found, left = [], list(arguments)
    while left:
        option, equals, value = left.pop(0).partition("=")
        if not option.startswith("--"):
            raise InputError(f"unexpected argument '{option}': parameters are given as --KEY VALUE, after the kind")
        if not equals:
            if not left:
                raise InputError(f"{option}: expected a value after it")
            value = left.pop(0)
        found.append(Given(option.removeprefix("--").replace("-", "_"), value, option))
    return found


def parameters(model: type[BaseModel], given: Sequence[Given]) -> Any:
    """The model's parameters from these texts; later ones override. Raises InputError with all mistakes."""
    from pydantic import ValidationError

    from sim.base.validation import dotted, problems, validate
    from sim.files import toml

    try:
        return validate(model, {one.key: toml.value(one.text.strip()) for one in given})
    except ValidationError as error:
        names: dict[str, str] = {one.key: one.given for one in given}
        found = [
            f"{names.get(str(keys[0]), keys[0])}{dotted(('', *keys[1:]))}: {text}" if keys else text
            for keys, text in problems(error, model)
        ]
        raise InputError("\n".join(found)) from None


def _default(field: Raw) -> str:
    from sim.base.units import format_duration, parse_duration

    value = field["default"]
    if field.get("x-unit") == "s" and parse_duration(text := format_duration(value)) == value:
        value = text
    return json.dumps(value, ensure_ascii=False)


def _type(field: Raw) -> str:
    if field.get("x-unit") == "s":
        return "duration in s"
    if field.get("format") == "path":
        return "file"
    if field.get("type") == "object":
        return "table"
    if "enum" in field:
        return " | ".join(json.dumps(value) for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"] if option != {"type": "null"})
    if "prefixItems" in field:
        return f"[{'; '.join(map(_type, field['prefixItems']))}]"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    limits = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    bounds = [f"{text} {field[key]}" for key, text in limits.items() if key in field]
    unit = f" in {field['x-unit']}" if "x-unit" in field else ""
    return ", ".join([field.get("type", "any value") + unit, *bounds])
