"""Kernels validate rows as Spark's expressions do, with the same values, whatever a file contains."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from sim.base.randomness import Streams
from sim.workloads.traces import event_pipeline, follow_pipeline, pipeline
from sim.workloads.traces.checkins import BOXES
from sim.workloads.traces.follow_tables import PRESETS, FollowTable, free_trace
from sim.workloads.traces.layouts import (
    CSV,
    FOURSQUARE,
    FOURSQUARE_PLACES,
    GOWALLA,
    JSONL,
    PARQUET,
    TSV,
    Layout,
    lay_over,
)
from sim.workloads.traces.session import partitioned
from sim.workloads.traces.shelves import Shelf
from sim.workloads.traces.spark_tasks import file_in_tasks
from sim.workloads.traces.time_kernels import example_of, parse_times, uncovered, understood
from sim.workloads.traces.times import example_time, parse_time
from sim.workloads.traces.workshop import TraceTable, Workshop, open_workshop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [
    "7",
    "07",
    "",
    " ",
    "  ",
    " a",
    "a ",
    "Ann, B.",
    'x"y',
    "caf\u00e9",
    "\u2028",
    "\u00a0",
    "\t",
    "nul\0",
    "\r",
    "\ufeff",
]
NUMBERS = [
    *("30.5", " 30.50 ", "-97.5", "+1", "1.", ".5", "-.5", ".", "", "0", "-0", "0.0", "1e1", "1E-3", "1e999", "1e-400"),
    *("NaN", "nan", "Infinity", "-inf", "0x10", "30.5d", "90", "90.0000000000001", "180", "-180.5", "12,5", "1_0"),
    *("40.7385839999999991", "0.1000000000000000055511151231257827", "9" * 400, "1" + "0" * 30, "--1", "1 2", "\u0663"),
    *("5\u2028", "5\x0b", "5\u0085", "4.9e-324", "2.2250738585072011e-308", "00012.5"),
]
PAIRS = [
    f"{a}{b}{c}"
    for a in ("40.7", "", " 1")
    for b in (" ", ",", ";;", "\t ", "\u00a0")
    for c in ("-74.0", "x ", "2\u2028", "")
]
WEEKDAYS = ["Monday", "mon", " SUNDAY ", "Saturday", "wednes", "", "\u212aon", "7", "friday\r"]
MINUTES = ["0", "59", "60", " 83 ", "1439", "1440", "-1", "7.0", "", "00007", "12x", "\u0663"]
CLOCKS = ["23:55", "23:55:27", "7:05", "", "24:00", "0:00", " 01:02"]
TIMES = [
    *(
        "2010-10-19T23:55:27Z",
        "2010-10-19t23:55:27z",
        "2010-10-19T23:55:27.5Z",
        "2010-10-19T23:55:27.1234567Z",
        "2010-10-19",
    ),
    *(
        "2010-10-19T23:55:27.123456+02:00",
        "2010-10-19T23:55:27-18:00",
        "2010-10-19T23:55:27+18:01",
        "2010-10-19T23:55:27+02",
    ),
    *(
        "2010-10-19T23:55:27+0200",
        "2010-10-19 23:55",
        "2010-10-19 23:55:27.123456789",
        "2010-10-19T24:00:00Z",
        "2010-1-9",
    ),
    *(
        "2010-10-19T23:60:00Z",
        "2010-10-19T23:55:60Z",
        "2010-02-29T00:00:00Z",
        "2012-02-29T00:00:00Z",
        "2010-13-01",
        "2010-00-10",
    ),
    *(
        "0000-10-19T23:55:27Z",
        "0001-06-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "+02010-10-19T23:55:27Z",
        "+12010-10-19T00:00:00Z",
        "+912010-10-19T00:00:00Z",
        "+002010-10-19T00:00:00Z",
    ),
    *(
        "-2010-10-19T23:55:27Z",
        "20101-10-19T23:55:27Z",
        " 2010-10-19T23:55:27Z",
        "2010-10-19T23:55:27Z ",
        "2010-10-19T23:55:27",
    ),
    *(
        "2010-03-28T02:30",
        "2010-03-28T01:59:59.9",
        "2010-10-31T02:30",
        "2010-10-31T01:30",
        "1900-01-01",
        "1583-01-01",
        "2030-07-01",
    ),
    *("2010-10-17", "2010-10-17T00:30", "2011-10-30 02:30", "1911-03-10T23:55", "2038-03-28 02:30"),
    *("Tue Apr 03 18:00:06 +0000 2012", "TUESDAY Apr 03 18:00:06 +0000 2012", "tues apr 3 18:00:06 +0000 2012", "Apr"),
    *("Foo Apr 03 18:00:06 +0000 2012", "Wed Sept 03 18:00:06 -0930 2012", "Thursday Jun 30 23:59:59 +0000 2012"),
    *(
        "3/4/2012",
        "03/04/2012 05:06",
        "003/0004/2012 05:06",
        "31/04/2012",
        "9" * 25 + "/04/2012",
        "-3/4/2012",
        "+3/4/2012",
    ),
    *(
        "1287532527",
        "1287532527.5",
        "1287532527.1234567",
        "1287532527.9999995",
        "-5.25",
        "+5",
        "1e3",
        "1.5e9",
        "1e99",
        "0e99",
        "0e37",
        "1e17",
        "1E+9",
    ),
    *(
        "253402300799.999999",
        "253402300800",
        "-62135596800",
        "-62135596801",
        "9" * 30,
        "1287532527500",
        "1.",
        ".5",
        " 7 ",
        "7\u2028",
    ),
    *("", " ", "yesterday", "\u0662\u0660\u0661\u0660-01-01", "2010\u201310\u201319", "NULL", "0"),
]
FORMATS = [
    "iso", "epoch", "epoch-ms", *GOWALLA.time_formats, *FOURSQUARE.time_formats, "d/M/yyyy[ HH:mm]", "dd/MM/yyyy HH:mm",
    "yyyy-M-d", "yyyy-MM-dd'T'HH:mm:ss.SSS", "EEEE dd-MMM-yyyy", "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]", "yyyy/MM/dd H:m:s",
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "+02:00", "Europe/Paris", "America/Sao_Paulo", "Australia/Lord_Howe"])
def test_times_are_the_same_in_every_format_and_zone(spark: SparkSession, zone: str) -> None:
    rng = random.Random(zone)
    broken = (
        text[:at] + rng.choice(["", "0", "9", " ", "x", ":"]) + text[at + rng.randrange(2) :]
        for text in TIMES * 8
        for at in [rng.randrange(len(text) + 1)]
    )
    texts = [*TIMES, *broken]
    frame = partitioned(spark, 1, zone).createDataFrame([(text,) for text in texts], "text string")
    for bound in (False, True):
        layouts = [lay_over(TSV, time_formats=[pattern], time_zone=zone) for pattern in FORMATS]
        layouts.append(lay_over(TSV, time_formats=["iso", "dd/MM/yyyy HH:mm", "epoch"], time_zone=zone))
        wanted = frame.select(*(parse_time(F.col("text"), layout, bound=bound) for layout in layouts)).toArrow()
        for layout, column in zip(layouts, wanted.columns, strict=True):
            micros, found = parse_times(pa.array([*texts, None]), layout, bound=bound)
            told = [int(time) if there else None for time, there in zip(micros, found, strict=True)]
            differ = [row for row in zip(texts, told, column.to_pylist(), strict=False) if row[1] != row[2]]
            assert not differ, (layout.time_formats, bound)
            assert told[-1] is None


def test_examples_of_times_are_the_same(spark: SparkSession) -> None:
    for pattern in FORMATS:
        for zone in ("UTC", "Europe/Paris"):
            layout = lay_over(TSV, time_formats=[pattern], time_zone=zone)
            assert example_of(layout) == example_time(partitioned(spark, 1, zone), layout)


def test_patterns_in_which_digits_touch_or_letters_are_not_known_are_left_to_spark() -> None:
    for pattern in (
        "yyyyMMdd",
        "dd/MM/yyyy hh:mm a",
        "yyyy-MM-dd HH:mm:ss.SSSX",
        "yyyy-DDD",
        "yyyy-MM-dd mm",
        "[yyyy-MM-dd",
    ):
        assert understood(pattern) is None
    assert uncovered(lay_over(TSV, time_formats=["iso", "yyyyMMdd"])) == "yyyyMMdd"


def nasty(rng: random.Random, layout: Layout, values: Sequence[Sequence[str]], rows: int) -> bytes:
    """A file whose fields are drawn from these, with quotes, ends of lines, marks and bytes where nobody expects them."""
    lines = [layout.delimiter.join(f"f{n}" for n in range(len(values))).encode()] if layout.header else []
    for _ in range(rows):
        fields = [rng.choice(some) for some in values]
        if layout.quote:
            fields = [f'"{field.replace(chr(34), chr(34) * 2)}"' if rng.random() < 0.3 else field for field in fields]
        if rng.random() < 0.05:
            fields = fields[: rng.randrange(len(fields))] if rng.random() < 0.5 else [*fields, rng.choice(["", "more"])]
        line = layout.delimiter.join(fields).encode()
        spoil = rng.random()
        if spoil < 0.1:
            at = rng.randrange(len(line) + 1)
            line = (
                line[:at]
                + rng.choice([b'"', b"\r", b"\n", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0"])
                + line[at:]
            )
        elif spoil < 0.15:
            line = b"\xef\xbb\xbf" + line
        lines.append(line + b"\r" * (rng.random() < 0.2))
    content = b"\n".join(lines)
    return rng.choice([b"", b"\xef\xbb\xbf"]) + content + rng.choice([b"", b"\n", b"\r\n", b"\n\n"])


def rows_on(shelf: Shelf) -> tuple[Any, ...]:
    """All that is on a shelf: rows of use and of none, and how many there are with each fault, and the first of them."""
    usable = [
        (source, line, *(batch[name][n].as_py() for name in sorted(batch.schema.names) if name != "row"))
        for source, lines, batch in shelf.usable()
        for n, line in enumerate(lines.tolist())
    ]
    bad = [
        (piece.source, row["row"] + shift, row["raw"], row["reason"])
        for piece, shift in zip(shelf.pieces, shelf.shifts(), strict=True)
        for batch in shelf.batches(piece, "bad")
        for row in batch.to_pylist()
    ]
    return usable, bad, shelf.faults, {fault: shelf.first(fault) for fault in shelf.faults if fault[0]}


def assert_judged_alike(shop: Workshop, table: TraceTable) -> None:
    found = rows_on(shop.read(table, 0, ""))
    assert table.uncovered is None
    folder, spark = shop.work.below("expressions"), shop.session.sparkContext
    numbered = table.layout.kind == "parquet"
    pieces = file_in_tasks(
        table.expressions(shop.session, shop.link(0)), folder, table.layout.header, numbered, spark.accumulator(0)
    )
    wanted = rows_on(Shelf(folder, pieces))
    assert found[2] == wanted[2]
    assert found[1] == wanted[1]
    assert found[0] == wanted[0]
    assert found[3] == wanted[3]
    assert found[0]
    assert found[1]


SPACED = lay_over(
    CSV, columns="user,_,space,time", time_formats=["iso", "epoch"], header=True, time_zone="Europe/Paris"
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("layout", "values"),
    [
        (GOWALLA, (NAMES, TIMES[:8], NUMBERS, NUMBERS, ["p"])),
        (lay_over(CSV, columns="user,time,latitude,longitude"), (NAMES, TIMES, NUMBERS[:9], NUMBERS[:9])),
        (SPACED, (NAMES, ["x", ""], PAIRS, TIMES)),
        (lay_over(TSV, columns="time,user,latitude,longitude", delimiter="::"), (TIMES, NAMES, NUMBERS[:9], ["7"])),
        (lay_over(CSV, columns="user=f1,time=f0,space=f3", header=True), (TIMES[:9], NAMES, ["x"], PAIRS)),
        (lay_over(CSV, columns="user,weekday,minute,space"), (NAMES, WEEKDAYS, MINUTES, PAIRS)),
        (lay_over(TSV, columns="clock,date,user,space"), (CLOCKS, TIMES[:12], NAMES, PAIRS)),
    ],
)
def test_checkins_are_judged_alike(
    spark: SparkSession, tmp_path: Path, layout: Layout, values: Sequence[Sequence[str]], seed: int
) -> None:
    rng = random.Random(seed)
    paths = [tmp_path / f"{number}" for number in range(3)]
    for path in paths:
        path.write_bytes(nasty(rng, layout, values, 400))
    options = pipeline.CheckinOptions(
        (0 if "weekday" in layout.columns else 10**15, 1_500_000_000_000_000),
        box=BOXES["us-paper"] if seed and layout is GOWALLA else None,
    )
    with open_workshop(spark, [paths], tmp_path / "w", layout.time_zone, 7, lambda *_: None) as shop:
        assert_judged_alike(shop, pipeline._table(shop, layout, None, options))


def test_places_are_looked_up_alike(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(1)
    files = {
        "checkins": nasty(rng, FOURSQUARE, (NAMES[:9], NAMES, ["Tue Apr 03 18:00:06 +0000 2012"], ["60"]), 500),
        "places": nasty(rng, FOURSQUARE_PLACES, (NAMES, NUMBERS, NUMBERS, ["cafe"], ["DE"]), 60),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    groups = [[tmp_path / name] for name in files]
    with open_workshop(spark, groups, tmp_path / "w", "UTC", 5, lambda *_: None) as shop:
        options = pipeline.CheckinOptions()
        assert_judged_alike(shop, pipeline._table(shop, FOURSQUARE, FOURSQUARE_PLACES, options))


FLOATS = [
    40.5,
    -74.25,
    0.0,
    -0.0,
    1e-3,
    9.99e-4,
    1e7,
    9999999.5,
    1 / 3,
    1e300,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    None,
    7.0,
]
MOMENTS = [0, 1, -1, 1_287_532_527_123_456, 1_287_532_527_000_000, -62_135_596_800_000_000, 4 * 10**15, None]


def drawn(rng: random.Random, values: Sequence[Any], rows: int, kind: pa.DataType) -> pa.Array:
    return pa.array([rng.choice(values) for _ in range(rows)], kind)


@pytest.mark.parametrize("user", ["name", "number", "fraction", "single", "coded"])
def test_parquet_is_judged_alike(spark: SparkSession, tmp_path: Path, user: str) -> None:
    rng, rows = random.Random(user), 600
    odd = [*NAMES, None, "back\\slash", "\x1b\x00", "\u007f", "\U0001f600"]
    times = {
        "name": pa.timestamp("us", "UTC"), "number": pa.timestamp("ms", "UTC"), "fraction": pa.timestamp("us"),
        "single": pa.timestamp("ns", "UTC"), "coded": pa.date32(),
    }  # fmt: skip
    moments = [
        None if time is None else time // {"ms": 1000}.get(getattr(times[user], "unit", ""), 1) for time in MOMENTS
    ]
    if user == "single":
        moments = [None if time is None else time * 1000 + 7 for time in MOMENTS if (time or 0) > -(10**16)]
    if user == "coded":
        moments = [None if time is None else time // 86_400_000_000 for time in MOMENTS]
    table = pa.table(
        {
            "name": drawn(rng, odd, rows, pa.string()),
            "number": drawn(rng, [7, -7, 0, None, 2**60], rows, pa.int64()),
            "fraction": drawn(rng, FLOATS, rows, pa.float64()),
            "single": drawn(rng, [0.1, 1e10, 7.0, 1e-5, math.nan, None, 1 / 3], rows, pa.float32()),
            "coded": drawn(rng, ["a", 'b"', None], rows, pa.string()).dictionary_encode(),
            "yes": drawn(rng, [True, False, None], rows, pa.bool_()),
            'od"d': drawn(rng, [0, 255, None], rows, pa.uint8()),
            "time": drawn(rng, [*moments, *moments[3:5] * 9], rows, times[user]),
            "lat": drawn(rng, FLOATS, rows, pa.float64()),
            "lon": drawn(rng, [-74.25, 9.5], rows, pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "rows", row_group_size=170)
    layout = lay_over(PARQUET, columns=f"user={user},time,latitude=lat,longitude=lon")
    with open_workshop(spark, [[tmp_path / "rows"]], tmp_path / "w", "UTC", 5, lambda *_: None) as shop:
        assert_judged_alike(shop, pipeline._table(shop, layout, None, pipeline.CheckinOptions()))


ACTIONS = [
    "connect",
    "SUBSCRIBE",
    " publish ",
    "deliver",
    "disconnect",
    "unsubscribe",
    "ping",
    "",
    "\u00a0publish",
    "pub",
]
SIZES = [
    "",
    " ",
    "12",
    " 7 ",
    "7.0",
    "7.",
    "7.5",
    "-1",
    "2147483647",
    "2147483648",
    "0" * 5000 + "8",
    "1e3",
    "3\u2028",
    "x",
]


VALUES = [
    *("7", "7.0", "-1.50", "1e5", "1E+2", "-0", "0", "01", "1.", ".5", "+1", "NaN", "Infinity", "9" * 30, "9" * 1200),
    *(
        '"Ann"',
        '"7"',
        '""',
        '" "',
        '"caf\u00e9"',
        r'"\u00e9\n\/"',
        r'"\ud800"',
        r'"\ud83d\ude00"',
        r'"\q"',
        '"tab\t"',
        "'x'",
    ),
    *("null", "true", "false", "[1, 2]", '{"a": {"b": "c"}}', "{}", '"[1]"', '"true"', "nul", "", "[" * 30 + "]" * 30),
]
OBJECTS = [
    *("", "{}", "[]", "7", '"x"', "{", '{"user": 1}{"user": 2}', '{"user": 1},{"user": 2}', '[{"user": 1}]', "null"),
    *(
        '\x0b{"user": 1}',
        '{"user": 1}\x0c',
        '{"user": 1}\u2028',
        '{"user": 1,}',
        '{"user": 1} x',
        '{"user": 1, "user": "b"}',
    ),
    *(
        r'{"\u0075ser": "escaped"}',
        "{'user': 1}",
        "{user: 1}",
        '{"user": 1 /* why */}',
        '{"USER": "capital"}',
        '{"user"}',
    ),
]


@pytest.mark.parametrize("seed", range(2))
def test_json_lines_are_judged_alike(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    layout = lay_over(JSONL, columns="user=user,time=ts,latitude=lat,longitude=lon", time_formats=["iso", "epoch"])

    def line() -> str:
        if rng.random() < 0.15:
            return rng.choice(OBJECTS)
        times = [f'"{time}"' for time in TIMES[:9]]
        numbers = ["40.5", '"-74.25"', "9", "1e1"]
        usual = rng.random() < 0.6
        values = [rng.choice(some if usual else VALUES) for some in (VALUES[:25], times, numbers, numbers)]
        pairs = [
            f'"{key}"{rng.choice([":", " : "])}{value}'
            for key, value in zip(("user", "ts", "lat", "lon"), values, strict=True)
        ]
        rng.shuffle(pairs)
        return "{" + ", ".join(pairs[: rng.choice([4, 4, 4, 3])]) + "}" + rng.choice(["", "", " ", "\r"])

    lines = [line().encode() for _ in range(1500)]
    lines[7] = b'{"user": "\xff"}'
    (tmp_path / "rows").write_bytes(b"\xef\xbb\xbf" * seed + b"\n".join(lines))
    with open_workshop(spark, [[tmp_path / "rows"]], tmp_path / "w", "UTC", 5, lambda *_: None) as shop:
        assert_judged_alike(shop, pipeline._table(shop, layout, None, pipeline.CheckinOptions()))


@pytest.mark.parametrize("seed", range(2))
def test_events_are_judged_alike(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    layout = lay_over(
        CSV if seed else TSV,
        columns="time,action,client,topic,size,publisher",
        header=bool(seed),
        time_formats=["epoch"],
    )
    rng = random.Random(seed)
    (tmp_path / "log").write_bytes(nasty(rng, layout, (TIMES[-45:], ACTIONS, NAMES, NAMES, SIZES, NAMES), 1500))
    options = event_pipeline.EventOptions(words=event_pipeline.stages.action_words("publish=pub,publish=publish"))
    with open_workshop(spark, [[tmp_path / "log"]], tmp_path / "w", "UTC", 5, lambda *_: None) as shop:
        assert_judged_alike(shop, event_pipeline._table(layout, options))


BOUNDED = lay_over(CSV, columns="user,topic,kind,since,until", time_zone="America/Sao_Paulo")
DATED = lay_over(TSV, columns="time,topic,publisher", time_zone="America/Havana")


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (free_trace((BOUNDED, ["a"]), (DATED, ["b"])).tables[0][0], (NAMES, NAMES, NAMES, TIMES, TIMES)),
        (free_trace((BOUNDED, ["a"]), (DATED, ["b"]), "day").tables[1][0], (TIMES, NAMES, NAMES)),
        (free_trace((BOUNDED, ["a"]), (DATED, ["b"]), "month").tables[1][0], (TIMES, NAMES, NAMES)),
        (
            PRESETS["lastfm-hetrec"].tables[2],
            (NAMES, NAMES, ["t"], ["1", "31", "01", "x"], ["2", "12", "13"], ["2010", "1999", "10"]),
        ),
        (PRESETS["lastfm-1k"].tables[0], (NAMES, TIMES[:9], NAMES, NAMES, ["t"], ["t"])),
        (PRESETS["ciaodvd"].tables[1], (NAMES, NAMES, ["g"], ["r"], ["5"], TIMES)),
    ],
)
def test_follows_are_judged_alike(
    spark: SparkSession, tmp_path: Path, table: FollowTable, values: Sequence[Sequence[str]]
) -> None:
    (tmp_path / "rows").write_bytes(nasty(random.Random(3), table.layout, values, 1500))
    with open_workshop(
        spark, [[tmp_path / "rows"]], tmp_path / "w", table.layout.time_zone, 5, lambda *_: None
    ) as shop:
        files = follow_pipeline._table(table, follow_pipeline.FollowOptions((0, 2 * 10**15)), Streams(1))
        assert_judged_alike(shop, files)
