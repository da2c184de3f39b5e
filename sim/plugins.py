"""Plug-ins: geometries, latency models, policies and workload generators, looked up by name in entry-point groups.

A plug-in is a class with a nested `Parameters` model: the scenario file's table for it is validated by that model, and the
same model documents it in `brokersim policies` and in the JSON Schema.
"""

from __future__ import annotations

import inspect
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel, ConfigDict

from sim.base.errors import PluginError, ScenarioError, unknown

GROUPS = ("geometry", "latency", "selection", "reconfiguration", "offloading", "workload")
"""Those of which a scenario has a table for each; of the group `paper`, `brokersim reproduce` asks for one by name."""


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
    """Load the plug-in class of this name. Raises ScenarioError where it does not exist or is not a plug-in."""
    if name not in (entries := _entries(group)):
        raise ScenarioError(unknown(f"{group} kind", name, entries))
    found = load_entry(group, name)
    model = getattr(found, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, Parameters)):
        raise ScenarioError(f"{_entry(group, name)} has no nested class Parameters(sim.plugins.Parameters)")
    return found


def load_entry(group: str, name: str) -> Any:
    """What the entry point of this name, which there is, stands for. Raises PluginError where it cannot be imported."""
    try:
        return _entries(group)[name].load()
    except Exception as error:  # its module may raise anything when imported
        raise PluginError(f"{_entry(group, name)} cannot be loaded ({type(error).__name__}: {error})") from error


def _entry(group: str, name: str) -> str:
    """An entry point, as messages name it."""
    return f"plug-in brokersim.{group}:{name} ({_entries(group)[name].value})"


def are_ours(kind: type) -> bool:
    """Whether a plug-in's class is built in; third-party classes are checked at run time."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def described(kind: type) -> str:
    """A plug-in's class, as named in messages."""
    return f"plug-in {kind.__name__} ({kind.__module__})"


def make(group: str, name: str, *arguments: Any, promise: type, watched: type | None = None) -> Any:
    """Make a plug-in of this name. A third-party class is checked to have all members of the protocol `promise`.

    `watched` is put before its class, so that its methods look at what those of the class do, and its
    `check_promises` at what stays the same. Raises PluginError.
    """
    kind = load(group, name)
    if are_ours(kind):
        return kind(*arguments)
    try:
        inspect.signature(kind).bind(*arguments)
    except TypeError as error:
        given = ", ".join(type(argument).__qualname__ for argument in arguments)
        raise PluginError(f"{described(kind)} cannot be made of {given}: {error}") from None
    members = {*vars(promise), *promise.__annotations__}
    made = (type(kind.__name__, (watched, kind), {"__module__": kind.__module__}) if watched else kind)(*arguments)
    of_its_own = super(watched, made) if watched else made
    missing = [
        member
        for member in sorted(members)
        if not (member.startswith("_") or hasattr(of_its_own, member) or member in getattr(made, "__dict__", {}))
    ]
    if missing:
        raise PluginError(f"{described(kind)} lacks {', '.join(missing)} of {promise.__name__}")
    if hasattr(watched, "check_promises"):
        made.check_promises()
    return made


def units(group: str, name: str) -> dict[str, str]:
    """The units of a plug-in's parameters that have one; empty for a plug-in that is not installed."""
    if name not in names(group):
        return {}
    fields = load(group, name).Parameters.model_json_schema()["properties"]
    return {key: field["x-unit"] for key, field in fields.items() if "x-unit" in field}
