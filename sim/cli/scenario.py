"""`brokersim validate`, `schema` and `policies`: what a scenario says, and what one can say."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from sim.cli.run import Overrides, ScenarioFile, WorkloadFolder


def validate(
    scenario: ScenarioFile,
    set_: Overrides = None,
    workload: WorkloadFolder = None,
    json_: Annotated[bool, typer.Option("--json", help="Print every variant with all defaults filled in.")] = False,
) -> None:
    """Check a scenario file, all mistakes at once."""
    from sim.scenario import load_scenario

    experiment = load_scenario(scenario, set_ or (), workload)
    if json_:
        values = {name: variant.model_dump(mode="json") for name, variant in experiment.variants.items()}
        print(json.dumps(values, indent=2, ensure_ascii=False))
        return
    variants, replications = len(experiment.variants), experiment.base.replications
    runs = (
        f"{_many(variants, 'variant')} × {_many(replications, 'replication')} = {_many(variants * replications, 'run')}"
    )
    print(f"{scenario}: valid, {runs}")


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    from sim.scenario import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def policies() -> None:
    """List all plug-ins and their parameters."""
    from sim import plugins

    print("\n\n".join(_group(group, plugins.names(group)) for group in plugins.GROUPS))


TABLES = {"geometry": "network.geometry", "latency": "network.latency"}


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _group(group: str, names: list[str]) -> str:
    return "\n\n".join([f"[{TABLES.get(group, group)}]", *("\n".join(_plugin(group, name)) for name in names)])


def _plugin(group: str, name: str) -> Iterator[str]:
    from sim import plugins

    found = plugins.load(group, name)
    yield f'  kind = "{name}"'
    yield from _paragraph((inspect.getdoc(found) or "").split("\n\n")[0], 4)
    for key, field in found.Parameters.model_json_schema()["properties"].items():
        optional = field.get("default", "") is None
        default = f" = {_default(field)}" if "default" in field and not optional else ""
        yield f"    {key}{default} ({_type(field)}{', optional' if optional else '' if default else ', required'})"
        yield from _paragraph(field.get("description", ""), 8)


def _paragraph(text: str, indent: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 100, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _default(field: dict[str, Any]) -> str:
    from sim.units import format_duration, parse_duration

    value = field["default"]
    if field.get("x-unit") == "s" and parse_duration(text := format_duration(value)) == value:
        value = text
    return json.dumps(value, ensure_ascii=False)


def _type(field: dict[str, Any]) -> str:
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
