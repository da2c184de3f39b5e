"""Arguments and options that commands share, and common parts of commands that perform runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path

# Any: Typer's declarations take the place of default values of any type.
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import sim
from sim.base.errors import InputError, nearest
from sim.experiments.options import RunOptions, declared

if TYPE_CHECKING:
    from sim.base.naming import Raw
    from sim.scenario.experiment import Experiment


def option(usage: str, help: str, **more: Any) -> Any:
    """A command's option by its usage, such as `--from TIME`, `--json` or `TIME`; its name is the parameter's by default."""
    names = [word for word in usage.split() if word.startswith("-")]
    metavar = next((word for word in usage.split() if not word.startswith("-")), None)
    return typer.Option(*names, metavar=metavar, help=help, **more)


def argument(metavar: str, help: str) -> Any:
    """A command's argument."""
    return typer.Argument(metavar=metavar, help=help)


ScenarioFile = Annotated[Path, argument("SCENARIO", "A scenario file (TOML).")]
Out = Annotated[Path | None, option("DIR", "The folder for results; results/NAME by default.")]
Json = Annotated[bool, option("--json", "Print the result as JSON.")]
Variant = Annotated[str | None, option("NAME", "The variant; the first by default.")]
SearchOut = Annotated[Path | None, option("--out DIR", "The folder for results; results/NAME-COMMAND by default.")]
Quiet = Annotated[bool, option("--quiet -q", "Show no progress.")]


@dataclass(frozen=True)
class Overrides:
    """The overrides of a scenario file."""

    set_: list[str] | None = declared(
        "--set KEY=VALUE",
        "Override a key, such as network.brokers=200; variant.NAME.KEY=VALUE for one variant. May be repeated.",
        None,
    )
    seed: int | None = declared("N", "Override the seed of all random draws.", None, min=0)
    replications: int | None = declared("N", "Override the number of replications.", None, min=1)
    workload: Path | None = declared("DIR", "A workload folder, instead of the one named in the scenario.", None)

    @property
    def given(self) -> Raw:
        """The overrides as arguments of functions of `sim`."""
        return {"overrides": self.texts, "workload": self.workload}

    @property
    def texts(self) -> list[str]:
        """The overrides of keys; the options of their own come last, and so win."""
        own = {"seed": self.seed, "replications": self.replications}
        return [*(self.set_ or ()), *(f"{key}={value}" for key, value in own.items() if value is not None)]

    def check(self, scenario: Path) -> None:
        """Raise InputError where there is no such file or workload, with the command that writes one."""
        if not scenario.exists():
            raise InputError(f"{scenario}: no such file{_instead(scenario)}")
        if self.workload is not None and not self.workload.is_dir():
            raise InputError(
                f"--workload {self.workload}: no such folder; brokersim generate KIND --out {self.workload} or brokersim prepare "
                "writes one"
            )

    def load(self, scenario: Path, *more: str) -> Experiment:
        """Load the scenario with these and more overrides."""
        self.check(scenario)
        return sim.load_scenario(scenario, [*self.texts, *more], self.workload)


def _instead(scenario: Path) -> str:
    """What to type where there is no such scenario: the name of one beside it, or the command that makes it."""
    name = scenario.as_posix().removesuffix(".toml")
    if name in sim.list_scenarios():
        return f"; it is shipped: brokersim scenarios copy {name}"
    if near := nearest(scenario.stem, [path.stem for path in scenario.parent.glob("*.toml")]):
        return f", did you mean '{scenario.with_name(near)}.toml'?"
    return (
        f"; brokersim new {scenario.with_suffix('.toml')} writes a scenario to begin with, "
        "brokersim scenarios lists those that are shipped"
    )


EVERY_RUN_OPTION = tuple(one.name for one in fields(RunOptions))


def run_options(
    names: Iterable[str] = EVERY_RUN_OPTION, without: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter `options: RunOptions` by an option for each of these fields."""
    return partial(grouped, run=[name for name in names if name not in without])


def grouped(command: Callable[..., None], run: Iterable[str] = EVERY_RUN_OPTION) -> Callable[..., None]:
    """Replace each parameter of a command that is a dataclass of options (`declared`) by an option for each of its fields.

    For `RunOptions`, only the fields in `run`.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    groups = {name: hints[name] for name in signature.parameters if is_dataclass(hints[name])}
    offered = {
        name: [one for one in fields(kind) if kind is not RunOptions or one.name in run]
        for name, kind in groups.items()
    }

    @wraps(command)
    def with_options(**given: Any) -> None:
        records = {
            name: kind(**{one.name: given.pop(one.name) for one in offered[name]}) for name, kind in groups.items()
        }
        command(**given, **records)

    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            parameters.extend(_parameter(one, get_type_hints(groups[name])[one.name]) for one in offered[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _parameter(one: Field[Any], kind: Any) -> inspect.Parameter:
    """A command's parameter for a field, as its metadata declares it."""
    default = inspect.Parameter.empty if "default_factory" in one.metadata else one.default
    annotation = Annotated[kind, option(**one.metadata)]
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
