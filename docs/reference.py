"""The reference of the docs site: pages made of what the code declares, so that they cannot lag behind it."""

from __future__ import annotations

from collections.abc import Iterator

# Any: Typer's own Click, whose types it does not export.
from typing import Any

import typer.main

import sim
from docs import metrics
from sim.api.reference import scenario_keys
from sim.cli.app import app


def pages() -> dict[str, str]:
    """The pages as Markdown, by their names."""
    return {"commands": commands(), "keys": keys(), "metrics": metrics_page(), "api": api()}


def commands() -> str:
    """Every command with its arguments and options, as its help says."""
    root = typer.main.get_command(app)
    return "# Commands\n\n" + "\n".join(_command(root, "brokersim"))


def _command(command: Any, name: str) -> Iterator[str]:
    yield f"## {name}\n\n{_cell(command.help or '', lines=True)}\n"
    rows = [_parameter(each) for each in command.params if not getattr(each, "hidden", False)]
    if rows:
        yield "| argument or option | meaning |\n| --- | --- |\n" + "".join(rows)
    for key, inner in getattr(command, "commands", {}).items():
        yield from _command(inner, f"{name} {key}")


def _parameter(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if not names[0].startswith("-"):  # an argument
        head = parameter.metavar or names[0].upper()
    else:
        shown = parameter.metavar or ("" if parameter.is_flag else "VALUE")
        head = f"{', '.join(names)} {shown}".strip()
    return f"| `{_cell(head)}` | {_cell(parameter.help or '')} |\n"


def keys() -> str:
    """Every key of scenario files, with what is allowed, its default, and its meaning."""
    rows = (
        f"| `{one.key}` | {_cell(one.kind)} | {'' if not one.default else f'`{_cell(one.default)}`'} "
        f"| {_cell(one.text)} |\n"
        for one in scenario_keys()
    )
    head = "| key | allowed | default | meaning |\n| --- | --- | --- | --- |\n"
    about = (
        "Keys of a kind have its name in their path: `network.geometry.chord.bits` is `bits` where `kind` is `chord`.\n"
    )
    return f"# Keys of scenarios\n\n{about}\n{head}{''.join(rows)}"


def metrics_page() -> str:
    """Every metric, with its unit and meaning."""
    return f"# Metrics\n\n{metrics.table()}"


def api() -> str:
    """Every public name of `sim`, for mkdocstrings to fill in."""
    homes = {name: module for module, names in sim._HOME.items() for name in names}
    parts = (f"::: {homes[name]}.{name}\n" for name in sim.__all__)
    return "# Python API\n\nAll of these are names of `sim`: `sim.run` and so on.\n\n" + "\n".join(parts)


def _cell(text: str, lines: bool = False) -> str:
    """Text that means itself in a table of Markdown."""
    safe = text.replace("\b", "").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
    return safe if lines else " ".join(safe.split())
