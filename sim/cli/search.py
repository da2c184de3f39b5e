"""Shared parts of the search commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sim.base.naming import RawValue
from sim.cli.options import Overrides, option, resumable

if TYPE_CHECKING:
    from sim.experiments.options import RunOptions
    from sim.studies.search import Bench


Variant = Annotated[str | None, option("NAME", "The variant; the first by default.")]
SearchOut = Annotated[Path | None, option("--out DIR", "The folder for results; results/NAME-COMMAND by default.")]


@contextmanager
def bench(
    command: str,
    scenario: Path,
    variant: str | None,
    overrides: Overrides,
    out: Path | None,
    options: RunOptions,
    named: Iterable[str],
) -> Generator[Bench]:
    """The variant, ready to be run, with the users' own metrics that occur at the beginning of `texts` (names or limits).

    Its results go to the command's default folder where `out` is None.
    """
    from sim.metrics import own_names
    from sim.studies.search import Bench

    begins = {found.group() for text in named if (found := re.search(r"\w+", text))}
    own = [f"metrics.{name}={{}}" for name in own_names() if name in begins]
    opened = Bench(scenario, out, [*(overrides.set_ or ()), *own], overrides.workload, variant, options, command)
    with resumable(opened.store.folder), opened:
        yield opened


def said(bench: Bench, values: Mapping[str, RawValue]) -> str:
    """The options that pass these values to `brokersim run`."""
    from sim.scenario.keys import option_of

    pairs = (f"{bench.path(key)}={option_of(value, bench.unit_of(key))}" for key, value in values.items())
    return " ".join(f"--set {shlex.quote(pair)}" for pair in pairs)
