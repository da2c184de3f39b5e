"""Options of all commands that perform runs are declared once, in `RunOptions`."""

from __future__ import annotations

from dataclasses import fields

import typer

from sim.cli.app import app
from sim.cli.options import run_options
from sim.experiments.options import RunOptions

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def options(command: str) -> set[str]:
    return {parameter.name for parameter in COMMANDS[command].params}


def test_commands_that_do_runs_offer_the_options_of_runs() -> None:
    every = {one.name for one in fields(RunOptions)}
    assert every <= options("run")
    assert every - options("capacity") == {"fail_fast", "verify"}
    for search in ("tune", "reproduce"):
        assert every - options(search) == {"fail_fast", "retry_failed", "verify"}, search


def test_a_command_gets_what_was_asked_as_one_record() -> None:
    asked: list[RunOptions] = []
    one = typer.Typer()

    @one.command()
    @run_options(without=("verify",))
    def command(name: str, *, options: RunOptions) -> None:
        asked.append(options)

    one(["x", "--jobs", "3", "--engine", "pool", "--retry-failed"], standalone_mode=False)
    assert asked == [RunOptions(jobs=3, engine="pool", retry_failed=True)]
