"""Rows of any layout: every field as in the file, at its true place, and no row that stops the reading."""

from __future__ import annotations

import bz2
import datetime as dt
import decimal
import gzip
import json
import lzma
import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from test_traces_sources import zstd

from sim.base.errors import WorkloadError
from sim.workloads.traces.layouts import CSV, JSONL, PARQUET, TSV, Layout, guess_layout, lay_over
from sim.workloads.traces.rows import read_rows
from sim.workloads.traces.session import partitioned
from sim.workloads.traces.sources import find_sources, link_sources
from sim.workloads.traces.times import example_time, parse_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = ("user", "time", "size")


def rows_of(
    spark: SparkSession, folder: Path, paths: list[Path], layout: Layout, partitions: int = 3
) -> list[tuple[Any, ...]]:
    """(source, line, the fields, raw) of all rows, in order."""
    link_sources(find_sources(paths), folder / "inputs")
    session = partitioned(spark, partitions, layout.time_zone)
    rows = sorted(read_rows(session, folder / "inputs", layout, FIELDS).collect())  # by source, block and row
    fields = [field for field in FIELDS if field in rows[0].__fields__]
    found, lines = [], Counter[int]()
    for row in rows:
        lines[row["source"]] += 1
        if not (layout.header and lines[row["source"]] == 1):
            texts = tuple(row[field] for field in fields) if row["parsed"] else None
            found.append((row["source"], lines[row["source"]], texts, row["raw"]))
    return found


QUOTED = [
    ("7,t,1", ("7", "t", "1")),
    ('"7","t","1"', ("7", "t", "1")),
    ('"7, or 8","say ""t""",""', ("7, or 8", 'say "t"', "")),
    ('7,5" disk,', None),
    ('second line of a field",t,1', None),
    (",,", ("", "", "")),
    ('"""",",",","', ('"', ",", ",")),
    ('7,"t\r,1",', ("7", "t\r,1", "")),
    ('"7,t,1', None),
    ('"7"8,t,1', None),
    ("7,t", None),
    ('"7,t",1', None),
    ("7,t,1,", None),
    ("", None),
    ('"' + "x" * 200_000 + '",t,' + "y," * 3, None),
    ('"' + '""' * 200_000 + '",t,' + "y" * 200_000, ('"' * 200_000, "t", "y" * 200_000)),
    ("," * 100_000 + '"', None),
]


def test_quoted_fields_hold_delimiters_and_quotes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{line}\n" for line, _ in QUOTED), newline="")
    found = rows_of(spark, tmp_path, [path], lay_over(CSV, columns=",".join(FIELDS)))
    assert [row[1:3] for row in found] == [(number, fields) for number, (_, fields) in enumerate(QUOTED, 1)]
    assert [row[3] for row in found] == [line for line, _ in QUOTED]


def test_columns_are_found_by_name_in_each_file(spark: SparkSession, tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "b.csv.gz"
    plain.write_bytes(b'\xef\xbb\xbftime,"the ""user"""\r\n1,2\r\n3,4\r\n5\r\n')
    packed.write_bytes(gzip.compress(b'"the ""user""",other,time\na,b,c\n'))
    layout = lay_over(CSV, columns='user=the "user",time', header=True)
    assert rows_of(spark, tmp_path, [plain, packed], layout) == [
        (0, 2, ("2", "1"), "1,2"),
        (0, 3, ("4", "3"), "3,4"),
        (0, 4, None, "5"),
        (1, 2, ("a", "c"), "a,b,c"),
    ]


def test_lines_of_json_are_one_object_each(spark: SparkSession, tmp_path: Path) -> None:
    lines = {
        b'\xef\xbb\xbf{"a.b": 3, "time": "x", "`n": 1.5}': ("3", "x", "1.5"),
        b'{"time": "\\u0041", "A.B": 1, "`n": {"m": [1]}}': (None, "A", '{"m":[1]}'),
        b'{"a.b": null}': (None, None, None),
        b"[1]": None,
        b"": None,
        b'{"a.b": 1} {"a.b": 2}': None,
        b'{"a.b": NaN}': None,
        b"{'a.b': 1}": None,
        b'{"a.b": "caf\xe9"}': None,
        b'{"a.b": ' + b"[" * 5000: None,
    }
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines))
    found = rows_of(spark, tmp_path, [path], lay_over(JSONL, columns="user=a.b,time,size=`n"))
    assert [row[1:3] for row in found] == list(enumerate(lines.values(), 1))


