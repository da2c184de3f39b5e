"""The store: the results folder that the runs of one experiment are written to.

Nothing half-written can be mistaken for a result: a run's folder is renamed into place when complete, and the manifest of the
results is completed last. A run's manifest seals its files and itself by SHA-256.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path

# Any: values of the manifest.
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError, ResultsError
from sim.base.naming import Raw
from sim.experiments.code import version
from sim.experiments.outcomes import Failure, Record, RunOutcome
from sim.experiments.plan import RunSpec
from sim.experiments.question import Question, asked
from sim.experiments.results import FORMAT, FORMAT_VERSION, RUNS, Manifest, Results, read_json, read_run
from sim.experiments.rows import Stream, forget_rows, row, rows_of, write_rows
from sim.experiments.seals import is_sealed, remove_stale, sealed
from sim.files.atomic import check_name, replacing
from sim.files.hashing import sha256
from sim.files.parquet import column, write_table
from sim.metrics import METRICS
from sim.scenario.experiment import Experiment
from sim.scenario.expressions import Value

if TYPE_CHECKING:
    from filelock import BaseFileLock

UNFINISHED = ".unfinished-"
LOCK = ".lock"
HEAD = 512
"""The number of leading bytes of a run's manifest that identify the run."""
_KEPT = ("title", "scenario", "variants", "sweep", "parameters", "files")


