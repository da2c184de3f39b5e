"""Write and read workload folders, table by table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from sim.base.arrays import Columns
from sim.base.errors import WorkloadError
from sim.base.naming import Raw
from sim.files.atomic import check_name
from sim.files.parquet import column_names, read_columns, write_columns, write_tables
from sim.workloads.content import tables as content_tables
from sim.workloads.content.json_lines import PUBLICATIONS_FILE, SUBSCRIPTIONS
from sim.workloads.format.checks import Checks
from sim.workloads.format.demand import read_interests
from sim.workloads.format.manifest import read_manifest, verify_files, write_manifest
from sim.workloads.format.parts import files_of, read_parts
from sim.workloads.format.validation import validate_workload
from sim.workloads.format.workload import (
    EVENT_TABLES,
    LARGE_TABLES,
    OPTIONAL_COLUMNS,
    OPTIONAL_TABLES,
    Interests,
    Topics,
    Users,
    Workload,
)

INTERESTS_PER_PART = 5_000_000
KEPT_ROWS = "rows"
"""The entry of a folder with the rows of its traces, for others to join; no part of the workload."""

_POSITION = {"latitude": pa.float64(), "longitude": pa.float64()}
_NAMED = {"name": pa.string(), "kind": pa.string(), "event_rate": pa.float64()}
COLUMN_TYPES = {
    "topics": {"topic": pa.int32(), **_NAMED, **_POSITION},
    "users": {"user": pa.int32(), "name": pa.string(), **_POSITION},
    "interests": {"user": pa.int32(), "topic": pa.int32()},
    **{
        name: {column: pa.from_numpy_dtype(dtype) for column, dtype in table.dtypes().items()}
        for name, table in EVENT_TABLES.items()
    },
    **content_tables.CONTENT_TYPES,
}
_ENTRIES = {
    "manifest.json",
    ".manifest.json",
    "interests",
    "quarantine",
    KEPT_ROWS,
    SUBSCRIPTIONS,
    PUBLICATIONS_FILE,
    *EVENT_TABLES,
} | {f"{name}.parquet" for name in COLUMN_TYPES}
_PART = re.compile(r"part-\d{5,}\.parquet")  # entries that are folders


def write_workload(
    workload: Workload,
    folder: Path,
    quarantine: Iterable[pa.Table] | None = None,
    lines: Mapping[str, Iterable[str]] | None = None,
    parts: Mapping[str, str] | None = None,
) -> None:
    """Write the folder, `manifest.json` last, so that a killed process leaves no valid workload.

    An existing workload is replaced, unless `parts` are given: the files of some `LARGE_TABLES`, which are there already, with their
    SHA-256. `quarantine` holds rows that a pipeline could not use (columns source, line, raw, reason), by table; `lines` are text files
    for other systems to read, by name. Raises WorkloadError where the folder holds something else or the workload breaks the format.
    """
    check_name(folder, WorkloadError)
    large = [name for name in LARGE_TABLES if not files_of(name, parts or {})]
    validate_workload(workload, folder, large)
    if not parts:
        _clear(folder)
    files = _write_tables(workload, folder, large)
    if quarantine is not None:
        files.append("quarantine/part-00000.parquet")
        (folder / "quarantine").mkdir()
        write_tables(folder / files[-1], quarantine)
    for name, text in (lines or {}).items():
        files.append(name)
        with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in text)
    write_manifest(folder, workload.about, files, parts or {})


def _clear(folder: Path) -> None:
    """Empty `folder`, which may contain only what this module writes; the manifest is removed first."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkloadError(f"{folder}: this folder cannot be created ({error.strerror})") from None
    others = sorted(entry.relative_to(folder) for entry in folder.rglob("*") if not _is_ours(entry, folder))
    if others:
        what = "a link" if (folder / others[0]).is_symlink() else "not part of a workload"
        raise WorkloadError(f"{folder}: contains '{others[0]}', which is {what}; give an empty or new folder")
    (folder / "manifest.json").unlink(missing_ok=True)
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _is_ours(entry: Path, folder: Path) -> bool:
    """Whether an entry of a folder is one that this module writes."""
    top, *below = entry.relative_to(folder).parts
    return (
        not entry.is_symlink()
        and top in _ENTRIES
        and (not below or top == KEPT_ROWS or _PART.fullmatch("/".join(below)) is not None)
    )


