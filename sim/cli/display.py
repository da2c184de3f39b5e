"""How far a command's runs are, on standard error: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sim.units import format_duration

if TYPE_CHECKING:
    from sim.experiments.outcomes import Progress
    from sim.experiments.plan import RunSpec
    from sim.scenario import Experiment


@contextmanager
def display(experiment: Experiment, quiet: bool = False) -> Generator[Progress | None]:
    """Something to tell of the progress of an experiment's runs; None where nobody wants to know."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _live(experiment) as tell:
            yield tell
    else:
        yield _plain(experiment)


@contextmanager
def _live(experiment: Experiment) -> Generator[Progress]:
    """A bar per variant; a run that is under way counts in part."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    total = experiment.base.replications
    columns = (
        TextColumn("{task.description}", markup=False),  # a name may hold [ and ]
        BarColumn(),
        TextColumn(f"{{task.fields[done]}} of {total} runs"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {variant: bars.add_task(variant, total=total, done=0) for variant in experiment.variants}
        parts: dict[str, dict[int, float]] = {variant: {} for variant in experiment.variants}

        def tell(spec: RunSpec, fraction: float) -> None:
            mine = parts[spec.variant]
            mine[spec.replication] = max(fraction, mine.get(spec.replication, 0.0))
            done = sum(part == 1.0 for part in mine.values())
            bars.update(tasks[spec.variant], completed=sum(mine.values()), done=done)

        yield tell


def _plain(experiment: Experiment) -> Callable[[RunSpec, float], None]:
    """A line per finished run, with the time that the others may take."""
    replications = experiment.base.replications
    total = replications * len(experiment.variants)
    began, done = time.monotonic(), 0

    def tell(spec: RunSpec, fraction: float) -> None:
        nonlocal done
        if fraction == 1.0:
            done += 1
            left = (time.monotonic() - began) / done * (total - done)
            more = f", about {format_duration(left)} left" if done < total else ""
            which = f"{spec.variant}, replication {spec.replication + 1} of {replications}"
            print(f"brokersim: {done} of {total} runs done ({which}){more}", file=sys.stderr, flush=True)

    return tell
