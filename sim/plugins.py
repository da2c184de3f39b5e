"""Plug-ins: geometries, latency models, policies and workload generators, looked up by name in entry-point groups.

A plug-in is a class with a nested `Parameters` model: the scenario file's table for it is validated by that model, and the
same model documents it in `brokersim policies` and in the JSON Schema.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel, ConfigDict

from sim.errors import ScenarioError, unknown

GROUPS = ("geometry", "latency", "selection", "reconfiguration", "offloading", "workload")


class Parameters(BaseModel):
    """Base of every plug-in's parameters: unknown keys are errors, values are frozen, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


@cache
def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"brokersim.{group}")}


def names(group: str) -> list[str]:
    """The names known in a group (`geometry`, `latency`, `selection`, `reconfiguration`, `offloading`, `workload`), sorted."""
    return sorted(_entries(group))


@cache
def load(group: str, name: str) -> Any:
    """The plug-in class of this name. Raises ScenarioError where there is none or where it is no plug-in."""
    entries = _entries(group)
    if name not in entries:
        raise ScenarioError(unknown(f"{group} kind", name, entries))
    found = entries[name].load()
    model = getattr(found, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, Parameters)):
        raise ScenarioError(
            f"plug-in brokersim.{group}:{name} ({entries[name].value}) has no nested class Parameters(sim.plugins.Parameters)"
        )
    return found


def units(group: str, name: str) -> dict[str, str]:
    """The units of a plug-in's parameters, for those that have one; nothing of a plug-in that is not installed."""
    if name not in names(group):
        return {}
    fields = load(group, name).Parameters.model_json_schema()["properties"]
    return {key: field["x-unit"] for key, field in fields.items() if "x-unit" in field}