class Store:
    """A results folder open for writing, by one command at a time; opening it removes half-written files of killed processes.

    A pickled copy in another process writes only runs.
    """

    def __init__(self, folder: Path, question: Question | None = None) -> None:
        """Raises ResultsError where the folder contains other files or results of another question, or another command uses it."""
        check_name(folder, ResultsError)
        self.folder, self._is_new = folder, not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"{folder}: this folder cannot be created ({error.strerror})") from None
        with self._writing(), ExitStack() as undo:
            self._check_folder()
            self._lock = locked(folder)
            undo.callback(self._lock.release)
            (folder / "runs").mkdir(exist_ok=True)
            before = self._previous()
            if question is not None:
                question.check(folder, before)
            now = {**before, **(question.asked if question else {}), "complete": False}
            _write_json(folder / "manifest.json", {"format": FORMAT, "format_version": FORMAT_VERSION, **now})
            self.clear()
            undo.pop_all()

    def close(self) -> None:
        """Remove half-written files, and release the folder."""
        with self._writing():
            try:
                self.clear()
            finally:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close the store; if input is refused that only runs can check, a new folder is removed."""
        self.close()
        nothing = not any(any(self.folder.glob(f"{part}/*")) for part in ("runs", "failed"))
        if self._is_new and nothing and isinstance(error, InputError):
            shutil.rmtree(self.folder)

    def __getstate__(self) -> Raw:
        return {"folder": self.folder}

    def clear(self) -> None:
        """Remove half-written files; no process may be writing."""
        for unfinished in (self.folder / "runs").glob(f"{UNFINISHED}*"):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink()

    def shared(self, workload_hash: str) -> Path:
        """The file from which runs map a prepared workload; removed with half-written files."""
        return self.folder / "runs" / f"{UNFINISHED}workload-{workload_hash}"

    def finished(self, run: str) -> Manifest | None:
        """The manifest of a finished run, else None."""
        try:
            return read_run(self.folder, run)
        except ResultsError:
            return None

    def whole(self, run: str) -> bool:
        """Whether a folder has the intact manifest of this run: a quick check that reads no other file."""
        try:
            with open(f"{self.folder}/runs/{run}/manifest.json", "rb") as file:  # noqa: PTH123 - thrice as fast, of very many runs
                data = file.read()
        except OSError:
            return False
        return is_sealed(data) and f'"hash": "{run}"'.encode() in data[:HEAD]

    def sealed(self, run: str, results: Path | None = None) -> bool:
        """Whether a run, here or in other results, is intact byte for byte (except for its timing)."""
        results = results or self.folder
        try:
            files = read_run(results, run)["files"]
            return all(sha256(results / "runs" / run / name) == expected for name, expected in files.items())
        except (KeyError, OSError, ResultsError):
            return False

    def copied(self, run: str, others: Iterable[Path]) -> bool:
        """Copy a run from the first of other results that has it intact; False if none has."""
        other = next((folder for folder in others if self.sealed(run, folder)), None)
        if other is None:
            return False
        runs = self.folder / "runs"
        with self._writing(), _unfinished_folder(runs) as folder:
            shutil.copytree(other / "runs" / run, folder, dirs_exist_ok=True)
            folder.rename(runs / run)
        return True

    def discard(self, run: str) -> None:
        """Remove a damaged run, so that it is performed again."""
        with self._writing():
            unfinished = self.folder / "runs" / f"{UNFINISHED}{run}"
            (self.folder / "runs" / run).rename(unfinished)
            shutil.rmtree(unfinished)

    def forget_rows(self) -> None:
        """Forget all cached rows of runs."""
        with self._writing():
            forget_rows(self.folder)

    def write_run(self, spec: RunSpec, record: Record | Failure) -> RunOutcome:
        """Write one run's folder, unless it failed. Raises ResultsError where that is not possible."""
        if isinstance(record, Failure):
            return record
        runs = self.folder / "runs"
        metrics = {name: _number(record.metrics[name]) for name in sorted(record.metrics, key=list(METRICS).index)}
        with self._writing(), _unfinished_folder(runs) as folder:
            for name, columns in record.tables.items():
                path = folder / f"{name}.parquet"
                path.parent.mkdir(exist_ok=True)
                write_table(path, pa.table({key: column(values) for key, values in columns.items()}))
            manifest = {
                "format": f"{FORMAT}-run",
                "format_version": FORMAT_VERSION,
                "version": spec.version,
                "hash": spec.hash,
                "seed": spec.scenario.seed,
                "replication": spec.replication,
                "scenario": spec.scenario.identity(),
                "workload": dict(record.workload),
                "notes": list(record.notes),
                "metrics": metrics,
                "files": {f"{name}.parquet": sha256(folder / f"{name}.parquet") for name in sorted(record.tables)},
                "complete": True,
            }
            _write_json(folder / "timing.json", record.timing)
            _write(folder / "manifest.json", sealed(manifest)[1])
            try:
                folder.rename(runs / spec.hash)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                # a process that outlived its killed command has just written the same
            self._stream.add(row(spec.hash, metrics, record.notes, record.timing))
        return None

    def write_failure(self, spec: RunSpec, failure: Failure) -> None:
        """Record that a run failed, and why."""
        with self._writing():
            (self.folder / "failed").mkdir(exist_ok=True)
            _write_json(self.folder / "failed" / f"{spec.hash}.json", failure.record(spec))

    def forgive(self, run: str) -> None:
        """Remove the record of a failed run."""
        with self._writing():
            (self.folder / "failed" / f"{run}.json").unlink(missing_ok=True)

    def finish(
        self,
        experiment: Experiment,
        specs: Sequence[RunSpec],
        failed: Sequence[Raw],
        timing: Raw,
        notes: Sequence[str] = (),
        **more: Any,
    ) -> Results:
        """Write the tables of the existing runs and, last, the manifest.

        `notes` precede those of the runs, `more` are keys of the manifest that only some results have.
        """
        order = {variant: i for i, variant in enumerate(experiment.variants)}
        there = sorted(
            (spec for spec in specs if self.whole(spec.hash)),
            key=lambda spec: (spec.point, order[spec.variant], spec.replication),
        )
        keys = {
            "point": pa.array([spec.point for spec in there], pa.int64()),
            "variant": pa.array([spec.variant for spec in there], pa.string()),
            "replication": pa.array([spec.replication for spec in there], pa.int64()),
            "seed": pa.array([spec.scenario.seed for spec in there], pa.int64()),
        }
        for key in experiment.parameters:
            keys[key] = _parameter([experiment.points[spec.point].values[key] for spec in there])
        first = next((spec for spec in specs if self.whole(spec.hash)), None)
        with self._writing():
            rows = rows_of(self.folder, [spec.hash for spec in there], experiment.base.metrics.names)
            write_rows(self.folder, rows, keys)
            _write_json(self.folder / "timing.json", timing)
            manifest = {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "version": version(),
                **asked(experiment),
                "seed": experiment.base.seed,
                "replications": experiment.base.replications,
                "parameters": experiment.parameters,
                "points": [dict(point.values) for point in experiment.points],
                "precision": None,
                "warm_up": [],
                "report": experiment.report.model_dump(mode="json"),
                "workload": read_run(self.folder, first.hash)["workload"] if first else {},
                "notes": list(dict.fromkeys([*notes, *chain.from_iterable(rows["notes"].to_pylist())])),
                "runs": list(dict.fromkeys(spec.hash for spec in there)),
                "failed": sorted(
                    map(dict, failed), key=lambda one: (one["point"], order[one["variant"]], one["replication"])
                ),
                "files": {RUNS: sha256(self.folder / RUNS)},
                **more,
                "complete": True,
            }
            seal, data = sealed(manifest)
            remove_stale(self.folder, seal)
            _write(self.folder / "manifest.json", data)
        return Results(self.folder, {"seal": seal, **manifest})

    @cached_property
    def _stream(self) -> Stream:
        """The stream of rows of this process."""
        return Stream(self.folder)

    def _check_folder(self) -> None:
        manifest = read_json(self.folder / "manifest.json")
        others = [entry for entry in self.folder.iterdir() if not entry.name.startswith((UNFINISHED, LOCK))]
        if manifest is None:  # even if it is damaged, the runs may be intact
            known = (self.folder / LOCK).is_file() and (self.folder / "runs").is_dir()
        else:
            known = manifest.get("format") == FORMAT
        if others and not known:
            raise ResultsError(f"{self.folder}: contains something other than results; give an empty or new folder")

    def _previous(self) -> Manifest:
        """The parts of a manifest that are kept while runs are added: the question, and the hashes of the tables."""
        path = self.folder / "manifest.json"
        manifest = read_json(path) or {}
        if manifest.get("complete") is True and not is_sealed(path.read_bytes()):
            return {}
        return {key: manifest[key] for key in _KEPT if key in manifest}

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Turn a full disk or a missing permission into a ResultsError."""
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise ResultsError(f"{error.filename or self.folder}: cannot be written ({reason})") from None


def locked(folder: Path) -> BaseFileLock:
    """Lock a folder for writing. Raises ResultsError where another command holds the lock."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        other = "another command is writing there; wait until it has ended, or give another folder"
        raise ResultsError(f"{folder}: {other}") from None
    return lock


@contextmanager
def _unfinished_folder(runs: Path) -> Generator[Path]:
    """A temporary folder, removed afterwards unless it has been renamed."""
    folder = runs / Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=runs)).name  # the path is absolute from Python 3.12 on
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parameter(values: Sequence[Value]) -> pa.Array:
    """A column of a swept key: numbers where all values are, else text."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return pa.array(values, pa.int64() if all(isinstance(value, int) for value in values) else pa.float64())
    return pa.array([str(value) for value in values], pa.string())


def _number(value: float | int | None) -> float | int | None:
    """A number for JSON; undefined values are null."""
    if value is None or math.isnan(value):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def _write_json(path: Path, values: Raw) -> None:
    _write(path, (json.dumps(values, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f"{UNFINISHED}{path.name}")
    with replacing(path, unfinished):
        unfinished.write_bytes(data)
