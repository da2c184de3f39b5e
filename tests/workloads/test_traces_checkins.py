"""Files of check-ins become location workloads; every row that cannot be used is kept with its place and reason."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles import checkins as oracle

from sim.base.errors import WorkloadError
from sim.base.naming import name_key
from sim.base.randomness import Streams
from sim.workloads.format.folder import load_workload
from sim.workloads.format.workload import Workload
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.checkins import BOXES, Box, judge_checkins
from sim.workloads.traces.layouts import (
    CSV,
    FOURSQUARE,
    FOURSQUARE_PLACES,
    GOWALLA,
    JSONL,
    PARQUET,
    Layout,
    lay_over,
)
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.traces.user_filters import UserFilters, sampled

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
    found = quarantine(out)
    if reading.quarantine and reading.quarantine[0][2] is None:  # the oracle writes no JSON of Parquet's rows
        found = [(source, line, None, reason) for source, line, _, reason in found]
    assert found == reading.quarantine
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
    (GOOD.replace("2010-10-19", "9999-12-31"), "bad_time"),
    (GOOD.replace("2010-10-19", "0001-01-01"), "bad_time"),
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
    prepare_checkins(spark, [path], out, GOWALLA, CheckinOptions(micros, box=BOXES["us-paper"]), partitions=3)

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


@pytest.mark.filterwarnings("ignore::sim.workloads.traces.strays.TraceWarning")
def test_same_bytes_for_any_partitions_and_true_line_numbers(spark: SparkSession, tmp_path: Path) -> None:
    chance, out = random.Random(5), tmp_path / "deep" / "w"
    paths = [tmp_path / "first.tsv", tmp_path / "second.txt", tmp_path / "third.gz"]
    for path in paths:
        content = "".join(random_lines(400, chance)).encode(errors="surrogateescape")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    prepare_checkins(spark, paths, out, GOWALLA, CheckinOptions(cell=0.5), partitions=1)
    once = contents(out)
    for session in (spark, None):
        prepare_checkins(session, paths, out, GOWALLA, CheckinOptions(cell=0.5), partitions=8)
        assert contents(out) == once
    assert_read_like_oracle(load_workload(out), out, oracle.read(paths), 0.5)
    assert [entry.name for entry in out.parent.iterdir()] == ["w"], (
        "what was replaced is gone, and nothing half-made stays"
    )


@pytest.mark.filterwarnings("ignore::sim.workloads.traces.strays.TraceWarning")
def test_the_order_of_rows_means_nothing(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(6)
    lines = [line for line in random_lines(300, chance) if line.count("\t") == 4]
    for name in ("one", "other"):
        (tmp_path / name).write_bytes("".join(lines).encode(errors="surrogateescape"))
        prepare_checkins(
            spark, [tmp_path / name], tmp_path / f"w-{name}", GOWALLA, CheckinOptions(publications="per-check-in")
        )
        chance.shuffle(lines)
    one, other = contents(tmp_path / "w-one"), contents(tmp_path / "w-other")
    changed = {name for name in one if one[name] != other[name]}
    assert changed == {"manifest.json", "quarantine/part-00000.parquet"}
    workload = load_workload(tmp_path / "w-one")
    assert workload.rows is not None
    assert len(workload.publications) == workload.rows["kept"] > len(workload.movements)


def dated(brightkite: Path, folder: Path) -> Path:
    """The set with a date added to the weekday and minute that it has: those of the user's week, counted from a Monday."""
    table = pq.read_table(brightkite)
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    monday = datetime(2008, 4, 7)
    rows = zip(*(table[name].to_pylist() for name in ("tid", "day", "time")), strict=True)
    dates = [monday + timedelta(weeks=tid % 100, days=days.index(day), minutes=minute) for tid, day, minute in rows]
    pq.write_table(table.append_column("date", pa.array(dates, pa.timestamp("ns"))), folder / "dated.parquet")
    return folder / "dated.parquet"


KRUGER = lay_over(
    CSV,
    columns="latitude=lat,longitude=lon,time=timestamp,user=userid",
    header=True,
    time_formats=["yyyy-MM-dd HH:mm"],
    time_zone="Africa/Johannesburg",
)
BRIGHTKITE = lay_over(PARQUET, columns="user=label,time=date,space", time_zone="America/Denver")


