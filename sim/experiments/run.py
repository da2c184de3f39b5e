"""Many runs: those of a scenario that are not there yet are done by an engine, and all of them make the results."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.errors import ScenarioError, WorkloadError
from sim.experiments import engines
from sim.experiments.engines import Engine
from sim.experiments.outcomes import Failure, Progress
from sim.experiments.perform import clock
from sim.experiments.plan import RunSpec, plan
from sim.experiments.results import Results
from sim.experiments.store import Store
from sim.scenario import Experiment, Scenario, load_scenario
from sim.workloads.mapped import write_mapped
from sim.workloads.workload import Workload, load_workload


def run(
    source: str | Path | Mapping[str, Any] | Experiment,
    out: str | Path | None = None,
    workload: str | Path | None = None,
    overrides: Sequence[str] = (),
    jobs: int = 1,
    progress: Progress | None = None,
    engine: str = "auto",
    master: str | None = None,
) -> Results:
    """Run a scenario (a file, a dict, or one loaded already) and write its results to `out` (default: results/NAME).

    Runs that `out` holds already are not run again. `workload` and `overrides` are those of `load_scenario`. The runs are done by an
    engine: "in-process", "pool" of `jobs` processes, "spark" on the cluster at `master`, or "auto", one of the first two. Raises
    InputError where something supplied is wrong; a run that fails otherwise is recorded in the results (`Results.failed`) and does
    not stop the others.
    """
    if isinstance(source, Experiment):
        if workload is not None or overrides:
            raise ScenarioError("give workload and overrides to load_scenario, this scenario is loaded already")
        experiment = source
    else:
        experiment = load_scenario(source, overrides, workload)
    bases = {folder: load_workload(folder) for folder in _folders(experiment)}
    specs = plan(experiment, {folder: base.hash for folder, base in bases.items()})
    store = Store(Path(out) if out is not None else default_folder(experiment))
    chosen = engines.engine(engine, jobs, store, master)
    with _shared(bases, store), clock() as timing, naming(experiment), chosen:
        failures = _perform(specs, store, chosen, progress or (lambda _spec, _fraction: None), experiment)
    failed = [failures[spec.hash].record(spec) for spec in specs if spec.hash in failures]
    return store.finish(experiment, specs, failed, timing)


def default_folder(experiment: Experiment) -> Path:
    """Where results go when nobody says where."""
    return Path("results") / (experiment.path.stem if experiment.path else "scenario")


def _perform(
    specs: Sequence[RunSpec], store: Store, engine: Engine, progress: Progress, experiment: Experiment
) -> dict[str, Failure]:
    """Do all runs that are not there, each once even where two variants are the same; those that failed, by their hashes."""
    names: dict[str, list[RunSpec]] = {}
    for spec in specs:
        names.setdefault(spec.hash, []).append(spec)

    def tell(spec: RunSpec, fraction: float) -> None:
        for each in names[spec.hash]:
            progress(each, fraction)

    failures = {}
    to_do = []
    for run, (spec, *_) in names.items():
        if store.finished(run):
            tell(spec, 1.0)
        else:
            to_do.append(spec)
    for spec, outcome in engine.perform(to_do, tell):
        if isinstance(outcome, Failure):
            if outcome.error is not None and len(experiment.points) == 1:
                raise outcome.error
            failures[spec.hash] = outcome
        tell(spec, 1.0)
    return failures


@contextmanager
def _shared(bases: dict[Path, Workload], store: Store) -> Generator[None]:
    """Moves the prepared workloads, read and checked here once, to where all runs map them from: no process has its own."""
    try:
        while bases:
            _, workload = bases.popitem()
            write_mapped(workload, store.shared(workload.hash))
            del workload
        yield
    finally:
        store.clear()


def _folders(experiment: Experiment) -> list[Path]:
    """The prepared workloads that the variants name. Raises ScenarioError where one names none."""
    folders = (
        prepared_folder(experiment, scenario) for point in experiment.points for scenario in point.variants.values()
    )
    return list(dict.fromkeys(folder for folder in folders if folder is not None))


def prepared_folder(experiment: Experiment, scenario: Scenario) -> Path | None:
    """The prepared workload that a variant names; None where it is generated. Raises ScenarioError where it names none."""
    if scenario.workload.kind != "prepared":
        return None
    if scenario.workload.path is None:
        where = experiment.path or "scenario"
        raise ScenarioError(f"{where}: workload.path: missing; name a workload folder there or by --workload")
    return scenario.workload.path


@contextmanager
def naming(experiment: Experiment) -> Generator[None]:
    """What does not fit in a run is told with the scenario's file."""
    try:
        yield
    except (ScenarioError, WorkloadError) as error:
        raise type(error)(f"{experiment.path or 'scenario'}: {error}") from None
