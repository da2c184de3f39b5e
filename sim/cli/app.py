"""The command `brokersim`: its groups of commands, and the exit status of errors."""

from __future__ import annotations

import errno
import sys
from importlib.metadata import version as installed_version

# Any: Typer's own Click and Rich, whose types it does not export.
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sim.api.interruption import Interrupted
from sim.base.errors import InputError
from sim.cli import (
    beginning,
    best,
    calibrate,
    capacity,
    compare,
    demo,
    export,
    generate,
    plan,
    prepare,
    prune,
    report,
    reproduce,
    run,
    scenario,
    solve_offloading,
    solve_overlay,
    solve_reconfiguration,
    tune,
    validate_against,
)
from sim.cli.options import option
from sim.cli.terminal import listing, printable_streams, printable_traceback
from sim.files.atomic import check_name

# what the system, or a given path, does not allow: not a fault of brokersim
_NOT_OURS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Interrupted as stop:
            print(f"brokersim: {stop}, the same command resumes", file=sys.stderr)
            raise typer.Exit(130) from None
        except KeyboardInterrupt:
            print("brokersim: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"brokersim {installed_version('brokersim')}")
        raise typer.Exit


@app.callback()
def brokersim(
    version: Annotated[
        bool, option("--version", "Show the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """A discrete-event simulator for publish/subscribe broker networks.

    Check-ins become a workload (prepare), or a synthetic one is generated (generate); a scenario file compares policies on it
    (run), and a report shows what they cost and save (report). Begin with: brokersim demo
    """


solve = typer.Typer(no_args_is_help=True, help="Solve single design problems, without a simulation.")
solve.command()(solve_overlay.overlay)
solve.command()(solve_reconfiguration.reconfiguration)
solve.command()(solve_offloading.offloading)

app.command()(demo.demo)
app.command()(beginning.new)
app.add_typer(beginning.scenarios_app, name="scenarios")
app.command()(beginning.explain)
app.add_typer(prepare.app, name="prepare")
app.command(cls=generate.Generate, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    generate.generate
)
app.command()(generate.describe)
app.command()(plan.plan)
app.command()(run.run)
app.command()(report.report)
app.command()(compare.compare)
app.command()(best.best)
app.command()(export.export)
app.command()(prune.prune)
app.add_typer(solve, name="solve")
app.command()(tune.tune)
app.command()(capacity.capacity)
app.command()(calibrate.calibrate)
app.command()(validate_against.validate_against)
app.command(cls=listing("Papers", reproduce.papers))(reproduce.reproduce)
app.command()(scenario.validate)
app.command()(scenario.schema)
app.command()(scenario.policies)
app.command()(beginning.doctor)


def main() -> None:
    """Run the command line: exit status 2 and one message for invalid input, a traceback for internal faults."""
    try:
        with printable_streams():
            _run()
    finally:
        sys.excepthook = printable_traceback  # instead of Typer's


def _run() -> None:
    try:
        for argument in sys.argv[1:]:
            check_name(argument)
        app(prog_name="brokersim")
    except InputError as error:
        _end(str(error))
    except MemoryError as error:
        _end(f"not enough memory ({error})")
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        _end(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))


def _end(message: str) -> NoReturn:
    print(f"brokersim: error: {message}", file=sys.stderr)
    sys.exit(2)
