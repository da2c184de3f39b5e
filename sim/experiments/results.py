"""Results on disk: a folder that pandas, Polars or DuckDB can read without brokersim."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from sim.base.errors import ResultsError
from sim.base.naming import JSON_TYPES, Raw
from sim.experiments.seals import is_sealed
from sim.files.hashing import sha256
from sim.files.parquet import read_frame
from sim.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "brokersim-results"
FORMAT_VERSION = 2
RUNS = "runs.parquet"

AGAIN = "`brokersim run --verify` finds and repeats such runs"
CHANGED = "changed since it was written"

Manifest = Raw
_KEYS = {
    "title": str,
    "seed": int,
    "replications": int,
    "scenario": dict,
    "variants": dict,
    "parameters": list,
    "points": list,
    "sweep": dict,
    "report": dict,
    "workload": dict,
    "notes": list,
    "runs": list,
    "failed": list,
}


@dataclass(frozen=True)
class Results:
    """A finished experiment on disk."""

    folder: Path
    manifest: Manifest = field(repr=False)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: run, point, variant, replication, seed, the swept keys, and each scalar metric (units: `sim.metrics`).

        Raises ResultsError where the table does not match the manifest's hash.
        """
        path = self.folder / RUNS
        table = _read(path)
        wanted = self.manifest.get("files", {}).get(RUNS)
        if wanted not in (None, found := sha256(path)):
            now = (read_json(self.folder / "manifest.json") or {}).get("files", {}).get(RUNS)
            if found == now:
                raise ResultsError(f"{path}: rewritten since these results were loaded; load them again")
            raise ResultsError(f"{path}: {CHANGED}; the same `brokersim run` rewrites it")
        return table

    @cached_property
    def points(self) -> pd.DataFrame:
        """The sweep's points: a column for each swept key, indexed by the point's number; without one, a point without columns."""
        import pandas as pd

        points = self.manifest["points"]
        index = pd.RangeIndex(len(points), name="point")
        return pd.DataFrame(points, index=index, columns=self.manifest["parameters"])

    def at(self, point: int) -> Results:
        """The results of one point alone, as if only it had been run."""
        precision, warm_up = self.manifest.get("precision"), self.manifest.get("warm_up")
        own = dict(self.manifest)
        if precision:
            own["replications"] = precision["points"][point]["replications"]
        if warm_up:
            seconds = {"warm_up": warm_up[point]["seconds"]}
            own["scenario"] = own["scenario"] | seconds
            own["variants"] = {name: scenario | seconds for name, scenario in own["variants"].items()}
        one = replace(self, manifest=own)
        one.__dict__["runs"] = self.runs[self.runs["point"] == point].reset_index(drop=True)
        return one

    def table(self, run: str, name: str) -> pd.DataFrame:
        """A table of one run, such as "timeseries", "brokers" or "decisions/selection".

        Raises ResultsError if it is missing, or has changed since it was written.
        """
        path = self.folder / "runs" / run / f"{name}.parquet"
        table = _read(path)
        if read_run(self.folder, run)["files"].get(f"{name}.parquet") != sha256(path):
            raise ResultsError(f"{path}: {CHANGED}; {AGAIN}")
        return table

    def has_table(self, run: str, name: str) -> bool:
        """Whether a run has a table; runs of earlier versions may lack some."""
        return f"{name}.parquet" in read_run(self.folder, run)["files"]

    def loaded(self) -> Self:
        """The same results with all runs read into memory, unaffected by later writes to the folder."""
        _ = self.runs
        return self

    @property
    def notes(self) -> list[str]:
        """Notes for the user on the simulated networks, and on what cannot be shown, as distinct sentences."""
        gone = [name for name in self.manifest["scenario"].get("metrics", {}) if name not in METRICS]
        missing = [f"{name}: the plug-in of this metric is not installed; its values are in {RUNS}" for name in gone]
        return [*self.manifest["notes"], *missing]

    @property
    def failed(self) -> list[Raw]:
        """The runs that failed: variant, replication, reason and traceback."""
        return list(self.manifest["failed"])


def load_results(folder: str | Path) -> Results:
    """Load the results in a folder. Raises ResultsError where there are none or they are unfinished."""
    folder = Path(folder)
    manifest = read_json(folder / "manifest.json")
    if manifest is None or manifest.get("format") != FORMAT:
        raise ResultsError(f"{folder}: not a folder of results (it has no manifest.json of `brokersim run`)")
    if manifest.get("format_version") != FORMAT_VERSION:
        found = manifest.get("format_version")
        raise ResultsError(f"{folder}: results of format version {found}, this version reads {FORMAT_VERSION}")
    if manifest.get("complete") is not True:
        raise ResultsError(f"{folder}: the runs were not finished; the same `brokersim run` completes them")
    for key, kind in _KEYS.items():
        if not isinstance(manifest.get(key), kind):
            found = repr(manifest[key]) if key in manifest else "nothing"
            raise ResultsError(f"{folder / 'manifest.json'}: {key}: expected {JSON_TYPES[kind]}, found {found}")
    if "files" in manifest and not is_sealed((folder / "manifest.json").read_bytes()):
        raise ResultsError(f"{folder / 'manifest.json'}: {CHANGED}; the same `brokersim run` rewrites it")
    return Results(folder, manifest)


def load_runs(folder: str | Path) -> Results:
    """Load the results in a folder with at least one run. Raises ResultsError also where all runs failed."""
    results = load_results(folder)
    if not results.manifest["runs"]:
        raise ResultsError(f"{folder}: there is nothing to show, as all {len(results.failed):,} runs failed")
    return results


def read_run(folder: Path, run: str) -> Manifest:
    """The manifest of a run in a results folder. Raises ResultsError where it is missing, of another run, or damaged."""
    place = folder / "runs" / run
    try:
        data = (place / "manifest.json").read_bytes()
    except OSError:
        data = b""
    if not is_sealed(data):
        raise ResultsError(f"{place}: damaged; the same `brokersim run` repeats it")
    manifest: Manifest = json.loads(data)
    if manifest["hash"] != run:
        raise ResultsError(f"{place}: contains another run, {manifest['hash']}; the same `brokersim run` repeats it")
    return manifest


def read_json(path: Path) -> Manifest | None:
    """The JSON object in a file; None where the file is missing or holds something else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise ResultsError(f"{path}: no such table")
    try:
        return read_frame(path)
    except (pa.ArrowException, OSError) as error:
        why = str(error).splitlines()[0]
        remedy = "`brokersim run --verify` rewrites it"
        raise ResultsError(f"{path}: not a readable parquet file ({why}); {remedy}") from None
