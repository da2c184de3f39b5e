"""What the commands that search share: their options, and how they are interrupted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sim.studies.search import Bench

Variant = Annotated[
    str | None, typer.Option(metavar="NAME", help="The variant; the first by default.", show_default=False)
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder for results.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


@contextmanager
def bench(
    command: str,
    scenario: Path,
    overrides: Sequence[str] | None,
    workload: Path | None,
    variant: str | None,
    out: Path | None,
    jobs: int | None,
    engine: str,
    master: str | None,
    retry_failed: bool = False,
) -> Generator[Bench]:
    """The variant, ready to be run; its results go to results/NAME-COMMAND by default."""
    from sim.cli.run import cores
    from sim.studies.search import Bench

    folder = out if out is not None else Path("results") / f"{scenario.stem}-{command}"
    many = jobs or (1 if engine == "in-process" else cores())
    try:
        with Bench(scenario, folder, overrides or (), workload, variant, many, engine, master, retry_failed) as opened:
            yield opened
    except KeyboardInterrupt:
        print(f"brokersim: interrupted; finished runs are kept in {folder}, the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None


def said(bench: Bench, values: Any) -> str:
    """The options by which `brokersim run` takes these values."""
    from sim.scenario.keys import option_of

    pairs = (f"{bench.path(key)}={option_of(value, bench.unit_of(key))}" for key, value in values.items())
    return " ".join(f"--set {shlex.quote(pair)}" for pair in pairs)