@pytest.mark.parametrize(
    ("trace", "layout", "oracles", "side", "read", "quarantined", "cells", "users"),
    [
        ("gowalla-world/checkins.tsv.gz", GOWALLA, oracle.SNAP, 1.0, 86_670, {"duplicate": 8}, 284, 11_864),
        ("gowalla-nyc/gowalla_events.tsv.gz", GOWALLA, oracle.SNAP, 0.05, 138_957, {"duplicate": 6}, 98, 7_115),
        ("gowalla-head/loc-gowalla_totalCheckins.head10000.txt.gz", GOWALLA, oracle.SNAP, 1.0, 10_000, {}, 166, 48),
        (
            "kruger-posts/some_posts.csv.gz",
            KRUGER,
            oracle.Layout(
                KRUGER.columns,
                delimiter=",",
                header=True,
                quote=True,
                times=("%Y-%m-%d %H:%M",),
                zone=ZoneInfo("Africa/Johannesburg"),
            ),
            1.0,
            81_379,
            {"bad_time": 1_221, "duplicate": 59},
            11,
            14_885,
        ),
        (
            "brightkite-weekly/data.parquet",
            BRIGHTKITE,
            oracle.Layout(BRIGHTKITE.columns, kind="parquet", zone=ZoneInfo("America/Denver")),
            1.0,
            130_494,
            {"bad_time": 9, "null_island": 3_825, "duplicate": 1_052},  # 2009-03-08, from 2 to 3 in Denver
            454,
            292,
        ),
    ],
)
def test_real_traces_are_read_like_the_oracle_reads_them(
    spark: SparkSession,
    shared_data: Path,
    tmp_path: Path,
    trace: str,
    layout: Layout,
    oracles: oracle.Layout,
    side: float,
    read: int,
    quarantined: dict[str, int],
    cells: int,
    users: int,
) -> None:
    path, out = shared_data / trace, tmp_path / "w"
    path = dated(path, tmp_path) if layout is BRIGHTKITE else path
    workload = prepare_checkins(spark, [path], out, layout, CheckinOptions(cell=side))
    assert workload.rows == {"read": read, "kept": read - sum(quarantined.values()), "quarantined": quarantined}
    assert (len(workload.topics), len(workload.users)) == (cells, users)
    assert_read_like_oracle(workload, out, oracle.read([path], oracles), side)


def test_a_set_without_dates_is_refused_and_what_is_missing_is_named(
    spark: SparkSession, shared_data: Path, tmp_path: Path
) -> None:
    for columns, message in {
        "user=label,space": "--columns user=label,space=space: no time (check-ins need user, time, space)",
        "user=label,time=date,space": "no column 'date' for time (it has time, day, poi, space, tid, label, __index_level_0__)",
        "user=label,time,space": "column 'time' (time) has numbers (int64), not dates",
        "user=label,time=day,space": "row 1: column 'day' (time) looks wrong: expected a time such as 2010-10-19T23:55:27Z, "
        "found 'Wednesday' (130,494 of 130,494 rows cannot be read as --format parquet)",
    }.items():
        data, layout = shared_data / "brightkite-weekly" / "data.parquet", lay_over(PARQUET, columns=columns)
        with pytest.raises(WorkloadError) as raised:
            prepare_checkins(spark, [data], tmp_path / "w", layout)
        assert message in str(raised.value)


def test_the_layout_makes_no_difference(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    rows = [
        {
            "who": chance.choice(["Ann, B.", 'the "cat"', "7", "café", "-"]),
            "when": datetime(2010, chance.randint(1, 3), 1, chance.randrange(24), tzinfo=UTC),
            "where": f"{chance.choice([0.5, 1.5, -0.25])} {chance.choice([0.5, 1.25])}",
            "more": chance.choice([None, "x"]),
        }
        for _ in range(300)
    ]
    local = [row | {"when": row["when"].astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None)} for row in rows]
    stamps = [row | {"when": row["when"].timestamp() * 1000} for row in rows]
    columns, files = "user=who,time=when,space=where", {}

    def store(name: str, layout: Layout, text: str) -> None:
        (tmp_path / name).write_text(text)
        files[name] = layout

    with io.StringIO() as text:
        writer = csv.DictWriter(text, ["more", "when", "who", "where"])
        writer.writeheader()
        writer.writerows([row | {"when": row["when"].strftime("%a %d/%m/%y %H:%M")} for row in local])
        said = {"time_formats": ["epoch", "EEE dd/MM/yy HH:mm"], "time_zone": "Asia/Tokyo"}
        store("in.csv", lay_over(CSV, columns=columns, header=True, **said), text.getvalue().replace("\r", ""))
    bare = "".join(f"{row['when']:%Y-%m-%dT%H:%MZ};;{row['who']};;{row['where'].replace(' ', ';;')}\n" for row in rows)
    store("in.txt", lay_over(CSV, columns="time,user,latitude,longitude", delimiter=";;"), bare)
    objects = "".join(json.dumps(row) + "\n" for row in stamps)
    store("in.jsonl", lay_over(JSONL, columns=columns, time_formats=["epoch-ms"]), objects)
    pq.write_table(pa.Table.from_pylist(local), tmp_path / "in.parquet", row_group_size=70)
    files["in.parquet"] = lay_over(PARQUET, columns=columns, time_zone="Asia/Tokyo")

    tables = []
    for name, layout in files.items():
        prepare_checkins(spark, [tmp_path / name], tmp_path / "w", layout, CheckinOptions(cell=0.5))
        found = contents(tmp_path / "w")
        tables.append(
            {name: digest for name, digest in found.items() if not name.startswith(("manifest", "quarantine"))}
        )
        assert json.loads((tmp_path / "w" / "manifest.json").read_text())["generator"]["time_zone"] == layout.time_zone
    assert tables[1:] == tables[:-1]


