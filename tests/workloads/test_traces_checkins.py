"""Files of check-ins become location workloads; every row that cannot be used is kept with its place and reason."""

from __future__ import annotations

import gzip
import hashlib
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from oracles import checkins as oracle

from sim.errors import WorkloadError
from sim.workloads.traces.checkins import BOXES, Box, judge_rows, user_key
from sim.workloads.traces.layouts import GOWALLA
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.workload import Workload, load_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOOD = "7\t2010-10-19T23:55:27Z\t30.5\t-97.5\t22847\n"


def quarantine(folder: Path) -> list[tuple[Any, ...]]:
    """The rows in quarantine, as (source, line, raw, reason)."""
    columns = pq.read_table(folder / "quarantine").to_pydict()
    return list(zip(*(columns[name] for name in ("source", "line", "raw", "reason")), strict=True))


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_read_like_oracle(workload: Workload, out: Path, reading: oracle.Reading, side: float) -> None:
    rows = len(reading.kept) + len(reading.quarantine)
    assert workload.rows == {"read": rows, "kept": len(reading.kept), "quarantined": reading.reasons}
    assert quarantine(out) == reading.quarantine
    assert set(workload.users.names.to_pylist()) == reading.users
    assert workload.topics.names.to_pylist() == [f"{row},{column}" for row, column in sorted(reading.cells(side))]
    origin = datetime.fromisoformat(workload.origin)
    names, moves = workload.users.names.to_pylist(), workload.movements
    found = [
        (names[user], origin + timedelta(seconds=time), oracle.cell(latitude, longitude, side))
        for time, user, latitude, longitude in zip(*(column.tolist() for column in vars(moves).values()), strict=True)
    ]
    assert sorted(found) == reading.visits(side)


DIRT = [
    (GOOD, None),
    (GOOD.replace("\n", "\r\n"), "duplicate"),
    (GOOD.replace("30.5", " 30.50").replace("22847", "another place"), "duplicate"),
    (GOOD.replace("23:55:27Z", "23:55:27.0Z"), "duplicate"),
    (GOOD.replace("2010-10-19T23:55:27Z", "2010-10-20T01:55:27+02:00"), "duplicate"),
    (GOOD.replace("7\t", "07\t", 1), None),
    (GOOD.replace("7\t", '"7\t', 1), None),
    (GOOD.replace("7\t", "7\r8\t", 1), None),
    ("\n", "unparsable"),
    ("7\n", "unparsable"),
    (GOOD.replace("\n", "\tmore\n"), "unparsable"),
    ("\t" * 30_000 + "\n", "unparsable"),
    (GOOD.replace("7\t", "\t", 1), "unparsable"),
    (GOOD.replace("7\t", "  \t", 1), "unparsable"),
    (GOOD.replace("7\t", "\udcff\t", 1), "unparsable"),
    (GOOD.replace("22847", "caf\udce9"), "unparsable"),
    (GOOD.replace("\t", ",").replace("30.5", "0"), "unparsable"),
    (GOOD.replace("2010-10-19T23:55:27Z", ""), "bad_time"),
    (GOOD.replace("2010-10-19", "2010-02-30"), "bad_time"),
    (GOOD.replace("2010-10-19", "0000-10-19"), "bad_time"),
    (GOOD.replace("2010-10-19", "20100-10-19"), "bad_time"),
    (GOOD.replace("T23", "T24"), "bad_time"),
    (GOOD.replace("T", " "), "bad_time"),
    (GOOD.replace("27Z", "27"), "bad_time"),
    (GOOD.replace("2010-10-19T23:55:27Z", "1287532527").replace("30.5", "x"), "bad_time"),
    (GOOD.replace("30.5", ""), "bad_position"),
    (GOOD.replace("30.5", "thirty"), "bad_position"),
    (GOOD.replace("30.5", "30.5d"), "bad_position"),
    (GOOD.replace("30.5", "NaN"), "bad_position"),
    (GOOD.replace("30.5", "Infinity"), "bad_position"),
    (GOOD.replace("30.5", "1e999"), "bad_position"),
    (GOOD.replace("30.5", "90.0001"), "bad_position"),
    (GOOD.replace("-97.5", "180.5"), "bad_position"),
    (GOOD.replace("30.5", "0.0").replace("-97.5", "-0"), "null_island"),
    (GOOD.replace("30.5", "0"), "outside_box"),
    (GOOD.replace("30.5", "50"), "outside_box"),
    (GOOD.replace("30.5", "30"), None),
    (GOOD.replace("30.5", "60").replace("2010", "2020"), "outside_box"),
    (GOOD.replace("2010", "2020"), "outside_window"),
    (GOOD.replace("2010-10-19T23:55:27Z", "2011-01-01T00:00:00Z"), "outside_window"),
    *[(GOOD.replace("7\t", f"{user}\t", 1), None) for user in range(20, 50)],
    (GOOD.rstrip("\n"), "duplicate"),
]


