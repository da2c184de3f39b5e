"""Searches: one variant of a scenario, run at requested points, in one results folder that stays open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError, ResultsError, ScenarioError, unknown
from sim.base.naming import Keys, Raw, RawValue
from sim.experiments import engines
from sim.experiments.options import DEFAULT_OPTIONS, RunOptions
from sim.experiments.plan import RunSpec, plan
from sim.experiments.question import Question, default_folder
from sim.experiments.results import Results
from sim.experiments.run import Work, check_all, prepared_folders
from sim.experiments.statistics import Interval, mean_interval
from sim.experiments.store import Store
from sim.files import toml
from sim.scenario.experiment import Experiment, Point
from sim.scenario.expressions import KEEPS_UP, Limit, Value
from sim.scenario.keys import is_integer, unit_at
from sim.scenario.model import SHARED, Scenario
from sim.scenario.reader import load_scenario
from sim.workloads.format.folder import load_workload
from sim.workloads.format.manifest import read_manifest
from sim.workloads.format.mapped import open_mapped, write_mapped
from sim.workloads.format.workload import Workload

FEW = 3
"""The fewest replications before a decision: two hardly determine the standard deviation."""

Values = Raw
"""The value of each varied key, as written in a scenario file."""
LimitVerdict = Literal["met", "missed", "undecided"]
SATURATED = "delays and deliveries there cover only what was delivered, and no limit on them is met"


@dataclass(frozen=True)
class Measured:
    """The metrics of the first replications of a point, None where undefined.

    `failure` is the reason if one of them failed, in which case the metrics are meaningless.
    """

    metrics: Sequence[Mapping[str, float | int | None]]
    failure: str | None = None

    def values(self, name: str) -> NDArray[np.float64]:
        """A metric, one number per replication (in the metric's unit), NaN where it is undefined."""
        return np.array([one.get(name) for one in self.metrics], dtype=np.float64)

    @property
    def keeps_up(self) -> bool:
        """Whether no broker is saturated in most of the replications, as far as known."""
        found = mean_interval(self.values(KEEPS_UP.metric))
        return not found.n or KEEPS_UP.holds(found.mean)


Measure = Callable[[Values, int], Measured]
"""Function that measures a point in the given number of replications; existing ones are not repeated."""


class Bench:
    """One variant of a scenario (None: the first), ready to be run at any point while the context lasts.

    The results folder `out` (None: the default one of `command`) and the engine are opened once. `overrides` and `workload` are
    those of `load_scenario`. Raises InputError where one of them is wrong, the scenario lacks what a search needs, or the folder
    has results of another question.
    """

    def __init__(
        self,
        scenario: Path | Raw,
        out: Path | None,
        overrides: Sequence[str] = (),
        workload: Path | None = None,
        variant: str | None = None,
        options: RunOptions = DEFAULT_OPTIONS,
        command: str = "search",
    ) -> None:
        self._scenario, self._overrides, self._workload = scenario, overrides, workload
        self.experiment = load_scenario(scenario, overrides, workload)
        self._name = self.experiment.path or "scenario"
        first = next(iter(self.experiment.variants))
        self.variant = variant if variant is not None else first
        self._refuse()
        self._bases: dict[Path, Workload] = {}  # the prepared workloads in the store
        self._hashes: dict[Path, str] = {}
        self._metrics: dict[str, Mapping[str, float | int | None]] = {}  # hashes of finished runs
        asked = replace(
            self.experiment, points=[replace(self.experiment.points[0], variants={self.variant: self.subject})]
        )
        if out is None:
            laid_over = self.experiment.overridden or self.variant != first
            out = default_folder(replace(asked, overridden=laid_over), command)
        with ExitStack() as opened:
            hashes = {folder: read_manifest(folder)[1] for folder in prepared_folders(asked)}
            self.store = opened.enter_context(Store(out, Question(asked, hashes, search=True)))
            self._work = Work(self.store, options, sweep=True)
            self._engine = opened.enter_context(engines.engine(options, self.store))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    @property
    def subject(self) -> Scenario:
        """The variant as defined in the scenario."""
        return self.experiment.variants[self.variant]

    @property
    def identity(self) -> list[str]:
        """The hashes of the variant's unmodified runs, which cover everything that identifies runs."""
        return [spec.hash for spec in self._plan([self.point({})], self.subject.replications)]

    def check(self, vary: Mapping[str, Iterable[RawValue]]) -> None:
        """Raise InputError where the variant itself cannot be run, or a key cannot vary or take one of these values."""
        self._plan([self.point({})], 1)
        for key, values in vary.items():
            if key.partition(".")[0] in SHARED:
                raise InputError(f"{key}: cannot vary (allowed: keys of the network, the workload and the policies)")
            for value in values:
                try:
                    self.point({key: value})
                except ScenarioError as error:
                    wrong = str(error).removeprefix(f"--set {self.path(key)}={toml.text(value)}: ")
                    raise InputError(f"{key} cannot be {toml.text(value)}: {wrong}") from None

    def is_integer(self, key: str) -> bool:
        """Whether a key of the variant takes only integers; also True if unknown."""
        return is_integer(Scenario, _path(key), self.subject) is not False

    def unit_of(self, key: str) -> str:
        """The unit of a key of the variant; "" where it has none."""
        return unit_at(Scenario, _path(key), self.subject)

    def path(self, key: str) -> str:
        """The path of one of the variant's keys in the scenario, as `--set` takes it."""
        if self.subject is self.experiment.base:  # also where the variant does not set the key itself
            return key
        return f"variant.{_quoted(self.variant)}.{key}"

    def point(self, values: Values) -> Point:
        """The variant with these values. Raises InputError where that is not a valid scenario."""
        texts = [f"{self.path(key)}={toml.text(value)}" for key, value in values.items()]
        found = load_scenario(self._scenario, [*self._overrides, *texts], self._workload)
        variant = found.variants[self.variant]
        resolved = {self.path(key): _resolved(variant, key, value) for key, value in values.items()}
        return Point(resolved, found.base, {self.variant: variant})

    def measure(self, values: Values, replications: int) -> Measured:
        """Measure a point in the given number of replications; existing runs are not repeated."""
        try:
            specs = self._plan([self.point(values)], replications)
        except InputError as error:
            return Measured((), str(error))
        self._work.round(specs, self._engine)
        if failed := [self._work.index.failed[spec.hash] for spec in specs if spec.hash in self._work.index.failed]:
            return Measured((), failed[0].reason)
        return Measured([self._metrics_of(spec.hash) for spec in specs])

    def finish(self, points: Sequence[Values], replications: int, metrics: Sequence[str], timing: Raw) -> Results:
        """Write the results: all existing runs of these points. Reports show `metrics` first."""
        experiment = self._at([self.point(values) for values in points], replications)
        first = dict.fromkeys([*metrics, *experiment.report.metrics])
        report = experiment.report.model_copy(update={"baseline": self.variant, "metrics": tuple(first)})
        specs = plan(experiment, self._hashes)
        failures = self._work.index.failed
        failed = [failures[spec.hash].record(spec) for spec in specs if spec.hash in failures]
        further = self._work.further(specs)
        return self.store.finish(replace(experiment, report=report), specs, failed, timing, further=further)

    def _metrics_of(self, run: str) -> Mapping[str, float | int | None]:
        if run not in self._metrics:
            manifest = self.store.finished(run)
            if manifest is None:
                raise ResultsError(f"{self.store.folder / 'runs' / run}: damaged; remove it to repeat the run")
            self._metrics[run] = manifest["metrics"]
        return self._metrics[run]

    def _plan(self, points: Sequence[Point], replications: int) -> list[RunSpec]:
        """The runs of points; their prepared workloads are written to the store."""
        experiment = self._at(points, replications)
        for folder in prepared_folders(experiment):
            if folder not in self._bases:
                workload = load_workload(folder)
                write_mapped(workload, shared := self.store.shared(workload.hash))
                self._hashes[folder], self._bases[folder] = workload.hash, open_mapped(shared)
        check_all(experiment, self._bases)
        return plan(experiment, self._hashes)

    def _at(self, points: Sequence[Point], replications: int) -> Experiment:
        """The experiment with these points."""
        more = {"replications": replications}
        return replace(
            self.experiment,
            points=[replace(point, base=point.base.model_copy(update=more)) for point in points],
            precision=None,
        )

    def _refuse(self) -> None:
        """Raise InputError where the scenario has a key that a search sets itself, or no such variant."""
        if self.variant not in self.experiment.variants:
            raise InputError(f"--variant: {unknown('variant', self.variant, self.experiment.variants)}")
        if self.experiment.sweep:
            raise InputError(f"{self._name}: sweep: a search chooses points itself; remove this table")
        if self.experiment.detects_warm_up:
            raise InputError(f"{self._name}: warm_up: a search needs a fixed warm-up, such as --set warm_up=1d")


def _path(key: str) -> Keys:
    """The keys of a dotted path. Raises InputError where it is not a path."""
    try:
        return toml.split(key)
    except ValueError:
        raise InputError(f"{key!r}: expected the path of a key, such as network.brokers") from None


def _quoted(name: str) -> str:
    """A name quoted as part of a key path."""
    try:
        return name if toml.split(name) == (name,) else json.dumps(name, ensure_ascii=False)
    except ValueError:
        return json.dumps(name, ensure_ascii=False)


def value_at(scenario: Scenario, key: str) -> RawValue:
    """The value of a scenario at a key path, durations in seconds; None where there is none."""
    return toml.at(scenario.model_dump(mode="json"), toml.split(key))


def _resolved(scenario: Scenario, key: str, said: RawValue) -> Value:
    """A value as stored in tables: a number or text."""
    found = value_at(scenario, key)
    return found if isinstance(found, (int, float, str)) else toml.text(said)


def looks(replications: int) -> Iterator[int]:
    """The numbers of replications after which to check whether they suffice: a few, doubled each time, up to the maximum."""
    n = FEW
    while n < replications:
        yield n
        n *= 2
    yield replications


def verdict(limit: Limit, interval: Interval) -> LimitVerdict:
    """Whether the whole confidence interval meets the limit, or none of it; without variance, whether the mean does."""
    ends = set(map(limit.holds, interval.ends))
    return "undecided" if len(ends) > 1 else "met" if ends == {True} else "missed"