def test_users_are_left_out_like_the_oracle_leaves_them_out(spark: SparkSession, tmp_path: Path) -> None:
    chance, path = random.Random(8), tmp_path / "in.tsv"
    path.write_bytes("".join(random_lines(400, chance)).encode(errors="surrogateescape"))
    with path.open(
        "a"
    ) as file:  # in New York these are in the last of three months, December to February; in UTC in the second
        file.writelines(f"{user}\t2010-02-01T0{4 + user % 2}:59:59Z\t0.5\t0.5\t1\n" for user in range(8))
    zone, march = "America/New_York", datetime(2010, 3, 1, 5, tzinfo=UTC)
    lots = sampled([str(user) for user in range(8)], 0.7, Streams(3))
    assert 0 < lots.sum() < 8
    wholly = oracle.read([path], window=(None, march))
    for filters, wanted, reasons in (
        (UserFilters(sample=0.7), {"sample": {str(user) for user in range(8) if lots[user]}}, {"not_sampled"}),
        (UserFilters(1.0, "monthly", 31), {"months": 3, "visits": 31}, {"not_every_month", "few_visits"}),
    ):
        layout = replace(GOWALLA, time_zone=zone)
        window = (None, int(march.timestamp()) * 1_000_000)
        options = CheckinOptions(window, filters=filters, seed=3)
        workload = prepare_checkins(spark, [path], tmp_path / "w", layout, options)
        reading = oracle.select(wholly, 1.0, ZoneInfo(zone), **wanted)
        assert reasons <= set(reading.reasons)
        assert_read_like_oracle(workload, tmp_path / "w", reading, 1.0)


def test_positions_come_from_a_file_of_places(spark: SparkSession, tmp_path: Path) -> None:
    checkins, places = tmp_path / "checkins.txt", tmp_path / "pois.txt"
    checkins.write_text(
        "50756\t4f5e\tTue Apr 03 18:00:06 +0000 2012\t240\n"
        "50756\t4b55\tTue Apr 03 18:00:07 +0000 2012\t-180\n"
        "50756\t4f5e\tWednesday Apr 04 18:00:07 +0000 2012\t-180\n"
        "190571\t4c41\tTue Apr 03 18:00:07 +0000 2012\t120\n"
        "221021\tnowhere\tTue Apr 03 18:00:08 +0000 2012\t120\n"
        "221021\t4f5e\tApr 03 18:00:08 +0000 2012\t120\n"
    )
    places.write_text(
        "4c41\t-33.446137\t-70.605\tCoffee Shop\tCL\n"
        '4f5e\t55.696132\t37.557842\tBar, "The" \tRU\n'
        "4f5e\t0.5\t0.5\tnot the first row of this place\tRU\n"
        "4b55\tnorth\twest\tGym\tBR\n"
    )
    workload = prepare_checkins(spark, [checkins], tmp_path / "w", FOURSQUARE, places=([places], FOURSQUARE_PLACES))
    assert workload.topics.names.to_pylist() == ["-34,-71", "55,37"]
    assert [row[1::2] for row in quarantine(tmp_path / "w")] == [
        (2, "bad_position"),
        (5, "bad_position"),
        (6, "bad_time"),
    ]
    assert [source["file"] for source in workload.sources] == ["checkins.txt", "pois.txt"]
    assert workload.generator["places"]["columns"] == "place,latitude,longitude,category,country"
    times = ("%a %b %d %H:%M:%S %z %Y", "%A %b %d %H:%M:%S %z %Y")
    located = oracle.Layout(FOURSQUARE_PLACES.columns)
    reading = oracle.read([checkins], oracle.Layout(FOURSQUARE.columns, times=times), places=([places], located))
    assert_read_like_oracle(workload, tmp_path / "w", reading, 1.0)

    places.write_text("another\t55.696132\t37.557842\tBar\tRU\n")
    with pytest.raises(
        WorkloadError, match=r"line 1: column 2 \(place\) looks wrong: expected a place to which --places"
    ):
        prepare_checkins(spark, [checkins], tmp_path / "w", FOURSQUARE, places=([places], FOURSQUARE_PLACES))


