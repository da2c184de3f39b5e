"""`brokersim new`, `scenarios`, `explain` and `doctor`: what the first ten minutes need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

import sim
from sim.base.errors import InputError
from sim.cli import terminal
from sim.cli.options import Json, argument, option

Answer = TypeVar("Answer", str, int)

scenarios_app = typer.Typer(help="List the scenarios that are shipped, or copy one.")


def new(
    file: Annotated[Path, argument("FILE.toml", "The file to write.")],
    workload: Annotated[
        str | None,
        option("KIND|DIR", "poisson, interests or mobility to generate one, or a workload folder. [poisson]"),
    ] = None,
    brokers: Annotated[int | None, option("N", "The number of brokers. [10]", min=1)] = None,
    geometry: Annotated[str | None, option("KIND", "The overlay between them. [chord]")] = None,
    compare: Annotated[
        str | None, option("KIND,KIND", "The ways to select a user's broker that are compared. [static,similarity]")
    ] = None,
    replications: Annotated[int | None, option("N", "How often each is run. [5]", min=1)] = None,
    yes: Annotated[bool, option("--yes -y", "Don't ask for what is not given.")] = False,
) -> None:
    """Write a scenario to begin with: it runs as it is, and comments say what to change.

    On a terminal, what no option gives is asked for.
    """
    asks = not yes and sys.stdin.isatty()
    chosen = sim.new_scenario(
        file,
        _ask(asks, "Workload: poisson, interests, mobility, or a folder", workload, "poisson", _workload),
        _ask(asks, "Brokers", brokers, 10, _count),
        _ask(asks, "Overlay: chord, star, full-mesh, …", geometry, "chord", _geometry),
        _kinds(_ask(asks, "Ways to select a broker, to compare", compare, "static,similarity", _selection)),
        _ask(asks, "Replications", replications, 5, _count),
    )
    print(f"{chosen}: run it with brokersim run {chosen}")


def _ask(asks: bool, what: str, given: Answer | None, default: Answer, checked: Callable[[str], Answer]) -> Answer:
    """What is given, or the answer, which is asked for until it is one that is allowed."""
    if given is not None or not asks:
        return default if given is None else given

    def answered(text: str) -> Answer:
        try:
            return checked(text.strip())
        except InputError as error:
            raise typer.BadParameter(str(error)) from None

    answer: Answer = typer.prompt(what, default=default, value_proc=answered)
    return answer


def _workload(name: str) -> str:
    from sim.api.beginning import check_workload

    check_workload(name)
    return name


def _geometry(kind: str) -> str:
    from sim.api.beginning import check_kinds

    check_kinds("geometry", [kind])
    return kind


def _selection(kinds: str) -> str:
    from sim.api.beginning import check_kinds

    check_kinds("selection", _kinds(kinds))
    return kinds


def _kinds(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"'{text}': expected a whole number of at least 1")
    return int(text)


@scenarios_app.callback(invoke_without_command=True)
def scenarios(context: typer.Context) -> None:
    """List the scenarios that are shipped, or copy one."""
    if context.invoked_subcommand is None:
        terminal.console().print(terminal.plain_table((), sim.list_scenarios().items()))


@scenarios_app.command("copy")
def copy(
    name: Annotated[str, argument("NAME", "A scenario by its name in the list.")],
    to: Annotated[Path, argument("[DIR]", "The folder to copy it to.")] = Path(),
) -> None:
    """Copy a shipped scenario, and the files that it names."""
    for path in sim.copy_scenario(name, to):
        print(path)


def explain(
    name: Annotated[
        str, argument("METRIC|KEY", "A metric, a key such as network.brokers, or the last part of one.")
    ] = "",
) -> None:
    """Explain a metric, or a key of scenario files. Without a name, list all of them."""
    if name:
        print(sim.explain(name))
        return
    from sim.metrics import METRICS

    print("\n".join([*METRICS, *(key.key for key in sim.scenario_keys())]))


def doctor(json_: Json = False) -> None:
    """Show versions, memory, cores, disk and caches, for a bug report. Anything that may cause trouble is marked with !."""
    found = sim.doctor()
    if json_:
        terminal.print_json(found)
        return
    width = max(map(len, found))
    for key, text in found.items():
        print(f"{key:<{width}}  {text}")
