"""Results on disk: a folder that pandas, Polars or DuckDB read with no code of ours."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.errors import ResultsError
from sim.workloads.tables import read_frame

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "brokersim-results"
FORMAT_VERSION = 2

Manifest = dict[str, Any]
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
    manifest: Manifest

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: run, point, variant, replication, seed, the swept keys, and each scalar metric (units: `sim.metrics`)."""
        return self._read(self.folder / "runs.parquet")

    @cached_property
    def points(self) -> pd.DataFrame:
        """The sweep's points: a column for each swept key, indexed by the point's number; one point without columns without a sweep."""
        import pandas as pd

        points = self.manifest["points"]
        index = pd.RangeIndex(len(points), name="point")
        return pd.DataFrame(points, index=index, columns=self.manifest["parameters"])

    def at(self, point: int) -> Results:
        """The results of one point alone, as if nothing else had been run."""
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
        """A table of one run, such as "timeseries", "brokers" or "decisions/selection". Raises ResultsError if absent."""
        return self._read(self.folder / "runs" / run / f"{name}.parquet")

    @property
    def notes(self) -> list[str]:
        """What a user should know of the networks that were simulated, as sentences, each once."""
        return list(self.manifest["notes"])

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The runs that failed: variant, replication, reason and traceback."""
        return list(self.manifest["failed"])

    def _read(self, path: Path) -> pd.DataFrame:
        if not path.is_file():
            raise ResultsError(f"{path}: no such table")
        try:
            return read_frame(path)
        except (pa.ArrowException, OSError) as error:
            why = str(error).splitlines()[0]
            remedy = "`brokersim run --verify` writes it anew"
            raise ResultsError(f"{path}: not a readable parquet file ({why}); {remedy}") from None


def load_results(folder: str | Path) -> Results:
    """The results in a folder. Raises ResultsError where there are none, or none that were finished."""
    folder = Path(folder)
    manifest = read_json(folder / "manifest.json")
    if manifest is None or manifest.get("format") != FORMAT:
        raise ResultsError(f"{folder}: not a folder of results (it has no manifest.json of `brokersim run`)")
    if manifest.get("format_version") != FORMAT_VERSION:
        found = manifest.get("format_version")
        raise ResultsError(f"{folder}: results of format version {found}, this version reads {FORMAT_VERSION}")
    if manifest.get("complete") is not True:
        raise ResultsError(f"{folder}: the runs were not finished; the same `brokersim run` again does what is missing")
    for key, kind in _KEYS.items():
        if not isinstance(manifest.get(key), kind):
            found = repr(manifest[key]) if key in manifest else "nothing"
            raise ResultsError(f"{folder / 'manifest.json'}: {key}: expected {kind.__name__}, found {found}")
    return Results(folder, manifest)


def read_json(path: Path) -> Manifest | None:
    """The object in a file; None where there is no such file, or something else in it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None
