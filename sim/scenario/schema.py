"""The JSON Schema of scenario files, with the parameters of every plug-in that is installed."""

from __future__ import annotations

from sim.base.naming import Raw, RawValue
from sim.scenario.model import DETECT, SHARED, Precision, Report, Scenario
from sim.scenario.sweep import GRID, SAMPLES, SCALES
from sim.scenario.tuning import Tune


def json_schema() -> Raw:
    """The JSON Schema of a scenario file, with the parameters of every plug-in that is installed.

    Examples:
        >>> "horizon" in sim.json_schema()["properties"]
        True
    """
    schema = Scenario.model_json_schema()
    keys = {key: _partial(value, schema["$defs"]) for key, value in schema["properties"].items() if key not in SHARED}
    variant = {
        "type": "object",
        "description": "A variant: its name, and the keys in which it differs from the base.",
        "properties": {"name": {"type": "string", "minLength": 1}, **keys},
        "required": ["name"],
        "additionalProperties": False,
    }
    warm_up = schema["properties"]["warm_up"]
    schema["properties"] |= {
        "warm_up": warm_up | {"anyOf": [*warm_up["anyOf"], {"const": DETECT}]},
        "variant": {
            "type": "array",
            "description": "The variants that are compared; each overrides keys of the scenario.",
            "items": variant,
        },
        "report": Report.model_json_schema(),
        "precision": Precision.model_json_schema(),
        "sweep": _sweep_schema(),
        "tune": Tune.model_json_schema(),
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "brokersim scenario"}


def _partial(schema: RawValue, definitions: Raw) -> RawValue:
    """The schema of overrides: nothing is required, and a table may omit its kind."""
    if isinstance(schema, list):
        return [_partial(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _partial(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    rest = {"anyOf" if key == "oneOf" else key: value for key, value in schema.items() if key != "required"}
    return {
        key: {name: _partial(inner, definitions) for name, inner in value.items()}
        if key == "properties"
        else _partial(value, definitions)
        for key, value in rest.items()
    }


def _sweep_schema() -> Raw:
    """The JSON Schema of a [sweep] table, without the names of keys."""
    number = {"type": ["number", "string"]}
    spread = {
        "type": "object",
        "properties": {
            "from": number,
            "to": number,
            "steps": {"type": "integer", "minimum": 2},
            "scale": {"enum": [*SCALES]},
        },
        "required": ["from", "to"],
        "additionalProperties": False,
    }
    nested = {"type": "object", "additionalProperties": {"$ref": "#/properties/sweep/additionalProperties"}}
    keys = {"type": "array", "items": {"type": "string"}, "minItems": 2}
    return {
        "type": "object",
        "description": "Key paths and their values: the points that override the base.",
        "properties": {
            "zip": {
                "anyOf": [keys, {"type": "array", "items": keys}],
                "description": "Swept keys that advance together, or several groups of them.",
            },
            "where": {"type": "string", "description": "A condition on swept keys, which points must meet."},
            "sample": {
                "enum": [*SAMPLES],
                "default": GRID,
                "description": "Every combination of the values, or points drawn at random from their ranges.",
            },
            "samples": {
                "type": "integer",
                "minimum": 1,
                "description": "The size of the sample; only of one that is drawn.",
            },
        },
        "minProperties": 1,
        "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, spread, nested]},
    }