def test_compressed_files_are_read_by_content_whatever_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """Their rows bear the numbers that they have in what is unpacked; headers and Parquet are found there too."""
    text = b"time,user\n" + b"".join(b"%d,%d\n" % (n, n % 7) for n in range(2000)) + b"broken\n"
    packed = {"a.csv": gzip.compress, "b.gz": bytes, "c.txt": bz2.compress, "d.bz2": lzma.compress, "e.xz": zstd}
    paths = [tmp_path / name for name in packed]
    for path in paths:
        path.write_bytes(packed[path.name](text))
    found = rows_of(spark, tmp_path, paths, lay_over(CSV, columns="user,time", header=True))
    assert len(found) == len(paths) * 2001
    for number in range(len(paths)):
        assert [row[1:] for row in found if row[0] == number] == [
            *((n + 2, (str(n), str(n % 7)), f"{n},{n % 7}") for n in range(2000)),
            (2002, None, "broken"),
        ]

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"user": ["a", "b"]}), sink)
    for number, pack in enumerate(packed.values()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "in.dat").write_bytes(pack(sink.getvalue().to_pybytes()))
        layout = lay_over(guess_layout(folder / "in.dat"), columns="user")
        assert [row[1:3] for row in rows_of(spark, folder, [folder / "in.dat"], layout)] == [(1, ("a",)), (2, ("b",))]


def test_a_list_an_object_and_true_are_no_names_but_texts_that_look_like_them_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = {
        '["a","b"]': None,
        '{"a": 1}': None,
        "true": None,
        "false": None,
        '"true"': "true",
        "7": "7",
        "null": None,
    }
    values |= {'"[a]"': "[a]", '"[\\"a\\"]"': '["a"]', '"{"': "{", '{"a": 1, "a": 2}': None}
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"who": {value}, "size": [{n}]}}\n' for n, value in enumerate(values)))
    found = rows_of(spark, tmp_path, [path], lay_over(JSONL, columns="user=who,size"))
    names = [(value, f"[{n}]") for n, value in enumerate(values.values())]
    assert [row[2] for row in found] == [
        name if name[0] is not None or value == "null" else None for name, value in zip(names, values, strict=True)
    ]


