"""The store: where the runs of one experiment are written to.

Whatever is half-written bears a name or a manifest that nobody takes for a result: a run's folder is renamed into place when it
is whole, and the manifest of all is complete only at the end.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.errors import ResultsError
from sim.experiments.outcomes import Finished, Record
from sim.experiments.plan import RunSpec, version
from sim.experiments.results import FORMAT, FORMAT_VERSION, Manifest, Results, read_json
from sim.metrics import METRICS
from sim.scenario import Experiment, Value
from sim.workloads.tables import arrow, write_table

UNFINISHED = ".unfinished-"


class Store:
    """Where the runs of one experiment are written to. Opening it clears what a killed process left half-written."""

    def __init__(self, folder: Path) -> None:
        """Raises ResultsError where the folder is used for something else."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"{folder}: cannot be made a folder ({error.strerror})") from None
        try:
            manifest = read_json(folder / "manifest.json")
            others = [entry for entry in folder.iterdir() if not entry.name.startswith(UNFINISHED)]
            if others and (manifest is None or manifest.get("format") != FORMAT):
                raise ResultsError(f"{folder}: holds something else than results; give an empty or new folder")
            self._write_manifest({"complete": False})
            (folder / "runs").mkdir(exist_ok=True)
            self.clear()
        except OSError as error:
            raise ResultsError(f"{error.filename}: cannot be written ({error.strerror})") from None

    def clear(self) -> None:
        """Throw away what is half-written; no process may be writing."""
        for unfinished in (self.folder / "runs").glob(f"{UNFINISHED}*"):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink()

    def shared(self, workload_hash: str) -> Path:
        """The file in which the runs find a prepared workload while they go on; cleared with what is half-written."""
        return self.folder / "runs" / f"{UNFINISHED}workload-{workload_hash}"

    def finished(self, run: str) -> Manifest | None:
        """The manifest of a run that was finished, else None."""
        manifest = read_json(self.folder / "runs" / run / "manifest.json")
        return manifest if manifest and manifest.get("complete") is True and manifest.get("hash") == run else None

    def write_run(self, spec: RunSpec, record: Record) -> Finished:
        """Write one run's folder."""
        metrics = {name: _number(record.metrics[name]) for name in sorted(record.metrics, key=list(METRICS).index)}
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
            "complete": True,
        }
        runs = self.folder / "runs"
        folder = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=runs))
        folder.chmod(0o755)
        for name, columns in record.tables.items():
            path = folder / f"{name}.parquet"
            path.parent.mkdir(exist_ok=True)
            write_table(path, pa.table({column: _arrow(values) for column, values in columns.items()}))
        _write_json(folder / "timing.json", record.timing)
        _write_json(folder / "manifest.json", manifest)
        if (runs / spec.hash).exists():  # damaged, or finished by another process just now
            shutil.rmtree(runs / spec.hash)
        os.rename(folder, runs / spec.hash)
        return Finished(spec.hash, record.timing["seconds"], metrics)

    def finish(
        self,
        experiment: Experiment,
        specs: Sequence[RunSpec],
        failed: Sequence[Mapping[str, Any]],
        timing: Mapping[str, Any],
    ) -> Results:
        """Write the table of all runs and, last, the manifest."""
        done = {run: manifest for run in {spec.hash for spec in specs} if (manifest := self.finished(run))}
        order = {variant: i for i, variant in enumerate(experiment.variants)}
        rows = sorted(
            (s for s in specs if s.hash in done), key=lambda spec: (spec.point, order[spec.variant], spec.replication)
        )
        table = {
            "run": pa.array([spec.hash for spec in rows], pa.string()),
            "point": pa.array([spec.point for spec in rows], pa.int64()),
            "variant": pa.array([spec.variant for spec in rows], pa.string()),
            "replication": pa.array([spec.replication for spec in rows], pa.int64()),
            "seed": pa.array([spec.scenario.seed for spec in rows], pa.int64()),
        }
        for key in experiment.parameters:
            table[key] = _parameter([experiment.points[spec.point].values[key] for spec in rows])
        for name, metric in METRICS.items():
            values = [done[spec.hash]["metrics"].get(name) for spec in rows]
            table[name] = pa.array(values, pa.int64() if metric.integer else pa.float64())
        unfinished = self.folder / f"{UNFINISHED}runs.parquet"
        write_table(unfinished, pa.table(table))
        os.replace(unfinished, self.folder / "runs.parquet")
        _write_json(self.folder / "timing.json", timing)
        report = experiment.report.model_dump(mode="json")
        manifest = self._write_manifest(
            {
                "version": version(),
                "title": experiment.title,
                "seed": experiment.base.seed,
                "replications": experiment.base.replications,
                "scenario": experiment.base.model_dump(mode="json"),
                "variants": {name: scenario.model_dump(mode="json") for name, scenario in experiment.variants.items()},
                "parameters": experiment.parameters,
                "points": [dict(point.values) for point in experiment.points],
                "report": report,
                "workload": next((done[spec.hash]["workload"] for spec in specs if spec.hash in done), {}),
                "notes": list(dict.fromkeys(note for spec in rows for note in done[spec.hash]["notes"])),
                "runs": list(dict.fromkeys(spec.hash for spec in rows)),
                "failed": [dict(failure) for failure in failed],
                "complete": True,
            }
        )
        return Results(self.folder, manifest)

    def _write_manifest(self, values: Manifest) -> Manifest:
        manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **values}
        _write_json(self.folder / "manifest.json", manifest)
        return manifest


def _parameter(values: Sequence[Value]) -> pa.Array:
    """A column of a swept key: numbers where all values are, else text."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return pa.array(values, pa.int64() if all(isinstance(value, int) for value in values) else pa.float64())
    return pa.array([str(value) for value in values], pa.string())


def _number(value: float | int | None) -> float | int | None:
    """A number for JSON: what is undefined is null."""
    if value is None or math.isnan(value):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def _arrow(values: Any) -> pa.Array:
    """A column; NaN and None become null, a column of nothing else holds float64."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return arrow(values)
    column = pa.array(values)
    return column.cast(pa.float64()) if column.type == pa.null() else column


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    unfinished = path.with_name(f"{UNFINISHED}{path.name}")
    unfinished.write_text(json.dumps(values, indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
