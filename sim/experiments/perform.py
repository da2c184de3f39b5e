"""Perform one run: simulation and writing are separate steps, so that different processes can do them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from sim.base.errors import InputError, ScenarioError, WorkloadError
from sim.base.memory import collecting_rarely
from sim.base.naming import Raw
from sim.experiments.outcomes import Failure, Record, RunOutcome, clock
from sim.experiments.plan import RunSpec
from sim.experiments.store import Store
from sim.scenario.model import Scenario, WorkloadTable
from sim.simulation import prepare_workload, simulate
from sim.workloads.format.mapped import open_mapped
from sim.workloads.format.workload import Workload

ALMOST = 0.999
"""The largest progress reported of a run whose result is not written yet."""

_KEYS = ("kind", "hash", "origin", "horizon", "period", "cell", "counts", "sources", "rows", "generator", "seed")
"""What a run says of its workload, in this order."""
_Tell = Callable[[float], None]


def perform(spec: RunSpec, store: Store, tell: _Tell) -> RunOutcome:
    """Perform one run and write its folder; `tell` is called with the share done. Raises ResultsError where it cannot be written."""
    base = store.shared(spec.workload_hash) if spec.workload_hash else None
    return store.write_run(spec, simulated(spec, base, tell))


def simulated(spec: RunSpec, base: Path | None, tell: _Tell) -> Record | Failure:
    """Perform one run without writing; `base` is the file of its prepared workload (`write_mapped`), None if it is generated."""
    try:
        with collecting_rarely(), clock() as timing:
            scenario = spec.scenario
            workload = _workload(base, scenario.workload, scenario.seed, spec.replication)
            found = simulate(scenario, workload, spec.replication, lambda part: tell(min(part, ALMOST)))
        return Record(found.metrics, found.tables, found.notes, _summary(workload, spec.workload_hash), timing)
    except (ScenarioError, WorkloadError) as error:
        named = type(error)(f"variant {spec.variant}: {error}")
        return Failure(str(error), "", named)
    except InputError as error:
        return Failure(str(error), "", error)
    except MemoryError as error:
        return Failure(f"not enough memory ({error})", "")
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


def _summary(workload: Workload, hash: str) -> Raw:
    """The workload's entry in a run's results; `hash` is that of the workload folder, "" if generated."""
    about = {**workload.about, "hash": hash}
    return {key: about[key] for key in _KEYS}


def forget() -> None:
    """Drop the cached workloads."""
    _base.cache_clear()
    _workload.cache_clear()


@lru_cache(maxsize=2)
def _base(path: Path) -> Workload:
    return open_mapped(path)


@lru_cache(maxsize=1)
def _workload(base: Path | None, table: WorkloadTable, seed: int, replication: int) -> Workload:
    """The workload of one replication, cached for the variants that run on it one after another."""
    prepared = _base(base) if base else None
    return prepare_workload(Scenario(seed=seed, workload=table), replication, prepared)