def _write_tables(workload: Workload, folder: Path, large: Sequence[str]) -> list[str]:
    topics, users, interests = workload.topics, workload.users, workload.interests
    tables: dict[str, Columns] = {
        f"{key}s.parquet": {
            key: np.arange(len(table), dtype=np.int32),
            **dict(zip(list(COLUMN_TYPES[f"{key}s"])[1:], vars(table).values(), strict=True)),
        }
        for key, table in (("topic", topics), ("user", users))
    }
    for name in (name for name in EVENT_TABLES if name in large):
        if name not in OPTIONAL_TABLES or workload.counts.get(name):
            tables[f"{name}.parquet"] = _stated(name, getattr(workload, name).columns)
    if workload.content is not None:
        tables |= {f"{name}.parquet": found for name, found in content_tables.columns(workload.content).items()}
    for name, columns in tables.items():
        write_columns(folder / name, columns)
    if "interests" not in large:
        return list(tables)
    (folder / "interests").mkdir()
    for part, start in enumerate(range(0, max(len(interests.indices), 1), INTERESTS_PER_PART)):
        stop = min(start + INTERESTS_PER_PART, len(interests.indices))
        bounds = np.clip(interests.indptr, start, stop)
        name = f"interests/part-{part:05}.parquet"
        user = np.repeat(np.arange(len(users), dtype=np.int32), bounds[1:] - bounds[:-1])
        write_columns(folder / name, {"user": user, "topic": interests.indices[start:stop]})
        tables[name] = {}
    return list(tables)


def _stated(table: str, columns: Columns) -> Columns:
    """Columns of a table without optional ones that have their default everywhere."""
    silent = OPTIONAL_COLUMNS.get(table, {})
    return {name: values for name, values in columns.items() if name not in silent or (values != silent[name]).any()}


def read_event_table(folder: Path, files: list[str], table: str) -> Columns:
    """The columns of a table of events, without optional ones that it does not have."""
    optional, types = OPTIONAL_COLUMNS.get(table, {}), COLUMN_TYPES[table]
    if optional:
        found = column_names(folder / files[0])
        types = {name: kind for name, kind in types.items() if name in found or name not in optional}
    return read_parts(folder, files, types)


def load_workload(folder: Path) -> Workload:
    """Read and check a whole workload folder.

    Raises WorkloadError where it is not a workload, is of another format version, is damaged or breaks the format.
    """
    manifest, hash_ = read_manifest(folder)
    topics = read_columns(folder / "topics.parquet", COLUMN_TYPES["topics"])
    Checks(f"{folder / 'topics.parquet'}").numbered("topic", topics["topic"])
    users = read_columns(folder / "users.parquet", COLUMN_TYPES["users"])
    Checks(f"{folder / 'users.parquet'}").numbered("user", users["user"])
    tables: Raw = {
        name: table(**read_event_table(folder, files_of(name, manifest["files"]) or [f"{name}.parquet"], name))
        for name, table in EVENT_TABLES.items()
        if name not in OPTIONAL_TABLES or files_of(name, manifest["files"])
    }
    workload = Workload(
        kind=manifest["kind"],
        horizon=manifest["horizon"],
        topics=Topics(*list(topics.values())[1:]),
        users=Users(*list(users.values())[1:]),
        interests=Interests(*read_interests(folder, manifest["files"], len(users["user"]), len(topics["topic"]))),
        **tables,
        content=content_tables.read_content(folder, manifest["counts"])
        if "predicates.parquet" in manifest["files"]
        else None,
        period=manifest["period"],
        origin=manifest["origin"],
        cell=manifest["cell"],
        generator=manifest["generator"],
        seed=manifest["seed"],
        sources=tuple(manifest["sources"]),
        rows=manifest["rows"],
        lineage=manifest.get("lineage", {}),
        hash=hash_,
    )
    validate_workload(workload, folder)
    for name, count in workload.counts.items():
        if manifest["counts"].get(name) != count:
            raise WorkloadError(
                f"{folder / 'manifest.json'}: counts.{name} is {manifest['counts'].get(name)}, found {count}"
            )
    verify_files(folder, manifest["files"])  # last, so that mistakes in a changed table are reported by row above
    return workload
