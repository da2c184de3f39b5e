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


class Described(NamedTuple):
    """The description of a parameter or key: `default` is "" where there is none, and `kind` is what is allowed."""

    key: str
    kind: str
    default: str
    text: str


def described_parameters(model: type[BaseModel]) -> Iterator[Described]:
    """All parameters of a model."""
    yield from (_described(key, field) for key, field in model.model_json_schema()["properties"].items())


def _described(key: str, field: Raw) -> Described:
    optional = field.get("default", "") is None
    default = _default(field) if "default" in field and not optional else ""
    kind = _type(field) + (", optional" if optional else "" if default else ", required")
    return Described(key, kind, default, " ".join(field.get("description", "").split()))


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
        yield _described(path, field)._replace(key=path)
        items = _resolved(field.get("items", {}), definitions) if key != "variant" else {}
        for inner in (field, items):
            yield from _keys(inner, definitions, f"{path}.")
            for kind in inner.get("oneOf", ()):
                own = _resolved(kind, definitions)
                name = own.get("properties", {}).get("kind", {}).get("const")
                if name is not None:
                    yield Described(f"{path}.{name}", f"kind = {json.dumps(name)}", "", _about(path, name))
                    yield from _keys(own, definitions, f"{path}.{name}.")


def _about(path: str, kind: str) -> str:
    """What a kind is: the first paragraph of its plug-in's docstring."""
    from sim import plugins

    group = path.rpartition(".")[2]
    if group not in plugins.GROUPS or kind not in plugins.names(group):
        return ""
    return " ".join((inspect.getdoc(plugins.load(group, kind)) or "").split("\n\n")[0].split())


def _resolved(schema: Raw, definitions: Raw) -> Raw:
    """A schema with the definition that it refers to filled in."""
    found = schema if isinstance(schema, dict) else {}
    if "$ref" in found:
        return {**definitions[found["$ref"].rpartition("/")[2]], **{k: v for k, v in found.items() if k != "$ref"}}
    return found


def explain(name: str) -> str:
    """Explain a metric, or a key of scenario files: its unit or values, its default, and what it means.

    Args:
        name: a metric, a key path such as "network.brokers", or the last part of one.

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
    if name in METRICS:
        metric = METRICS[name]
        unit = f"in {metric.unit}" if metric.unit != "–" else "without a unit"
        way = "neither higher nor lower is better" if metric.better == "neutral" else f"{metric.better} is better"
        found.append(_paragraph(f"{name}: metric, {unit}, {way}", metric.description))
    for key in keys:
        if key.key == name or key.key.endswith(f".{name}"):
            default = f", by default {key.default}" if key.default and key.kind != "table" else ""
            found.append(_paragraph(f"{key.key}: key, {key.kind}{default}", key.text))
    if not found:
        near = nearest(name, [*METRICS, *(key.key for key in keys), *(key.key.rpartition(".")[2] for key in keys)])
        hint = f", did you mean '{near}'?" if near else ""
        raise InputError(f"no metric or key '{name}'{hint} (brokersim explain lists all of them)")
    return "\n".join(found)


def _paragraph(head: str, text: str) -> str:
    lines = textwrap.wrap(" ".join(text.split()), 100, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([head, *lines])


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
