"""Engines: the same runs one after another in this process, or side by side in a pool of processes, to the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import ModuleType
from typing import Any

from sim.errors import InputError, ScenarioError, WorkloadError
from sim.experiments.plan import RunSpec, plan
from sim.experiments.results import Manifest, Results, Store
from sim.scenario import Experiment, Scenario, WorkloadTable, load_scenario
from sim.simulation import prepare_workload, simulate
from sim.workloads.mapped import open_mapped, write_mapped
from sim.workloads.workload import Workload, load_workload

Progress = Callable[[RunSpec, float], None]
"""Told of a run and the fraction of it that is done; 1 when its result is there (or when it failed)."""

ALMOST = 0.999
"""The most that is told of a run whose result is not written yet."""
PAUSE = 0.2  # s, between two looks at the pool


@dataclass(frozen=True)
class Failure:
    """A run that raised: all others are done all the same."""

    reason: str
    traceback: str

    def record(self, spec: RunSpec) -> dict[str, Any]:
        """What the results keep of it; `spec` is one of those that came to this run."""
        place = {"point": spec.point, "label": spec.label}
        where = {**place, "variant": spec.variant, "replication": spec.replication, "run": spec.hash}
        return {**where, "reason": self.reason, "traceback": self.traceback}


Outcome = Manifest | Failure


def run(
    source: str | Path | Mapping[str, Any] | Experiment,
    out: str | Path | None = None,
    workload: str | Path | None = None,
    overrides: Sequence[str] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> Results:
    """Run a scenario (a file, a dict, or one loaded already) and write its results to `out` (default: results/NAME).

    Runs that `out` holds already are not run again. `workload` and `overrides` are those of `load_scenario`; `jobs` is the
    number of processes. Raises InputError where something supplied is wrong; a run that fails otherwise is recorded in
    the results (`Results.failed`) and does not stop the others.
    """
    if isinstance(source, Experiment):
        if workload is not None or overrides:
            raise ScenarioError("give workload and overrides to load_scenario, this scenario is loaded already")
        experiment = source
    else:
        experiment = load_scenario(source, overrides, workload)
    if jobs < 1:
        raise InputError(f"jobs: expected 1 or more (got {jobs})")
    bases = {folder: load_workload(folder) for folder in _folders(experiment)}
    specs = plan(experiment, {folder: base.hash for folder, base in bases.items()})
    store = Store(Path(out) if out is not None else default_folder(experiment))
    with _shared(bases, store), _clock() as timing, naming(experiment):
        outcomes = execute(specs, store, jobs, progress or (lambda _spec, _fraction: None))
    done = {key: outcome for key, outcome in outcomes.items() if not isinstance(outcome, Failure)}
    failed = [failure.record(spec) for spec in specs if isinstance(failure := outcomes[spec.hash], Failure)]
    return store.finish(experiment, specs, done, failed, timing)


def default_folder(experiment: Experiment) -> Path:
    """Where results go when nobody says where."""
    return Path("results") / (experiment.path.stem if experiment.path else "scenario")


def execute(specs: Sequence[RunSpec], store: Store, jobs: int, progress: Progress) -> dict[str, Outcome]:
    """Do all runs, each once even where two variants are the same; outcomes by the runs' hashes, in the order of `specs`."""
    outcomes: dict[str, Outcome] = {}
    names: dict[str, list[RunSpec]] = {}
    for spec in specs:
        names.setdefault(spec.hash, []).append(spec)

    def tell(run: str, fraction: float) -> None:
        for spec in names[run]:
            progress(spec, fraction)

    to_do = []
    for run, (spec, *_) in names.items():
        if finished := store.finished(run):
            outcomes[run] = finished
            tell(run, 1.0)
        else:
            to_do.append(spec)
    if min(jobs, len(to_do)) > 1:
        outcomes |= _in_pool(to_do, store, min(jobs, len(to_do)), tell)
    else:
        for spec in to_do:
            outcomes[spec.hash] = perform(spec, store, partial(tell, spec.hash))
            tell(spec.hash, 1.0)
    return {run: outcomes[run] for run in names}


