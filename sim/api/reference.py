"""What metrics, keys of scenarios and parameters of plug-ins mean: one description for help, `explain` and the reference."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import InputError, nearest
from sim.base.naming import Raw

if TYPE_CHECKING:
    from pydantic import BaseModel


_NULL = {"type": "null"}
_LARGEST = 2**31 - 1
"""Larger bounds are those of the numbers' types, and not shown."""


class Described(NamedTuple):
    """The description of a parameter or key: `default` is "" where there is none, and `kind` is what is allowed."""

    key: str
    kind: str
    default: str
    text: str


def described_parameters(model: type[BaseModel]) -> Iterator[Described]:
    """All parameters of a model."""
    schema = model.model_json_schema()
    yield from (_described(key, field, schema) for key, field in schema["properties"].items())


def _described(path: str, field: Raw, schema: Raw) -> Described:
    """A key of the table with this schema."""
    kind = _type(field)
    default = "" if kind == "table" or field.get("default") in (None, "") else _default(field)
    required = path.rpartition(".")[2] in schema.get("required", ())
    said = kind + (", required" if required else "" if default else ", optional")
    return Described(path, said, default, " ".join(field.get("description", "").split()))


@cache
def scenario_keys() -> tuple[Described, ...]:
    """All keys of scenario files by their paths; those of a plug-in with its kind, such as `network.geometry.chord.bits`.

    Keys of a variant are those of the base.

    Examples:
        >>> next(key.default for key in sim.scenario_keys() if key.key == "network.brokers")
        '"cells"'
    """
    from sim.scenario.schema import json_schema

    schema = json_schema()
    return tuple(_keys(schema, schema["$defs"], ""))


def _keys(schema: Raw, definitions: Raw, above: str) -> Iterator[Described]:
    for key, said in schema.get("properties", {}).items():
        field = _resolved(said, definitions)
        if key == "kind" and "const" in field:
            continue
        path = f"{above}{key}"
        yield _described(path, field, schema)
        items = _resolved(field.get("items", {}), definitions) if key != "variant" else {}
        for inner in (field, items):
            yield from _keys(inner, definitions, f"{path}.")
            for kind in inner.get("oneOf", ()):
                own = _resolved(kind, definitions)
                name = own.get("properties", {}).get("kind", {}).get("const")
                if name is not None:
                    about = _about(path, name) or _paragraph_of(own.get("description", ""))
                    yield Described(f"{path}.{name}", f"kind = {json.dumps(name)}", "", about)
                    yield from _keys(own, definitions, f"{path}.{name}.")


def _about(path: str, kind: str) -> str:
    """What a kind is: the first paragraph of its plug-in's docstring."""
    from sim import plugins

    group = path.rpartition(".")[2]
    if group not in plugins.GROUPS or kind not in plugins.names(group):
        return ""
    return _paragraph_of(inspect.getdoc(plugins.load(group, kind)) or "")


def _paragraph_of(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.split("\n\n")[0].split())


def _resolved(schema: Raw, definitions: Raw) -> Raw:
    """A schema with the definition that it refers to filled in, also where there may be none."""
    found = schema if isinstance(schema, dict) else {}
    match [option for option in found.get("anyOf", ()) if option != _NULL]:
        case [{"$ref": _} as only]:
            found = {**found, **only}
    if "$ref" in found:
        return {**definitions[found["$ref"].rpartition("/")[2]], **{k: v for k, v in found.items() if k != "$ref"}}
    return found


def explain(name: str) -> str:
    """Explain a metric, or a key of scenario files: its unit or values, its default, and what it means.

    Args:
        name: a metric, a key path such as "network.brokers" or, of all kinds, "network.geometry.bits", or the last part of one;
            spaces and hyphens stand for underscores.

    Returns:
        A paragraph for each metric and key of that name.

    Raises:
        InputError: where there is none, with the closest name.

    Examples:
        >>> print(sim.explain("handovers"))
        handovers: metric, in count, neither higher nor lower is better
            times that a user's broker changed
    """
    from sim.metrics import METRICS

    keys, found = scenario_keys(), []
    kinds = {key.key for key in keys if key.kind.startswith("kind = ")}
    metrics = {_plain(metric): metric for metric in METRICS}
    if _plain(name) in metrics:
        metric = METRICS[metrics[_plain(name)]]
        unit = f"in {metric.unit}" if metric.unit != "–" else "without a unit"
        way = "neither higher nor lower is better" if metric.better == "neutral" else f"{metric.better} is better"
        found.append(_paragraph(f"{metric.name}: metric, {unit}, {way}", metric.description))
    for key in keys:
        if any(f".{_plain(path)}".endswith(f".{_plain(name)}") for path in (key.key, _without_kind(key.key, kinds))):
            default = f", by default {key.default}" if key.default else ""
            found.append(_paragraph(f"{key.key}: key, {key.kind}{default}", key.text))
    if not found:
        near = nearest(name, [*METRICS, *(key.key for key in keys), *(key.key.rpartition(".")[2] for key in keys)])
        hint = f", did you mean '{near}'?" if near else ""
        raise InputError(f"no metric or key '{name}'{hint} (brokersim explain lists all of them)")
    return "\n".join(found)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _without_kind(path: str, kinds: set[str]) -> str:
    """A key's path as in a file, which has its kind in a key of its own."""
    kind = next((kind for kind in kinds if path.startswith(f"{kind}.")), None)
    return path if kind is None else kind.rpartition(".")[0] + path[len(kind) :]


def _paragraph(head: str, text: str) -> str:
    lines = textwrap.wrap(
        " ".join(text.split()), 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join([head, *lines])


def _default(field: Raw) -> str:
    from sim.base.units import write_duration

    value = field["default"]
    if field.get("x-unit") == "s" and isinstance(value, int | float):
        value = write_duration(value)
    return json.dumps(value, ensure_ascii=False)


def _type(field: Raw) -> str:
    if field.get("x-unit") == "s":
        return "duration in s"
    if field.get("x-unit") == "b/s":
        return 'number in b/s, or text such as "10 Mb/s"'
    if field.get("format") == "path":
        return "file"
    if field.get("type") == "object" or field.keys() & {"oneOf", "$ref"}:
        return "table"
    if "const" in field:
        return json.dumps(field["const"])
    if "enum" in field:
        metrics = "broker_subscription_changes" in field["enum"]
        return "metric" if metrics else " | ".join(json.dumps(value) for value in field["enum"])
    if "anyOf" in field:
        shared = {"x-unit": field["x-unit"]} if "x-unit" in field else {}
        options = [
            option | shared if option.get("type") in {"number", "integer"} else option for option in field["anyOf"]
        ]
        return _alternatives([option for option in options if option != _NULL])
    if "prefixItems" in field:
        return f"[{'; '.join(map(_type, field['prefixItems']))}]"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    limits = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    bounds = [f"{text} {field[key]}" for key, text in limits.items() if key in field and abs(field[key]) < _LARGEST]
    unit = f" in {field['x-unit']}" if "x-unit" in field else ""
    return ", ".join([field.get("type", "any value") + unit, *bounds])


def _alternatives(options: list[Raw]) -> str:
    """What is allowed where there are several types, with bounds in parentheses; a list of the others is not spelt out."""
    *others, last = options
    if others and last.get("type") == "array" and _type(last["items"]) == _type({"anyOf": others}):
        return f"{_type(last['items'])} or a list of these"
    texts = []
    for option in options:
        kind, _, bounds = _type(option).partition(", ") if "type" in option else (_type(option), "", "")
        texts.append(f"{kind} ({bounds})" if bounds and others else _type(option))
    return " or ".join(texts)
