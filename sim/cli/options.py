"""Arguments and options that commands share, and what those have in common that do runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sim.experiments.options import RunOptions

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, such as network.brokers=200; variant.NAME.KEY=VALUE for one variant. May be repeated.",
    ),
]
WorkloadFolder = Annotated[
    Path | None,
    typer.Option("--workload", metavar="DIR", help="A workload folder, in place of the one named in the scenario."),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder for results; results/NAME by default.", show_default=False),
]
SearchOut = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="The folder for results; results/NAME-COMMAND by default.", show_default=False
    ),
]
Variant = Annotated[
    str | None, typer.Option(metavar="NAME", help="The variant; the first by default.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

EVERY_RUN_OPTION = tuple(one.name for one in fields(RunOptions))


def run_options(
    names: Iterable[str] = EVERY_RUN_OPTION, without: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of its parameter `options: RunOptions`, an option for each of these fields."""
    offered = [name for name in names if name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            options = RunOptions(**{name: given.pop(name) for name in offered})
            command(**given, options=options)

        hints = get_type_hints(command, include_extras=True)
        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == "options":
                parameters.extend(_parameters(offered))
            else:
                parameters.append(parameter.replace(annotation=hints[parameter.name]))
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate


def _parameters(names: Iterable[str]) -> Generator[inspect.Parameter]:
    """A command's parameter for each of these fields of `RunOptions`, as its metadata declares it."""
    hints = get_type_hints(RunOptions)
    for one in fields(RunOptions):
        if one.name in names:
            option = typer.Option(f"--{one.name.replace('_', '-')}", **one.metadata)
            default = inspect.Parameter.empty if "default_factory" in one.metadata else one.default
            yield inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hints[one.name], option],
            )


@contextmanager
def resumable(folder: Path) -> Generator[None]:
    """Report that an interrupted command can be resumed; exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"brokersim: interrupted; finished runs are kept in {folder}, the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None
