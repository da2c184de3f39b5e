"""Shared parts of the search commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.cli.options import resumable

if TYPE_CHECKING:
    from sim.experiments.options import RunOptions
    from sim.studies.search import Bench


@contextmanager
def bench(
    command: str,
    scenario: Path,
    overrides: Sequence[str] | None,
    workload: Path | None,
    variant: str | None,
    out: Path | None,
    options: RunOptions,
) -> Generator[Bench]:
    """The variant, ready to be run; its results go to the command's default folder where `out` is None."""
    from sim.studies.search import Bench

    opened = Bench(scenario, out, overrides or (), workload, variant, options, command)
    with resumable(opened.store.folder), opened:
        yield opened


def measuring(overrides: Sequence[str] | None, *texts: str) -> list[str]:
    """The overrides, with those metrics of a user's own that texts (names or limits) begin with."""
    from sim.metrics import own_names

    named = {found.group() for text in texts if (found := re.search(r"\w+", text))}
    return [*(overrides or ()), *(f"metrics.{name}={{}}" for name in own_names() if name in named)]


def said(bench: Bench, values: Any) -> str:
    """The options by which `brokersim run` takes these values."""
    from sim.scenario.keys import option_of

    pairs = (f"{bench.path(key)}={option_of(value, bench.unit_of(key))}" for key, value in values.items())
    return " ".join(f"--set {shlex.quote(pair)}" for pair in pairs)
