"""Check-ins too many for one process: divided among tasks by user and by time, they make the tables of one process, in parts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base.errors import WorkloadError
from sim.workloads.format.folder import load_workload
from sim.workloads.traces import by_time, by_user, many_checkins, pipeline, quarantine, workshop
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.judging import RangeJudge
from sim.workloads.traces.layouts import GOWALLA
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.traces.user_filters import UserFilters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PICKY = CheckinOptions(
    publications="per-check-in", filters=UserFilters(0.7, "monthly", 3), friends=0, window=(None, 1_270_000_000_000_000)
)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Check-ins of 300 users in three months, with duplicates far apart and rows of no use."""
    rng = random.Random(3)
    lines = []
    for _ in range(6000):
        time = f"2010-0{rng.randrange(1, 4)}-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00Z"
        place = f"{rng.choice([0, 40, 41, 42, 43, 91])}.5\t{rng.randrange(-3, 3)}.25"
        lines.append(f"{rng.choice([*[rng.randrange(300)] * 8, 'x 07', ''])}\t{time}\t{place}\tp\n")
    path = tmp_path / "rows.tsv"
    path.write_text("".join([*lines, "broken\n", *rng.sample(lines, 500)]))
    return path


def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, some hundreds of rows are many."""
    for module in (pipeline, many_checkins):
        monkeypatch.setattr(module, "MANY_ROWS", 100)
    for module in (many_checkins, by_user):
        monkeypatch.setattr(module, "PART_ROWS", 700)
    for module in (many_checkins, quarantine):
        monkeypatch.setattr(module, "PART_LINES", 2000)
    monkeypatch.setattr(by_user, "BATCH_ROWS", 50)
    monkeypatch.setattr(many_checkins, "BLOCK_ROWS", 600)
    monkeypatch.setattr(by_time, "_CHANGING", 200)


def tables(folder: Path) -> dict[str, pa.Table]:
    """All tables of a workload, each in one piece."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        found.setdefault(path.relative_to(folder).parts[0].removesuffix(".parquet"), []).append(path)
    return {name: pa.concat_tables(map(pq.read_table, paths)) for name, paths in found.items()}


def assert_same_tables(one: Path, many: Path) -> None:
    assert tables(many) == tables(one)
    assert len(list((many / "subscription_events").iterdir())) > 3
    assert len(list((many / "quarantine").iterdir())) > 3
    first, second = (load_workload(folder).about for folder in (one, many))
    assert second == first


@pytest.mark.parametrize("options", [CheckinOptions(), PICKY])
def test_tasks_write_the_tables_of_one_process(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: CheckinOptions
) -> None:
    prepare_checkins(None, [rows], tmp_path / "one", GOWALLA, options)
    divided(monkeypatch)
    workload = prepare_checkins(None, [rows], tmp_path / "many", GOWALLA, options, partitions=3)
    assert_same_tables(tmp_path / "one", tmp_path / "many")
    assert workload.about == load_workload(tmp_path / "many").about  # its tables are read when they are asked for
    assert workload.movements.user.tolist() == load_workload(tmp_path / "one").movements.user.tolist()


def test_so_do_tasks_of_spark_however_files_are_cut(
    spark: SparkSession, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided(monkeypatch)
    prepare_checkins(None, [rows], tmp_path / "one", GOWALLA)
    prepare_checkins(spark, [rows], tmp_path / "many", GOWALLA, partitions=4)
    contents = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "one", tmp_path / "many")
    ]
    assert contents[0] == contents[1]


def test_no_user_may_be_left(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    divided(monkeypatch)
    with pytest.raises(WorkloadError, match=r"rows.tsv: none of 6,501 rows is usable \(.*few_visits"):
        prepare_checkins(None, [rows], tmp_path / "w", GOWALLA, CheckinOptions(filters=UserFilters(min_visits=9999)))


def test_a_killed_command_goes_on_after_its_last_step(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file nor a step is read again; another command for the same folder begins from scratch."""
    divided(monkeypatch)
    prepare_checkins(None, [rows], tmp_path / "one", GOWALLA)
    monkeypatch.setattr(workshop, "LASTING_BYTES", 1000)

    def read_again(*_: object) -> None:
        raise AssertionError("read again")

    def killed(step: str, _: str) -> None:
        if step.startswith("writing visits"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_checkins(None, [rows], tmp_path / "many", GOWALLA, progress=killed)
    (left,) = tmp_path.glob(".many.*.unfinished")
    monkeypatch.setattr(RangeJudge, "__call__", read_again)
    prepare_checkins(None, [rows], tmp_path / "many", GOWALLA)
    assert tables(tmp_path / "many") == tables(tmp_path / "one")
    assert not left.exists()
    with pytest.raises(AssertionError, match="read again"):
        prepare_checkins(None, [rows], tmp_path / "many", GOWALLA)
