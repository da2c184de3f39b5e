"""The demand of a workload on the back end: read in parts it equals that of the whole workload, and damage is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny

from sim.base.errors import InputError, WorkloadError
from sim.base.randomness import Streams
from sim.files import parquet as tables
from sim.files.hashing import sha256
from sim.workloads.format import folder as folder_module
from sim.workloads.format.demand import load_demand, topic_names
from sim.workloads.format.folder import load_workload, write_workload
from sim.workloads.synthetic.poisson import PoissonWorkload


def fits(users: int, topics: int, interests: int) -> None:
    pass


@pytest.mark.parametrize(("rows", "part"), [(1, 10), (3, 7), (1_000_000, 1_000_000)])
def test_in_parts_of_any_size_it_is_what_the_whole_workload_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, part: int
) -> None:
    monkeypatch.setattr(folder_module, "INTERESTS_PER_PART", part)
    monkeypatch.setattr(tables, "ROW_GROUP", rows)
    made = PoissonWorkload(PoissonWorkload.Parameters(users=30, topics=9, horizon="1h")).generate(Streams(3))
    write_workload(made, tmp_path)
    told = []
    found = load_demand(tmp_path, lambda *counts: told.append(counts))
    for one in (found, load_workload(tmp_path).interests):
        np.testing.assert_array_equal(one.indptr, made.interests.indptr)
        np.testing.assert_array_equal(one.indices, made.interests.indices)
        assert [one.indptr.dtype, one.indices.dtype] == [np.int64, np.int32]
    np.testing.assert_array_equal(found.event_rate, made.topics.event_rate)
    assert (found.period, told) == (made.period, [(30, 9, len(made.interests.indices))])
    assert topic_names(tmp_path).equals(made.topics.names)


def test_users_without_interests_at_the_ends_and_in_between(tmp_path: Path) -> None:
    for wants in ([], [[]], [[], [0], [], [], [0, 2], []], [[1], [0, 1, 2]]):
        write_workload(tiny.workload(wants, topics=3), tmp_path)
        found = load_demand(tmp_path, fits)
        rows = np.split(found.indices, found.indptr[1:-1]) if wants else []
        assert [row.tolist() for row in rows] == wants


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    write_workload(tiny.workload([[0], [0]]), tmp_path)
    (tmp_path / "interests" / "part-00000.parquet").write_bytes((tmp_path / "users.parquet").read_bytes())

    def refuse(*counts: int) -> None:
        raise InputError(f"{counts} are too many")

    with pytest.raises(InputError, match=r"\(2, 1, 2\) are too many"):
        load_demand(tmp_path, refuse)


def changed(name: str, column: str, values: list[object]) -> Callable[[Path], None]:
    """One column made another, and the file sealed again."""

    def change(folder: Path) -> None:
        table = pq.read_table(folder / name)
        kind = table.schema.field(column).type
        pq.write_table(
            table.set_column(table.schema.get_field_index(column), column, pa.array(values, kind)), folder / name
        )
        seal(folder, name)

    return change


def seal(folder: Path, name: str) -> None:
    values = json.loads((folder / "manifest.json").read_text())
    values["files"][name] = sha256(folder / name)
    (folder / "manifest.json").write_text(json.dumps(values))


def with_manifest(**more: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**values, **more}))

    return change


PART = "interests/part-00001.parquet"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), r"not a workload folder, or an unfinished one"),
        (lambda folder: (folder / PART).unlink(), rf"{PART}: missing file"),
        (lambda folder: (folder / PART).write_bytes(b"PAR1"), rf"{PART}: not a readable parquet file"),
        (lambda folder: (folder / "topics.parquet").unlink(), r"topics\.parquet: missing file"),
        (lambda folder: (folder / "users.parquet").unlink(), r"users\.parquet: missing file"),
        (with_manifest(period=0), r"period is 0, allowed: above 0"),
        (with_manifest(counts={"users": 4}), r"counts\.users is 4, found 3"),
        (with_manifest(counts={"users": 3, "topics": 3}), r"counts\.interests is None, found 5"),
        (changed(PART, "user", [0, 2]), r"interests: row 3: user 0 after user 1, rows must be sorted by user and topic"),
        (changed(PART, "user", [1, 3]), r"interests: row 4: user is 3, allowed: 0\.\.2"),
        (changed(PART, "topic", [3, 0]), r"interests: row 3: topic is 3, allowed: 0\.\.2"),
        (changed(PART, "topic", [0, 0]), r"interests: row 3: topic 0 is not above the previous one of the same user"),
        (changed(PART, "topic", [2, None]), r"part-00001\.parquet: row 1: topic is null, expected int32"),
        (changed("topics.parquet", "event_rate", [1, -1, 1]), r"row 1: event_rate is -1\.0, allowed: finite and at least 0"),
        (changed("topics.parquet", "event_rate", [1, 1, None]), r"row 2: event_rate is nan, allowed: finite and at least 0"),
        (changed("topics.parquet", "topic", [0, 2, 1]), r"row 1: topic is 2, expected 1"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], message: str
) -> None:
    monkeypatch.setattr(folder_module, "INTERESTS_PER_PART", 3)
    monkeypatch.setattr(tables, "ROW_GROUP", 1)
    write_workload(tiny.workload([[0, 1], [0, 1], [2]], topics=3), tmp_path)
    damage(tmp_path)
    with pytest.raises(WorkloadError, match=message):
        load_demand(tmp_path, fits)


def test_a_file_that_is_no_longer_the_one_that_was_written(tmp_path: Path) -> None:
    write_workload(tiny.workload([[0, 1], [2]], topics=3), tmp_path)
    name = "interests/part-00000.parquet"
    pq.write_table(pq.read_table(tmp_path / name), tmp_path / name, compression="snappy")
    with pytest.raises(WorkloadError, match="changed since it was written"):
        load_demand(tmp_path, fits)
