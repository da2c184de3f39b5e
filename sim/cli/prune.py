"""`brokersim prune`: remove runs that results no longer need."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import sim
from sim.cli.options import argument, option

SHOWN = 20
"""The most runs that are listed."""


def prune(
    results: Annotated[Path, argument("RESULTS", "A result folder written by `brokersim run`.")],
    yes: Annotated[bool, option("--yes -y", "Remove without asking.")] = False,
) -> None:
    """Remove the runs in a folder that its results do not need.

    A changed key leaves runs behind, which would be used again if it were changed back. They are listed with their sizes, and
    removed after confirmation. No other file is removed.
    """
    from analysis.formatting import quantity

    with sim.orphans(results) as (found, foreign):
        for path in foreign:
            print(f"brokersim: {path} is not a run of brokersim, or contains other files; left alone", file=sys.stderr)
        if not found:
            print(f"{results}: nothing to remove")
            return
        for orphan in found[:SHOWN]:
            print(f"{orphan.folder}  {quantity(orphan.bytes, 'bytes'):>8}  {orphan.ended}".rstrip())
        if len(found) > SHOWN:
            print(f"and {len(found) - SHOWN:,} more")
        runs = (
            f"{len(found):,} run{'s' if len(found) > 1 else ''}, {quantity(sum(one.bytes for one in found), 'bytes')}"
        )
        if not yes and not sys.stdin.isatty():
            print(f"{results}: {runs} can be removed: --yes removes them")
            return
        if not yes and not typer.confirm(f"Remove {runs}?"):
            print("Nothing was removed")
            return
        for orphan in found:
            orphan.remove()
        print(f"{results}: {runs} removed")