def test_users_are_numbered_by_value_then_by_name() -> None:
    assert sorted(["b", "10", "9", "007", "7", "²", "a"], key=name_key) == ["007", "7", "9", "10", "a", "b", "²"]
    assert sorted(["9" * 5000, "10", "1" + "0" * 5000], key=name_key)[1:] == ["9" * 5000, "1" + "0" * 5000]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [GOOD, "a,b\n", "c,d\n"],
            "line 2: expected 5 fields (user, time, latitude, longitude, place) separated by '\\t' in UTF-8, "
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


def test_a_field_that_looks_wrong_is_called_as_the_file_calls_it(spark: SparkSession, tmp_path: Path) -> None:
    columns = "user=who,time=when,space"
    for name, layout, line, message in (
        (
            "in.jsonl",
            lay_over(JSONL, columns=columns),
            '{"who": 1, "when": 12.5, "space": "1 2"}',
            "in.jsonl: line 1: key 'when' (time) looks wrong: expected a time such as 2010-10-19T23:55:27Z, found '12.5' "
            "(2 of 2 rows cannot be read as --format jsonl)",
        ),
        (
            "in.csv",
            lay_over(CSV, columns=columns, header=True),
            "who,when,space",
            "in.csv: line 2: column 'when' (time) looks wrong",
        ),
        (
            "in.csv",
            lay_over(CSV, columns=columns, header=True),
            'who,"when",space,"',
            "in.csv: line 2: expected as many fields",
        ),
    ):
        (tmp_path / name).write_text(2 * f"{line}\n" if name == "in.jsonl" else f"who,when,space\n{line}\n")
        with pytest.raises(WorkloadError) as raised:
            prepare_checkins(spark, [tmp_path / name], tmp_path / "w", layout)
        assert message in str(raised.value)


def test_damaged_and_hollow_gzip_files_are_named(spark: SparkSession, tmp_path: Path) -> None:
    good, cut, hollow = tmp_path / "good.tsv", tmp_path / "cut.gz", tmp_path / "hollow.gz"
    good.write_text(GOOD)
    cut.write_bytes(gzip.compress("".join(random_lines(2000, random.Random(1))).encode(errors="replace"))[:-400])
    hollow.write_bytes(gzip.compress(b""))
    for session in (spark, None):
        with pytest.raises(WorkloadError, match=r"cut\.gz: damaged gzip file"):
            prepare_checkins(session, [good, cut], tmp_path / "w", GOWALLA)
        with pytest.raises(WorkloadError, match=r"hollow\.gz: the file is empty"):
            prepare_checkins(session, [good, hollow], tmp_path / "w", GOWALLA)


def test_only_a_workload_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path, folder = tmp_path / "in.tsv", tmp_path / "w"
    path.write_text(GOOD)
    folder.mkdir()
    for name, content, message in (
        (
            "manifest.json",
            '{"format": "something else"}',
            r"contains 'manifest\.json', which is not part of a workload",
        ),
        ("manifest.json", '{"files": {"users.parquet": "0"}}', "contains 'notes"),
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
    rows = judge_checkins(lines, GOWALLA, Box(-20, 177, -15, -175), (None, None)).where("reason IS NULL").collect()
    assert [row["longitude"] for row in rows] == [-180, -179, 177, 180]


@pytest.mark.parametrize(
    "option", [{"cell": 0.0}, {"cell": float("nan")}, {"cell": 1e-9}, {"friends": -1}, {"size": 2**31}]
)
def test_options_out_of_range_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(WorkloadError, match=f"{next(iter(option))} is .*, allowed"):
        CheckinOptions(**option)
