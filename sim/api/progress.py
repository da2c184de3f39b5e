"""Progress of runs: bars on a terminal or in a notebook, plain lines elsewhere, and failures at once."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sim.api.console import console
from sim.base.naming import Raw
from sim.base.units import format_duration
from sim.experiments.rounds import expected_runs

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from sim.experiments.plan import RunSpec
    from sim.scenario.experiment import Experiment

LISTED = 50
"""The number of runs up to which each gets its own line without a terminal."""
OFTEN = 5.0  # s, between two lines if there are more
LITTLE = 0.1
"""The amount of work, in runs, that is too little to estimate the time of others."""
LINES = 8
"""The most points that are shown at a time."""


class Pace:
    """The rate of runs per second; None until it is known. Times are those of one clock, in s.

    The first run also imports and compiles, before its first part and again when its result is written, which may take several
    times as long as a run. So the clock starts with the first part, and restarts when the first run has ended. If no parts are
    reported, many machines may be working and end together, so it starts with the work.
    """

    def __init__(self, began: float) -> None:
        self.rate: float | None = None
        self._since, self._before = began, 0.0  # when the clock started, and what was already done then
        self._parts = self._ended = False

    def part(self, now: float, done: float) -> None:
        """Record progress within a run; `done` is the share of all runs."""
        if not self._parts and not self._ended:
            self._parts, self._since, self._before = True, now, done
        self._measure(now, done)

    def end(self, now: float, done: float) -> None:
        """A run has ended."""
        if self._parts and not self._ended:
            self._since, self._before = now, done
        self._ended = True
        self._measure(now, done)

    def _measure(self, now: float, done: float) -> None:
        if done - self._before > LITTLE and now > self._since:
            self.rate = (done - self._before) / (now - self._since)


class Display:
    """Counts runs and reports failures; its methods are a `Progress` and an `OnFailure`.

    Runs of future rounds are counted from the beginning: at least `total`, at most `most`.
    """

    def __init__(self, experiment: Experiment | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._least, self._most = expected_runs(experiment) if experiment is not None else (0, 0)
        self.known = self.there = self.done = self.failures = 0
        self.clock, self.began = clock, clock()
        self.pace = Pace(self.began)
        self.part = 0.0  # the share done of each run in progress
        self._parts: dict[tuple[int, str, str], float] = {}  # the point or variant of each unfinished run
        self._shown: set[str] = set()  # tracebacks

    @property
    def total(self) -> int:
        """The number of runs known so far."""
        return max(self.known, self._least)

    @property
    def of(self) -> str:
        """The number of runs as text: `108`, or `108 to 400` if it depends on results."""
        return f"{self.total} to {self._most}" if self._most > self.total else str(self.total)

    def __call__(self, spec: RunSpec, fraction: float) -> None:
        run = (spec.point, spec.variant, spec.hash)
        before = self._parts.pop(run, None)
        self.known += before is None
        self.there += before is None and fraction == 1.0
        self.done += before is not None and fraction == 1.0
        if fraction < 1.0:
            self._parts[run] = fraction
        self.part += (fraction if fraction < 1.0 else 0.0) - (before or 0.0)
        if before is not None:
            (self.pace.part if fraction < 1.0 else self.pace.end)(self.clock(), self.done + self.part)
        self.show(spec, fraction)

    def failed(self, record: Raw) -> None:
        """Report a failure with its reason; equal tracebacks only once."""
        self.failures += 1
        where = ", ".join(filter(None, (record["label"], f"variant {record['variant']}")))
        trace = "" if record["traceback"] in self._shown else record["traceback"]
        self._shown.add(record["traceback"])
        self.say(f"{trace}brokersim: {where}, replication {record['replication']} failed: {record['reason']}")

    def say(self, text: str) -> None:
        """Print a permanent line."""
        print(text, file=sys.stderr, flush=True)

    def show(self, spec: RunSpec, fraction: float) -> None:
        """Update the progress display."""

    @property
    def left(self) -> str:
        """The estimated time left, as text, from finished runs; "" where too few have finished."""
        left = self.total - self.there - self.done - self.part
        if self.pace.rate is None or not self._parts:
            return ""
        least = "at least" if self._most > self.total else "about"
        return f", {least} {format_duration(left / self.pace.rate)} left"


@contextmanager
def display(experiment: Experiment, quiet: bool = False) -> Generator[Display]:
    """Shows the progress of an experiment's runs, or only failures."""
    if quiet:
        yield Display()
    elif sys.stderr.isatty() or _in_notebook():
        with _live() as bars:
            yield _Live(experiment, bars)
    else:
        yield _Plain(experiment)


class _Plain(Display):
    """A line per finished run, or from time to time, with the estimated time left."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self._of = "" if experiment.precision else f" of {experiment.base.replications}"
        self._said = -OFTEN

    def show(self, spec: RunSpec, fraction: float) -> None:
        ended = self.there + self.done
        now = self.clock()
        soon = now - self._said < OFTEN if self.total > LISTED else not self.done
        if fraction < 1.0 or (soon and ended < self.total):
            return
        self._said = now
        failed = f", {self.failures} failed" if self.failures else ""
        which = ", ".join(filter(None, (spec.label, spec.variant, f"replication {spec.replication + 1}{self._of}")))
        self.say(f"brokersim: {ended} of {self.of} runs done{failed} ({which}){self.left}")


class _Live(Display):
    """A bar for all runs, and one for each point (without a sweep, for each variant) in progress."""

    def __init__(self, experiment: Experiment, bars: Bars) -> None:
        super().__init__(experiment)
        self._bars = bars
        self._sweep = len(experiment.points) > 1
        self._all = bars.add_task("all", total=None, said="")
        self._lines: dict[str, TaskID] = {}  # most recently updated last
        self._runs: dict[str, dict[tuple[str, str], float]] = {}  # the progress of each line's runs

    def say(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, spec: RunSpec, fraction: float) -> None:
        name = (spec.label if self._sweep else spec.variant) or "all"
        runs = self._runs.setdefault(name, {})
        key = (spec.variant, spec.hash)
        runs[key] = max(fraction, runs.get(key, 0.0))
        if fraction == 0.0:
            return
        ended = self.there + self.done
        minutes = (self.clock() - self.began) / 60
        rate = f", {self.done / minutes:.3g} a minute" if self.done and minutes > 0.1 else ""
        failed = f", {self.failures} failed" if self.failures else ""
        said = f"{ended} of {self.of} runs{failed}{rate}{self.left}"
        self._bars.update(self._all, total=self.total, completed=ended + self.part, said=said)
        self._line(name, runs)

    def _line(self, name: str, runs: Mapping[tuple[str, str], float]) -> None:
        done = sum(part == 1.0 for part in runs.values())
        task = self._lines.pop(name, None)
        if task is None:
            task = self._bars.add_task(name, total=len(runs), said="")
        self._bars.update(task, total=len(runs), completed=sum(runs.values()), said=f"{done} of {len(runs)} runs")
        if self._sweep and done == len(runs):
            self._bars.remove_task(task)
            return
        self._lines[name] = task
        if len(self._lines) > LINES:
            self._bars.remove_task(self._lines.pop(next(iter(self._lines))))


def _in_notebook() -> bool:
    """Whether bars can be drawn in a notebook, which takes ipywidgets."""
    return console(stderr=True).is_jupyter and importlib.util.find_spec("ipywidgets") is not None


@contextmanager
def _live() -> Generator[Bars]:
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),  # a name may contain [ and ]
        BarColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    with Progress(*columns, console=console(stderr=True)) as bars:
        yield bars
