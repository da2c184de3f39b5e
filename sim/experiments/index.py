"""The index of a results folder: which runs exist, which have failed, and their metrics and times."""

from __future__ import annotations

import math
import os
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.base.errors import ResultsError
from sim.base.naming import Raw
from sim.experiments.outcomes import Failure
from sim.experiments.results import AGAIN, CHANGED, read_json, read_run
from sim.experiments.rounds import WindowSeries
from sim.experiments.rows import known_rows, run_row
from sim.files.hashing import sha256
from sim.metrics import METRICS


class Index:
    """The runs in a folder, by their hashes; a missing folder has none."""

    def __init__(self, folder: Path) -> None:
        """Raises ResultsError where the folder cannot be read."""
        self.folder = folder
        self._columns: dict[str, Raw] = {}
        self.done = {name for name in _names(folder / "runs") if not name.startswith(".")}
        records = {
            name.removesuffix(".json"): read_json(folder / "failed" / name) for name in _names(folder / "failed")
        }
        self.failed = {
            run: Failure(str(record.get("reason")), str(record.get("traceback")))
            for run, record in records.items()
            if record is not None
        }

    def metric(self, run: str, name: str) -> float:
        """As in `rounds.RunResults`. Raises ResultsError where the run is damaged."""
        if run not in self.done:
            return math.nan
        known = self._rows(name)
        value = known[run] if run in known else run_row(self.folder, run)[name]
        return math.nan if value is None else float(value)

    def windows(self, run: str, name: str) -> WindowSeries | None:
        """As in `rounds.RunResults`. Raises ResultsError where the run is damaged."""
        if run not in self.done:
            return None
        path = self.folder / "runs" / run / "timeseries.parquet"
        try:
            with pq.ParquetFile(path) as file:
                table = file.read(use_threads=False)
            if read_run(self.folder, run)["files"]["timeseries.parquet"] != sha256(path):
                raise ResultsError(f"{path}: {CHANGED}; {AGAIN}")
        except (pa.ArrowException, OSError) as error:
            raise ResultsError(f"{path}: not a readable parquet file ({str(error).splitlines()[0]})") from None
        columns = {key: np.array(table[key].to_pylist(), np.float64) for key in table.column_names}
        values = METRICS[name].each(columns)
        if values is None:
            values = columns["notification_delay"]
        return WindowSeries(columns["start"], values, float(columns["end"][-1]))

    def _rows(self, name: str) -> Raw:
        """A column of the rows that existed when the index was opened."""
        if name not in self._columns:
            rows = known_rows(self.folder, ["run", name])
            self._columns[name] = dict(zip(rows["run"].to_pylist(), rows[name].to_pylist(), strict=True))
        return self._columns[name]

    @cached_property
    def seconds(self) -> dict[str, float]:
        """The run times of the runs whose rows existed when the index was opened."""
        return {run: seconds for run, seconds in self._rows("seconds").items() if seconds is not None}


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, of very many runs
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"{folder}: cannot be read ({error.strerror})") from None
