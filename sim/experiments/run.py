"""Run a scenario: an engine performs the missing runs, and all runs together make the results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sim import plugins
from sim.base.errors import BrokersimError, InputError, ScenarioError, WorkloadError
from sim.base.naming import Raw
from sim.experiments import engines
from sim.experiments.index import Index
from sim.experiments.options import RunOptions
from sim.experiments.outcomes import Failure, Progress, clock
from sim.experiments.plan import RunSpec, plugins_of
from sim.experiments.question import Question
from sim.experiments.results import Results
from sim.experiments.rounds import Conclusion, rounds
from sim.experiments.store import Store
from sim.scenario.experiment import Experiment
from sim.scenario.model import Scenario
from sim.scenario.reading import Reading
from sim.simulation import check_fit
from sim.workloads.format.folder import load_workload
from sim.workloads.format.mapped import write_mapped
from sim.workloads.format.traits import traits_of
from sim.workloads.format.workload import Workload

OnFailure = Callable[[Raw], None]
"""Called with a failed run, as in `Results.failed`."""


class RunFailed(BrokersimError):
    """Raised when a run failed under `fail_fast`.

    Examples:
        >>> issubclass(sim.RunFailed, sim.InputError)  # what was typed may be right
        False
    """


def run_experiment(
    experiment: Experiment,
    out: Path,
    options: RunOptions,
    progress: Progress | None = None,
    on_failure: OnFailure | None = None,
    others: Sequence[Path] = (),
) -> Results:
    """Perform those runs of an experiment that are not in the folder `out`, and write its results there.

    Runs that failed there are not repeated either unless `retry_failed`; with `verify` all files of all runs are checked first, and
    damaged runs are repeated. Runs that the results in the folders `others` have are copied from there. `progress` is called with the
    progress of runs: 0 when planned, 1 when finished.

    Raises InputError for invalid input. A run that fails otherwise, or for any reason in a sweep, is recorded (`Results.failed`)
    and reported to `on_failure` at once, and does not stop the others; with `fail_fast`, RunFailed is raised instead.
    """
    if not _several(experiment):
        options = replace(options, jobs=1)
    if options.chosen != "in-process":
        _check_that_others_know(experiment)
    bases = load_fitting(experiment)
    hashes = {folder: base.hash for folder, base in bases.items()}
    with Store(out, Question(experiment, hashes)) as store:
        work = Work(store, options, len(experiment.points) > 1, others)
        engine = engines.engine(options, store)
        with _shared(bases, store), clock() as timing, naming(experiment), engine:
            ended = work.do(rounds(experiment, hashes, work.index), engine, progress, on_failure)
        more = {**_found(ended), "further": work.further(ended.specs)}
        return store.finish(ended.experiment, ended.specs, work.failed, timing, ended.notes, **more).loaded()


def _check_that_others_know(experiment: Experiment) -> None:
    """Raise InputError where other processes than this one do not know a plug-in."""
    for scenario in experiment.scenarios:
        for name, kind in plugins_of(scenario):
            if plugins.is_registered(kind):
                raise InputError(
                    f"{name} is registered in this process, and no other knows it (allowed: jobs=1, no cluster)"
                )


@dataclass
class Work:
    """Performs rounds of runs, each run once even if two variants are the same, and skips existing runs.

    `index` has the existing runs; in a `sweep`, any exception of a run is a failure. `others` are folders of results that may have
    the same runs.
    """

    store: Store
    options: RunOptions
    sweep: bool
    others: Sequence[Path] = ()
    failed: list[Raw] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index = Index(self.store.folder)
        self._recorded = set(self.index.failed)
        self._looked_at: set[str] = set()
        if self.options.retry_failed:
            self.index.failed.clear()
        if self.options.verify:
            self.store.forget_rows()

    def do(
        self,
        rounds: Generator[list[RunSpec], None, Conclusion],
        engine: engines.RunEngine,
        progress: Progress | None,
        on_failure: OnFailure | None,
    ) -> Conclusion:
        """Perform all rounds."""
        while True:
            try:
                specs = next(rounds)
            except StopIteration as end:
                conclusion: Conclusion = end.value
                return conclusion
            self.round(specs, engine, progress or (lambda _spec, _fraction: None), on_failure or (lambda _record: None))

    def round(
        self,
        specs: Sequence[RunSpec],
        engine: engines.RunEngine,
        progress: Progress = lambda _spec, _fraction: None,
        on_failure: OnFailure = lambda _record: None,
    ) -> None:
        """Perform these runs."""
        names: dict[str, list[RunSpec]] = {}
        for spec in specs:
            names.setdefault(spec.hash, []).append(spec)

        def tell(spec: RunSpec, fraction: float) -> None:
            for each in names[spec.hash]:
                progress(each, fraction)

        def fail(spec: RunSpec, failure: Failure) -> None:
            records = [failure.record(each) for each in names[spec.hash]]
            self.failed.extend(records)
            on_failure(records[0])

        firsts = {run: same[0] for run, same in names.items()}
        there = {run for run in firsts if self._is_there(run)}
        to_do = [spec for run, spec in firsts.items() if run not in there and run not in self.index.failed]
        for spec in to_do:
            tell(spec, 0.0)
        for run, spec in firsts.items():
            if run not in there and run in self.index.failed and run not in self._looked_at:
                fail(spec, self.index.failed[run])
            if run in there or run in self.index.failed:
                tell(spec, 1.0)
        self._looked_at |= names.keys()
        for spec, outcome in engine.perform(to_do, tell):
            if isinstance(outcome, Failure):
                if outcome.error is not None and not self.sweep:
                    raise outcome.error
                self.store.write_failure(spec, outcome)
                self.index.failed[spec.hash] = outcome
                fail(spec, outcome)
                if self.options.fail_fast:
                    raise RunFailed(f"{spec} failed: {outcome.reason}")
            else:
                self.index.done.add(spec.hash)
                if spec.hash in self._recorded:
                    self.store.forgive(spec.hash)
            tell(spec, 1.0)

    def further(self, specs: Iterable[RunSpec]) -> list[str]:
        """Existing runs that led to the results but are not part of them: pilots and pruned trials."""
        return sorted((self._looked_at & self.index.done) - {spec.hash for spec in specs})

    def _is_there(self, run: str) -> bool:
        """Whether a run's result exists, here or in other results, and is intact; a damaged one is removed."""
        if run not in self.index.done:
            if self.store.copied(run, self.others):
                self.index.done.add(run)
            return run in self.index.done
        if run in self._looked_at or (self.store.sealed(run) if self.options.verify else self.store.whole(run)):
            return True
        self.store.discard(run)
        self.index.done.remove(run)
        return False