def test_every_kind_of_dirt_ends_with_its_reason_and_kills_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path, out = tmp_path / "dirt [1] {a,b}%20.tsv", tmp_path / "w"
    path.write_bytes("".join(line for line, _ in DIRT).encode(errors="surrogateescape"))
    window = (datetime(2009, 1, 1, tzinfo=UTC), datetime(2011, 1, 1, tzinfo=UTC))
    micros = tuple(int(time.timestamp()) * 1_000_000 for time in window)
    prepare_checkins(spark, [path], out, GOWALLA, box=BOXES["us-paper"], window=micros, partitions=3)

    workload = load_workload(out)
    assert [row[1::2] for row in quarantine(out)] == [(n, why) for n, (_, why) in enumerate(DIRT, 1) if why]
    assert_read_like_oracle(workload, out, oracle.read([path], box=(30, -126, 50, -66), window=window), 1.0)
    assert workload.generator["bounding_box"] == [30, -126, 50, -66]
    assert workload.generator["window"] == ["2009-01-01T00:00:00Z", "2011-01-01T00:00:00Z"]


def random_lines(rows: int, chance: random.Random) -> list[str]:
    """Few users, places and times, so that visits, ties and repetitions abound; one line in ten is dirt."""
    dirt = [line for line, reason in DIRT if reason and reason != "duplicate"]
    return [
        chance.choice(dirt).rstrip("\n") + "\n"
        if chance.random() < 0.1
        else f"{chance.randrange(8)}\t2010-0{chance.randint(1, 2)}-01T00:0{chance.randrange(10)}:00Z\t"
        f"{chance.choice(['0.5', '1.5', '-0.25', '1.75'])}\t{chance.choice(['0.5', '1.25'])}\t{chance.randrange(3)}\n"
        for _ in range(rows)
    ]


def test_same_bytes_for_any_partitions_and_true_line_numbers(spark: SparkSession, tmp_path: Path) -> None:
    chance, out = random.Random(5), tmp_path / "deep" / "w"
    paths = [tmp_path / "first.tsv", tmp_path / "second.txt", tmp_path / "third.gz"]
    for path in paths:
        content = "".join(random_lines(400, chance)).encode(errors="surrogateescape")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    prepare_checkins(spark, paths, out, GOWALLA, cell=0.5, partitions=1)
    once = contents(out)
    prepare_checkins(spark, paths, out, GOWALLA, cell=0.5, partitions=8)
    assert contents(out) == once
    assert_read_like_oracle(load_workload(out), out, oracle.read(paths), 0.5)
    assert [entry.name for entry in out.parent.iterdir()] == ["w"], (
        "what was replaced is gone, and nothing half-made stays"
    )


def test_the_order_of_rows_means_nothing(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(6)
    lines = [line for line in random_lines(300, chance) if line.count("\t") == 4]
    for name in ("one", "other"):
        (tmp_path / name).write_bytes("".join(lines).encode(errors="surrogateescape"))
        prepare_checkins(spark, [tmp_path / name], tmp_path / f"w-{name}", GOWALLA, publications="per-check-in")
        chance.shuffle(lines)
    one, other = contents(tmp_path / "w-one"), contents(tmp_path / "w-other")
    changed = {name for name in one if one[name] != other[name]}
    assert changed == {"manifest.json", "quarantine/part-00000.parquet"}
    workload = load_workload(tmp_path / "w-one")
    assert workload.rows is not None
    assert len(workload.publications) == workload.rows["kept"] > len(workload.movements)


@pytest.mark.parametrize(
    ("trace", "side", "read", "quarantined", "cells", "users"),
    [
        ("gowalla-world/checkins.tsv.gz", 1.0, 86_670, 8, 284, 11_864),
        ("gowalla-nyc/gowalla_events.tsv.gz", 0.05, 138_957, 6, 98, 7_115),
        ("gowalla-head/loc-gowalla_totalCheckins.head10000.txt.gz", 1.0, 10_000, 0, 166, 48),
    ],
)
def test_real_traces_are_read_like_the_oracle_reads_them(
    spark: SparkSession,
    shared_data: Path,
    tmp_path: Path,
    trace: str,
    side: float,
    read: int,
    quarantined: int,
    cells: int,
    users: int,
) -> None:
    out = tmp_path / "w"
    workload = prepare_checkins(spark, [shared_data / trace], out, GOWALLA, cell=side)
    assert workload.rows is not None
    assert (workload.rows["read"], len(quarantine(out))) == (read, quarantined)
    assert (len(workload.topics), len(workload.users)) == (cells, users)
    assert_read_like_oracle(workload, out, oracle.read([shared_data / trace]), side)


def test_users_are_numbered_by_value_then_by_name() -> None:
    assert sorted(["b", "10", "9", "007", "7", "²", "a"], key=user_key) == ["007", "7", "9", "10", "a", "b", "²"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [GOOD, "a,b\n", "c,d\n"],
            "line 2: expected 5 fields (user, time, latitude, longitude, place) parted by '\\t' in UTF-8, "
            "found 'a,b' (2 of 3 rows cannot be read as --format gowalla)",
        ),
        (
            [GOOD, GOOD.replace("T", " "), "7\t12 May\t1\t2\tx\n"],
            "line 2: column 2 (time) looks wrong: expected a time such as 2010-10-19T23:55:27Z, found '2010-10-19 23:55:27Z'",
        ),
        (
            [GOOD, *2 * [GOOD.replace("-97.5", "30.5").replace("30.5", "-97.5", 1)]],
            "line 2: column 3 (latitude) looks wrong",
        ),
        (
            [GOOD, *2 * [GOOD.replace("7\t", "\t", 1)]],
            "line 2: column 1 (user) looks wrong: expected a user, which is not empty",
        ),
        ([GOOD.replace("30.5", "0").replace("-97.5", "0")], "none of 1 rows is usable (null_island 1)"),
    ],
)
def test_a_file_in_another_layout_is_refused(
    spark: SparkSession, tmp_path: Path, lines: list[str], message: str
) -> None:
    (tmp_path / "in.tsv").write_text("".join(lines))
    with pytest.raises(WorkloadError) as raised:
        prepare_checkins(spark, [tmp_path / "in.tsv"], tmp_path / "w", GOWALLA)
    assert message in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tsv"], "nothing half-made stays"


