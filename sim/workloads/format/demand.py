"""The demand of a workload on the back end: interests at time 0, and event rates of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.errors import WorkloadError
from sim.files.parquet import count_rows, read_batches, read_columns
from sim.workloads.format.checks import Checks
from sim.workloads.format.manifest import read_manifest, verify_files

_INTERESTS = {"user": pa.int32(), "topic": pa.int32()}
Fits = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Demand:
    """Interests at time 0 as CSR: user u wants `indices[indptr[u]:indptr[u + 1]]`, ascending; rates are events per `period` (s)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    event_rate: NDArray[np.float64]
    period: float


def load_demand(folder: Path, fits: Fits) -> Demand:
    """Read the demand from a workload's folder, in little more memory than its arrays take.

    `fits` is called with the numbers of users, topics and interests before memory is allocated, and may raise. Raises WorkloadError
    where the folder is not a workload, is of another format version, or the part read is damaged or breaks the format.
    """
    manifest, _ = read_manifest(folder)
    parts = _parts(manifest["files"])
    counts = {
        "users": count_rows(folder / "users.parquet"),
        "topics": count_rows(folder / "topics.parquet"),
        "interests": sum(count_rows(folder / part) for part in parts),
    }
    for name, count in counts.items():
        if manifest["counts"].get(name) != count:
            raise WorkloadError(
                f"{folder / 'manifest.json'}: counts.{name} is {manifest['counts'].get(name)}, found {count}"
            )
    if manifest["counts"].get("filters"):
        raise WorkloadError(
            f"{folder}: has filters, which match topics only in a simulation (allowed: a workload prepared without --live-filters)"
        )
    if not 0 < manifest["period"] < np.inf:
        raise WorkloadError(f"{folder / 'manifest.json'}: period is {manifest['period']}, allowed: above 0")
    fits(counts["users"], counts["topics"], counts["interests"])
    path = folder / "topics.parquet"
    topics = read_columns(path, {"topic": pa.int32(), "event_rate": pa.float64()})
    Checks(f"{path}").numbered("topic", topics["topic"])
    Checks(f"{path}").not_negative("event_rate", topics["event_rate"])
    indptr, indices = read_interests(folder, parts, counts["users"], counts["topics"])
    verify_files(folder, {name: manifest["files"][name] for name in ("topics.parquet", *parts)})
    return Demand(indptr, indices, topics["event_rate"], manifest["period"])


def topic_names(folder: Path) -> pa.StringArray:
    """The names of a workload's topics."""
    names: pa.StringArray = read_columns(folder / "topics.parquet", {"name": pa.string()})["name"]
    return names


def read_interests(
    folder: Path, files: Iterable[str], users: int, topics: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The interests in a folder's `files`, as one CSR: `indptr`, `indices`.

    They are read in batches of rows. Raises WorkloadError for the first row out of order, or with an unknown user or topic.
    """
    parts = _parts(files)
    indptr = np.zeros(users + 1, np.int64)
    indices = np.empty(sum(count_rows(folder / part) for part in parts), np.int32)
    row, last = 0, (-1, -1)
    for user, topic in _batches(folder, parts):
        checks = Checks(f"{folder / 'interests'}", row)
        checks.between("user", user, 0, users - 1)
        checks.between("topic", topic, 0, topics - 1)
        _ascend(checks, user, topic, last)
        indices[row : row + len(topic)] = topic
        indptr[user[0] + 1 : user[-1] + 2] += np.bincount(user - user[0])
        row, last = row + len(topic), (user[-1], topic[-1])
    np.cumsum(indptr, out=indptr)
    return indptr, indices


def _ascend(checks: Checks, user: NDArray[np.int32], topic: NDArray[np.int32], last: tuple[int, int]) -> None:
    """Check that rows are sorted by user and topic without repetitions; `last` is the row before."""
    user_before, topic_before = (
        np.append(np.int32(one), rows[:-1]) for one, rows in zip(last, (user, topic), strict=True)
    )
    checks.reject(
        user < user_before,
        lambda row: f"user {user[row]} after user {user_before[row]}, rows must be sorted by user and topic",
    )
    checks.reject(
        (user == user_before) & (topic <= topic_before),
        lambda row: f"topic {topic[row]} is not above the previous one of the same user",
    )


def _parts(files: Iterable[str]) -> list[str]:
    return sorted(name for name in files if name.startswith("interests/"))


def _batches(folder: Path, parts: Sequence[str]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    for part in parts:
        for columns in read_batches(folder / part, _INTERESTS):
            if len(columns["user"]):
                yield columns["user"], columns["topic"]