def _several(experiment: Experiment) -> bool:
    """Whether there are, or may be, several runs."""
    if experiment.precision is not None or experiment.detects_warm_up:
        return True
    return experiment.base.replications * len(list(experiment.scenarios)) > 1


def _found(ended: Conclusion) -> Raw:
    """A conclusion as recorded in the results' manifest."""
    precision = ended.experiment.precision
    more: Raw = {"warm_up": [asdict(one) for one in ended.warm_up]}
    if precision is not None:
        more["precision"] = {**precision.model_dump(), "points": [asdict(one) for one in ended.precision]}
        more["replications"] = max(one.replications for one in ended.precision)
    return more


@contextmanager
def _shared(bases: dict[Path, Workload], store: Store) -> Generator[None]:
    """Write the prepared workloads, read and checked once, to files that all processes memory-map and share."""
    try:
        while bases:
            _, workload = bases.popitem()
            write_mapped(workload, store.shared(workload.hash))
            del workload
        yield
    finally:
        store.clear()


def load_fitting(experiment: Experiment) -> dict[Path, Workload]:
    """The prepared workloads of the variants by folder. Raises InputError where one is missing, or a scenario does not fit its own.

    Scenarios that generate their workload have been checked when they were read.
    """
    bases = {folder: load_workload(folder) for folder in prepared_folders(experiment)}
    check_all(experiment, bases)
    return bases


def check_all(experiment: Experiment, bases: Mapping[Path, Workload]) -> None:
    """Raise ScenarioError where a scenario does not fit its prepared workload, which is given by folder."""
    traits, once = {folder: traits_of(base) for folder, base in bases.items()}, Reading().once
    with naming(experiment):
        for point in experiment.points:
            for variant, scenario in point.variants.items():
                if (folder := scenario.workload.path) is not None:
                    try:
                        check_fit(scenario, bases[folder].horizon, traits[folder], once)
                    except ScenarioError as error:
                        at = f"{point.label}, " if point.label else ""
                        raise ScenarioError(f"{at}variant {variant}: {error}") from None


def prepared_folders(experiment: Experiment) -> list[Path]:
    """The prepared workloads of the variants. Raises ScenarioError where one is missing."""
    folders = dict.fromkeys(prepared_folder(experiment, scenario) for scenario in experiment.scenarios)
    return [folder for folder in folders if folder is not None]


def prepared_folder(experiment: Experiment, scenario: Scenario) -> Path | None:
    """The prepared workload of a variant; None where it is generated. Raises ScenarioError where it is missing."""
    if scenario.workload.kind != "prepared":
        return None
    if scenario.workload.path is None:
        where = experiment.path or "scenario"
        raise ScenarioError(f"{where}: workload.path: missing; name a workload folder there or with --workload")
    return scenario.workload.path


@contextmanager
def naming(experiment: Experiment) -> Generator[None]:
    """Prefix errors of a run's set-up with the scenario's file."""
    try:
        yield
    except (ScenarioError, WorkloadError) as error:
        raise type(error)(f"{experiment.path or 'scenario'}: {error}") from None