def test_damaged_and_hollow_gzip_files_are_named(spark: SparkSession, tmp_path: Path) -> None:
    good, cut, hollow = tmp_path / "good.tsv", tmp_path / "cut.gz", tmp_path / "hollow.gz"
    good.write_text(GOOD)
    cut.write_bytes(gzip.compress("".join(random_lines(2000, random.Random(1))).encode(errors="replace"))[:-400])
    hollow.write_bytes(gzip.compress(b""))
    with pytest.raises(WorkloadError, match=r"cut\.gz: damaged gzip file"):
        prepare_checkins(spark, [good, cut], tmp_path / "w", GOWALLA)
    with pytest.raises(WorkloadError, match=r"hollow\.gz: the file is empty"):
        prepare_checkins(spark, [good, hollow], tmp_path / "w", GOWALLA)


def test_only_a_workload_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path, folder = tmp_path / "in.tsv", tmp_path / "w"
    path.write_text(GOOD)
    folder.mkdir()
    for name, content, message in (
        ("manifest.json", '{"format": "something else"}', r"holds 'manifest\.json', which is no part of a workload"),
        ("manifest.json", '{"files": {"users.parquet": "0"}}', "holds 'notes"),
    ):
        (folder / name).write_text(content)
        (folder / "notes.md").write_text("mine")
        with pytest.raises(WorkloadError, match=message):
            prepare_checkins(spark, [path], folder, GOWALLA)
    with pytest.raises(WorkloadError, match="is a file"):
        prepare_checkins(spark, [path], path, GOWALLA)
    assert (folder / "notes.md").read_text() == "mine"


@pytest.mark.parametrize(
    "sides", [(50, 0, 30, 1), (-91, 0, 0, 1), (0, -181, 1, 1), (0, 5, 1, 5), (float("nan"), 0, 1, 1)]
)
def test_a_box_has_a_south_below_its_north(sides: tuple[float, float, float, float]) -> None:
    with pytest.raises(WorkloadError, match="expected S,W,N,E"):
        Box(*sides)


def test_a_box_may_cross_the_date_line(spark: SparkSession) -> None:
    longitudes = (-180, -179, -175, 0, 176, 177, 180)
    fields = [(0, 0, 0, "", True, "1", "2010-01-01T00:00:00Z", "-17", str(longitude)) for longitude in longitudes]
    text = "user string, time string, latitude string, longitude string"
    lines = spark.createDataFrame(fields, f"source int, block int, row int, raw string, parsed boolean, {text}")
    rows = judge_rows(lines, GOWALLA, Box(-20, 177, -15, -175), (None, None)).where("reason IS NULL").collect()
    assert [row["longitude"] for row in rows] == [-180, -179, 177, 180]


@pytest.mark.parametrize(
    "option", [{"cell": 0.0}, {"cell": float("nan")}, {"cell": 1e-9}, {"friends": -1}, {"size": 2**31}]
)
def test_options_out_of_range_are_refused_before_anything_is_read(
    spark: SparkSession, tmp_path: Path, option: dict[str, Any]
) -> None:
    with pytest.raises(WorkloadError, match=f"{next(iter(option))} is .*, allowed"):
        prepare_checkins(spark, [tmp_path / "absent"], tmp_path / "w", GOWALLA, **option)