def test_columns_of_any_type_may_stand_beside_those_that_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Those that can be no name are refused as one, by their type."""
    moment = dt.datetime(2020, 1, 1)
    odd = {
        "lists": pa.array([["a", "b"]]),
        "times": pa.array([[moment]], pa.list_(pa.timestamp("ns"))),
        "objects": pa.array([{"at": dt.time(1)}]),
        "maps": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "flags": pa.array([True]),
        "long": pa.array([decimal.Decimal(1)], pa.decimal256(60, 2)),
    }
    nothing = {"nulls": pa.nulls(1), "nan": pa.array([math.nan])}
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": ["7"], **odd, **nothing}), path)
    assert rows_of(spark, tmp_path, [path], lay_over(PARQUET, columns="user=id,size=nan"))[0][2] == ("7", None)
    for name in odd:
        shutil.rmtree(tmp_path / "inputs")
        with pytest.raises(WorkloadError) as raised:
            rows_of(spark, tmp_path, [path], lay_over(PARQUET, columns=f"user={name}"))
        said = f"in.parquet: column '{name}' (user) has the type {pq.read_schema(path).field(name).type}, which cannot be read"
        assert f"{said} (expected a text, a number, a date or a time in each row)" in str(raised.value)


def test_values_of_parquet_become_text_without_loss(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2010, 10, 19, 23, 55, 27, 123456)
    values = {
        "2010-10-19T23:55:27.123456": [pa.array([moment], pa.timestamp(unit)) for unit in ("us", "ns")],
        "2010-10-19T23:55:27.123456Z": [pa.array([moment], pa.timestamp(unit, "Asia/Tokyo")) for unit in ("us", "ns")],
        "2010-10-19": [pa.array([moment.date()])],
        str(2**64 - 1): [pa.array([2**64 - 1], pa.uint64())],
        "7": [pa.array([7], kind) for kind in (pa.int8(), pa.uint8(), pa.uint16(), pa.uint32(), pa.int64())],
        "caf\u00e9": [pa.array(["caf\u00e9"], kind) for kind in (pa.large_string(), pa.string_view(), pa.binary())],
        "a": [pa.array(["a"]).dictionary_encode()],
        "0.1": [pa.array([0.1], kind) for kind in (pa.float32(), pa.float64())],
    }
    paths = []
    for number, array in enumerate(array for arrays in values.values() for array in arrays):
        paths.append(tmp_path / f"{number:02}.parquet")
        unread = pa.array([dt.time(1)])  # Spark knows no such type
        pq.write_table(pa.table({"a `b`.c": array, "TIME": unread, "Time": ["x"]}), paths[-1])
    found = rows_of(spark, tmp_path, paths, lay_over(PARQUET, columns="user=a `b`.c,time=Time"))
    assert [row[2] for row in found] == [(text, "x") for text, arrays in values.items() for _ in arrays]
    assert json.loads(found[0][3]) == {"a `b`.c": "2010-10-19T23:55:27.123456", "Time": "x"}


def test_times_of_parquet_that_clocks_skipped_stay_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """And are refused as in text; in Paris it was never half past two, but half past two UTC it was."""
    skipped, layout = dt.datetime(2010, 3, 28, 2, 30), lay_over(PARQUET, columns="user,time", time_zone="Europe/Paris")
    for number, (unit, zone) in enumerate((unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        pq.write_table(pa.table({"user": ["a"], "time": pa.array([skipped], pa.timestamp(unit, zone))}), folder / "in")
        link_sources(find_sources([folder / "in"]), folder / "inputs")
        rows = read_rows(partitioned(spark, 1, layout.time_zone), folder / "inputs", layout, FIELDS)
        [[micros]] = rows.select(parse_time(F.col("time"), layout)).collect()
        assert micros == (None if zone is None else 1_269_743_400_000_000)


def test_rows_of_parquet_are_numbered_whatever_the_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"user": list(range(1000)), "time": ["x"] * 999 + [None]}), path, row_group_size=100)
    found = rows_of(spark, tmp_path, [path], lay_over(PARQUET, columns="user,time"), partitions=8)
    assert [(line, fields[0]) for _, line, fields, _ in found] == [(n + 1, str(n)) for n in range(1000)]
    assert found[-1][2:] == (("999", None), '{"user":999,"time":null}')


def test_times_in_several_formats_and_zones(spark: SparkSession) -> None:
    layout = lay_over(
        TSV,
        time_formats=["iso", "EEE MMM dd HH:mm:ss Z yyyy", "dd/MM/yyyy[ HH:mm]", "epoch-ms"],
        time_zone="Europe/Paris",
    )
    texts = {
        "2010-07-01": "2010-06-30T22:00",
        "2010-07-01 12:00Z": "2010-07-01T12:00",
        "2010-07-01T12:00:00.123456789": "2010-07-01T10:00:00.123456",
        "2010-03-28T01:59": "2010-03-28T00:59",
        "2010-03-28T02:30": None,  # an hour that clocks in Paris skipped
        "2010-03-28 02:59:59.999": None,
        "28/03/2010 02:30": None,
        "2010-03-28T03:00": "2010-03-28T01:00",
        "2010-03-28T02:30+01:00": "2010-03-28T01:30",
        "2010-03-28": "2010-03-27T23:00",
        "2010-10-31T02:30": "2010-10-31T00:30",  # the first of the two that they showed
        "Tue Apr 03 18:00:06 +0000 2012": "2012-04-03T18:00:06",
        "Foo Apr 03 18:00:06 +0000 2012": None,
        "03/04/2012": "2012-04-02T22:00",
        "1287532527500": "2010-10-19T23:55:27.5",
        "-1e3": "1969-12-31T23:59:59",
        "99999999999999999": None,
        "1e999999999": None,
        "0000-01-01": None,
        "0001-06-01": None,  # what programs write for no time
        "9999-12-31T23:59:59Z": None,
        "253402300799999": None,
        "2010-02-30": None,
        "": None,
    }
    session = partitioned(spark, 1, layout.time_zone)
    frame = session.createDataFrame(list(enumerate(texts)), "number int, text string")
    found = frame.select(parse_time(F.col("text"), layout)).collect()
    start = dt.datetime(1970, 1, 1)
    told = [None if row[0] is None else start + dt.timedelta(microseconds=row[0]) for row in found]
    assert told == [text and dt.datetime.fromisoformat(text) for text in texts.values()]


def test_a_day_begins_even_where_clocks_skip_its_midnight_and_a_bound_may_stand_for_ever(spark: SparkSession) -> None:
    layout = lay_over(TSV, time_zone="America/Sao_Paulo")
    texts = ["2010-10-17", "2010-10-17T00:30", "2010-10-17T01:00", "9999-12-31", "0001-01-02"]
    frame = partitioned(spark, 1, layout.time_zone).createDataFrame([(text,) for text in texts], "text string")
    text = F.col("text")
    rows = frame.select(parse_time(text, layout), parse_time(text, layout, bound=True)).collect()
    assert [row[0] for row in rows] == [1_287_284_400_000_000, None, 1_287_284_400_000_000, None, None]
    assert None not in [row[1] for row in rows[3:]]


@pytest.mark.parametrize(
    ("content", "layout", "message"),
    [
        (
            b"time,usr\n1,2\n",
            {"columns": "user=user,time", "header": True},
            "no column 'user' for user, did you mean 'usr'?",
        ),
        (
            b"time,user,user\n",
            {"columns": "user=user,time", "header": True},
            "two columns 'user', one of them for user",
        ),
        (b"\xff\n", {"columns": "user=user", "header": True}, "line 1: no header that can be read"),
        (b"PAR1", {"columns": "user"}, "a Parquet file; give --format parquet"),
        (b"", {"columns": "user", "time_formats": ["yyyy-MM-dd {"]}, "'yyyy-MM-dd {': not a datetime pattern of Spark"),
    ],
)
def test_what_a_file_lacks_is_told(
    spark: SparkSession, tmp_path: Path, content: bytes, layout: dict[str, Any], message: str
) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "000000.txt").symlink_to(tmp_path / "in.csv")
    with pytest.raises(WorkloadError) as raised:
        read_rows(spark, tmp_path / "inputs", lay_over(CSV, **layout), FIELDS)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("user=label", "no column 'label' for user (it has id, time, clock)"),
        (
            "user=id,time",
            "column 'time' (time) has numbers (int64), not dates: name a column that has dates",
        ),
        ("user=clock", "column 'clock' (user) has the type time64[us], which cannot be read"),
    ],
)
def test_what_a_parquet_file_lacks_is_told(spark: SparkSession, tmp_path: Path, columns: str, message: str) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": [1], "time": [976], "clock": [dt.time(1)]}), path)
    with pytest.raises(WorkloadError) as raised:
        rows_of(spark, tmp_path, [path], lay_over(PARQUET, columns=columns))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        ("yyyy-MM-dd'T'HH:mm[:ss[.SSS]][XXX]", "2010-10-19T23:55"),
        ("yyyy-MM-dd HH[:mm", "2010-10-19 23"),
        ("yyyy-MM-dd '['HH:mm']'", "2010-10-19 [23:55]"),
        ("[yyyy-MM-dd]", "2010-10-19"),
        ("EEE dd MMM yyyy", "Tue 19 Oct 2010"),
        ("epoch", "1287532527.5"),
    ],
)
def test_an_example_of_a_time(spark: SparkSession, pattern: str, example: str) -> None:
    assert example_time(spark, replace(CSV, time_formats=(pattern,))) == example
