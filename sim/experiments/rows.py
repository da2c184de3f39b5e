"""Rows of the table of all runs, kept so that no run's folder has to be opened again.

While runs are in progress, every process that writes runs streams their rows to its own files; at the end they are compacted into
`runs.parquet` and `timing.parquet`. They are a cache: missing or damaged rows are read from the runs' folders.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base.naming import Raw
from sim.experiments.results import RUNS, read_json, read_run
from sim.files.atomic import replacing
from sim.files.hashing import sha256
from sim.files.parquet import write_table
from sim.metrics import OURS

_OFTEN = 5.0  # s, between two writes of a process
_MOST = 1000
"""The most rows of one file, so that rewriting it is fast."""

METRIC_TYPES = {name: pa.int64() if metric.integer else pa.float64() for name, metric in OURS.items()}
TIMING_TYPES = {"start": pa.string(), "end": pa.string(), "seconds": pa.float64(), "host": pa.string()}
OTHERS = {"run", "notes", *TIMING_TYPES}
"""Columns that are not metrics; columns other than these and the built-in metrics are users' own metrics, float64."""
SCHEMA = pa.schema({"run": pa.string(), **METRIC_TYPES, "notes": pa.list_(pa.string()), **TIMING_TYPES})

RunRow = Raw


def row(run: str, metrics: Raw, notes: Sequence[str], timing: Raw) -> RunRow:
    """The row of a run, from its manifest and timing."""
    return {"run": run, **metrics, "notes": list(notes), **timing}


def run_row(folder: Path, run: str) -> RunRow:
    """The row of a run, from its own folder. Raises ResultsError where that is damaged."""
    manifest = read_run(folder, run)
    timing = read_json(folder / "runs" / run / "timing.json") or {}
    return row(run, manifest["metrics"], manifest["notes"], timing)


class Stream:
    """The rows that one process has written, in a file that is rewritten every few seconds.

    A killed process loses the rows of its last seconds.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "runs" / ".rows"
        self._rows: list[RunRow] = []
        self._name = uuid.uuid4().hex
        self._written = time.monotonic()

    def add(self, new: RunRow) -> None:
        """Add a row. Raises OSError where the file cannot be written."""
        self._rows.append(new)
        if time.monotonic() - self._written >= _OFTEN:
            self._folder.mkdir(exist_ok=True)
            columns = dict.fromkeys([*SCHEMA.names, *new])
            _replace(self._folder / f"{self._name}.parquet", pa.Table.from_pylist(self._rows, _part(columns)))
            self._written = time.monotonic()
            if len(self._rows) >= _MOST:
                self._rows, self._name = [], uuid.uuid4().hex


def known_rows(folder: Path, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
    """All rows in the files of `folder`, in any order and possibly repeated; unreadable files are skipped."""
    streamed = sorted((folder / "runs" / ".rows").glob("*.parquet"))
    tables = [_compacted(folder, columns), *(_read(path, columns) for path in streamed)]
    return pa.concat_tables(tables)


def rows_of(folder: Path, runs: Sequence[str], own: Sequence[str] = ()) -> pa.Table:
    """The rows of these runs, in this order, with the users' own metrics. Raises ResultsError where one has no row and is damaged."""
    columns = [*SCHEMA.names, *own]
    known = known_rows(folder, columns)
    at = {run: i for i, run in enumerate(known["run"].to_pylist())}
    missing = [run for run in dict.fromkeys(runs) if run not in at]
    at |= {run: known.num_rows + i for i, run in enumerate(missing)}
    both = pa.concat_tables([known, *_from_manifests(folder, missing, columns)])
    return both.take(pa.array([at[run] for run in runs], pa.int64())).combine_chunks()


def write_rows(folder: Path, rows: pa.Table, keys: Mapping[str, pa.Array]) -> None:
    """Compact the rows: write the tables of all runs, and remove the streamed files.

    `rows` are those of `rows_of`, `keys` columns that come before the metrics. The notes of runs are in the schema's metadata.
    """
    notes = [tuple(note) for note in rows["notes"].to_pylist()]
    distinct = list(dict.fromkeys(notes))
    number = {note: i for i, note in enumerate(distinct)}
    said = json.dumps({"distinct": distinct, "rows": [number[note] for note in notes]}, ensure_ascii=False)
    first = dict.fromkeys(rows["run"].to_pylist())
    at = {run: i for i, run in reversed(list(enumerate(rows["run"].to_pylist())))}
    timing = rows.select(["run", *TIMING_TYPES]).take(pa.array([at[run] for run in first], pa.int64()))
    _replace(folder / "timing.parquet", timing.combine_chunks())
    metrics = [name for name in rows.column_names if name not in OTHERS]
    table = pa.table({"run": rows["run"], **keys, **{name: rows[name] for name in metrics}})
    _replace(folder / RUNS, table.replace_schema_metadata({"notes": said}))
    shutil.rmtree(folder / "runs" / ".rows", ignore_errors=True)


def forget_rows(folder: Path) -> None:
    """Remove all rows, so that they are read from the runs' folders again."""
    (folder / RUNS).unlink(missing_ok=True)
    shutil.rmtree(folder / "runs" / ".rows", ignore_errors=True)


def _compacted(folder: Path, columns: Sequence[str]) -> pa.Table:
    """The rows of the tables of all runs; none where the tables do not match the manifest's hashes."""
    files = (read_json(folder / "manifest.json") or {}).get("files", {})
    try:
        if files.get(RUNS) != sha256(folder / RUNS):
            return _none(columns)
    except OSError:
        return _none(columns)
    wanted = [name for name in columns if name not in OTHERS]
    table = _read(folder / RUNS, ["run", *wanted])
    timing = _read(folder / "timing.parquet", ["run", *TIMING_TYPES])
    try:
        said = json.loads((table.schema.metadata or {})[b"notes"])
        notes = [said["distinct"][number] for number in said["rows"]]
    except (KeyError, ValueError, IndexError, TypeError):
        return _none(columns)
    at = {run: i for i, run in enumerate(timing["run"].to_pylist())}
    times = timing.take(pa.array([at.get(run) for run in table["run"].to_pylist()], pa.int64()))
    more = {"notes": pa.array(notes, SCHEMA.field("notes").type), **{name: times[name] for name in TIMING_TYPES}}
    return pa.table({name: more[name] if name in more else table[name] for name in columns}, _part(columns))


def _from_manifests(folder: Path, runs: Sequence[str], columns: Sequence[str]) -> Iterator[pa.Table]:
    for start in range(0, len(runs), _MOST):
        yield pa.Table.from_pylist([run_row(folder, run) for run in runs[start : start + _MOST]], _part(columns))


def _read(path: Path, columns: Sequence[str]) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns, use_threads=False)
        return table.select(columns).cast(_part(columns).with_metadata(table.schema.metadata))
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return _none(columns)


def _part(columns: Iterable[str]) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) if name in SCHEMA.names else (name, pa.float64()) for name in columns])


def _none(columns: Iterable[str]) -> pa.Table:
    return _part(columns).empty_table()


def _replace(path: Path, table: pa.Table) -> None:
    unfinished = path.with_name(f".unfinished-{path.name}")
    with replacing(path, unfinished):
        write_table(unfinished, table)