def perform(spec: RunSpec, store: Store, progress: Callable[[float], None]) -> Outcome:
    """Do one run and write its folder. Raises InputError where what a person supplied is wrong; other errors are outcomes."""
    try:
        with _clock() as timing:
            scenario = spec.scenario
            base = store.shared(spec.workload_hash) if spec.workload_hash else None
            workload = _workload(base, scenario.workload, scenario.seed, spec.replication)
            record = simulate(scenario, workload, spec.replication, lambda part: progress(min(part, ALMOST)))
        about = summary(workload, spec.workload_hash)
        return store.write_run(spec, record.metrics, record.tables, record.notes, about, timing)
    except (ScenarioError, WorkloadError) as error:
        raise type(error)(f"variant {spec.variant}: {error}") from None
    except InputError:
        raise
    except MemoryError as error:
        return Failure(f"not enough memory ({error})", "")
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return Failure(reason, traceback.format_exc())


def summary(workload: Workload, hash: str) -> dict[str, Any]:
    """What results say about the workload of a run; `hash` is that of the folder it was made from, "" if generated."""
    return {
        "kind": workload.kind,
        "hash": hash,
        "origin": workload.origin,
        "horizon": workload.horizon,
        "period": workload.period,
        "cell": workload.cell,
        "counts": workload.counts,
        "sources": [dict(source) for source in workload.sources],
        "rows": dict(workload.rows) if workload.rows is not None else None,
        "generator": dict(workload.generator),
        "seed": workload.seed,
    }


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
        _base.cache_clear()
        _workload.cache_clear()
        store.clear()


@lru_cache(maxsize=2)
def _base(path: Path) -> Workload:
    return open_mapped(path)


@lru_cache(maxsize=1)
def _workload(base: Path | None, table: WorkloadTable, seed: int, replication: int) -> Workload:
    """The workload of one replication, made once for all variants that are run on it in a row."""
    prepared = _base(base) if base else None
    return prepare_workload(Scenario(seed=seed, workload=table), replication, prepared)


def _in_pool(
    specs: Sequence[RunSpec], store: Store, jobs: int, tell: Callable[[str, float], None]
) -> dict[str, Outcome]:
    context = multiprocessing.get_context("spawn")
    reports: SimpleQueue[tuple[str, float]] = context.SimpleQueue()
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (reports,))
    try:
        outcomes: dict[str, Outcome] = {}
        with _without_script():
            waiting: dict[Future[Outcome], RunSpec] = {
                pool.submit(_perform_in_worker, spec, store): spec for spec in specs
            }
        while waiting:
            finished, _ = wait(waiting, PAUSE, FIRST_COMPLETED)
            while not reports.empty():
                tell(*reports.get())
            for future in finished:
                spec = waiting.pop(future)
                try:
                    outcomes[spec.hash] = future.result()
                except BrokenProcessPool:
                    reason = "a process of the pool was killed (too little memory for this many jobs?)"
                    outcomes[spec.hash] = Failure(reason, "")
                tell(spec.hash, 1.0)
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return outcomes


@contextmanager
def _without_script() -> Generator[None]:
    """Processes that are started meanwhile don't run the calling script again, which may have no guard for it or no file."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


_reports: SimpleQueue[tuple[str, float]] | None = None  # of a worker: where it tells how far it is


def _start_worker(reports: SimpleQueue[tuple[str, float]]) -> None:
    global _reports
    _reports = reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _perform_in_worker(spec: RunSpec, store: Store) -> Outcome:
    told = time.monotonic()

    def tell(fraction: float) -> None:
        nonlocal told
        if _reports is not None and time.monotonic() - told >= PAUSE:
            told = time.monotonic()
            _reports.put((spec.hash, fraction))

    return perform(spec, store, tell)


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


@contextmanager
def _clock() -> Generator[dict[str, Any]]:
    """When something began and ended, how long it took, and where: filled in when it ends."""
    timing: dict[str, Any] = {"start": datetime.now(UTC).isoformat(timespec="milliseconds")}
    began = time.perf_counter()
    yield timing
    timing["end"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    timing["seconds"] = round(time.perf_counter() - began, 3)
    timing["host"] = platform.node()
