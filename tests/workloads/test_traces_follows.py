"""Follows and events become workloads: every row is a follow, a publication or both, or is in quarantine with its reason."""

from __future__ import annotations

import calendar
import datetime as dt
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles import follows as oracle
from oracles.follows import Event, Follow
from test_follow_log import assert_tells
from test_traces_events import contents, quarantined

from sim.base.errors import WorkloadError
from sim.base.randomness import Streams
from sim.workloads.format.folder import load_workload
from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
from sim.workloads.traces.follow_tables import free_trace, preset_trace
from sim.workloads.traces.layouts import CSV, JSONL, PARQUET, Layout, lay_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLLOWS = lay_over(CSV, columns="user,topic,kind,since,until", time_formats=["epoch"])
EVENTS = lay_over(CSV, columns="time,topic,publisher", time_formats=["epoch"])
START = 1_600_041_600  # 2020-09-14
FOLLOW_ROWS = [
    ("ann,a,artist,,", None),
    ('ann,"b, c",,,', None),
    ("7,a,band,,", None),  # two kinds: the first in their order
    ("ann,a,artist,,\r", "duplicate"),
    (f"10,a,,{START + 10},{START + 20}", None),
    (f"10,a,,{START + 15},{START + 18.5}", "duplicate"),
    (f"10,a,,{START + 20},", None),
    (f"10,silent,,{START - 10},{START + 1}", None),
    (f"10,b,,{START - 10},{START}", "outside_window"),
    (f"10,b,,{START + 86400},", "outside_window"),
    ("", "unparsable"),
    ("ann,a,artist,", "unparsable"),
    (" ,a,artist,,", "unparsable"),
    ("ann,,artist,,", "unparsable"),
    ("caf\udce9,a,,,", "unparsable"),
    ("ann,a,artist,then,", "bad_time"),
    ("ann,a,artist,,2020-09-14", "bad_time"),
    (f"ann,a,artist,{START + 1},{START + 1}", "bad_time"),
]
EVENT_ROWS = [
    (f"{START + 1},a,7", None),
    (f"{START + 1},a,7", None),  # as often as it is told
    (f"{START + 86399.999999},nobody,", None),
    (f"{START},a,caf\u00e9 ", None),
    (",a,7", "bad_time"),
    ("then,a,7", "bad_time"),
    (f"{START},,7", "unparsable"),
    (f"{START},a", "unparsable"),
    (f"{START - 1},a,7", "outside_window"),
    (f"{START + 86400},a,7", "outside_window"),
]
WINDOW = (START * 10**6, (START + 86400) * 10**6)
EXPECTED = oracle.tell(
    [
        *(Follow("ann", "artist a"), Follow("ann", "topic b, c"), Follow("7", "artist a")),
        Follow("10", "artist a", (START + 10) * 10**6),
        Follow("10", "topic silent", None, (START + 1) * 10**6),
    ],
    [
        *(Event((START + 1) * 10**6, "artist a", "7"), Event((START + 1) * 10**6, "artist a", "7")),
        *(Event((START + 86400) * 10**6 - 1, "topic nobody"), Event(START * 10**6, "artist a", "caf\u00e9 ")),
    ],
)


def write(path: Path, rows: list[tuple[str, str | None]]) -> None:
    path.write_text("".join(f"{line}\n" for line, _ in rows), "utf-8", "surrogateescape", newline="")


def test_rows_of_any_order_and_dirt_end_in_the_workload_or_in_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    """Files in another order, and any partitions, change nothing in the tables."""
    for name, rows in {"f1": FOLLOW_ROWS[:9], "f2": FOLLOW_ROWS[9:], "e": EVENT_ROWS}.items():
        write(tmp_path / f"{name}.csv", rows)
    for partitions, names in ((1, ("f1", "f2")), (3, ("f2", "f1"))):
        trace = free_trace((FOLLOWS, [tmp_path / f"{name}.csv" for name in names]), (EVENTS, [tmp_path / "e.csv"]))
        out = tmp_path / f"w{partitions}"
        prepare_follows(spark, trace, out, FollowOptions(window=WINDOW), partitions=partitions)
    one, other = contents(tmp_path / "w1"), contents(tmp_path / "w3")
    assert {name for name in one if one[name] != other[name]} == {"manifest.json", "quarantine/part-00000.parquet"}
    reasons = [Counter(reason for *_, reason in quarantined(tmp_path / name)) for name in ("w1", "w3")]
    assert reasons[0] == reasons[1]
    workload = load_workload(tmp_path / "w1")
    assert_tells(workload, EXPECTED)
    assert workload.publications.size.tolist() == [100] * 4
    told = [
        (f"{name}.csv", line, text.removesuffix("\r").replace("\udce9", "\ufffd"), reason)
        for name, rows in (("f1", FOLLOW_ROWS[:9]), ("f2", FOLLOW_ROWS[9:]), ("e", EVENT_ROWS))
        for line, (text, reason) in enumerate(rows, 1)
        if reason
    ]  # fmt: skip
    assert quarantined(tmp_path / "w1") == told
    assert workload.rows == {"read": 28, "kept": 28 - len(told), "quarantined": dict(reasons[0])}


def test_json_lines_and_parquet_with_days_that_are_spread(spark: SparkSession, tmp_path: Path) -> None:
    """Dates in Paris, on one of which the clocks change; a sample leaves out the follows of others, not what they publish."""
    rows = [{"who": str(user), "of": topic} for user in range(40) for topic in "ab"]
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    days = [dt.date(2021, 3, 27 + number % 3) for number in range(300)]
    table = {"day": pa.array(days, pa.date32()), "topic": ["a"] * 300, "by": pa.array(range(300), pa.int64())}
    pq.write_table(pa.table(table), tmp_path / "e.parquet")
    trace = free_trace(
        (lay_over(JSONL, columns="user=who,topic=of", time_zone="Europe/Paris"), [tmp_path / "f.jsonl"]),
        (lay_over(PARQUET, columns="time=day,topic,publisher=by", time_zone="Europe/Paris"), [tmp_path / "e.parquet"]),
        "day",
    )  # fmt: skip
    workload = prepare_follows(spark, trace, tmp_path / "w", FollowOptions(period=3600, sample=0.5, seed=3))
    sampled = len(np.unique(np.repeat(np.arange(len(workload.users)), np.diff(workload.interests.indptr))))
    assert 10 < sampled < 30
    assert workload.rows == {"read": 380, "kept": 300 + 2 * sampled, "quarantined": {"not_sampled": 80 - 2 * sampled}}
    assert workload.publications.publisher.tolist() != sorted(workload.publications.publisher.tolist())
    origin = np.datetime64(workload.origin[:-1], "us")
    assert origin == np.datetime64("2021-03-26")  # midnight of Paris is 23:00 of the day before
    starts = [
        np.datetime64(start, "us") for start in ("2021-03-26T23", "2021-03-27T23", "2021-03-28T22", "2021-03-29T22")
    ]
    names = workload.users.names.to_pylist()
    for time, publisher in zip(
        workload.publications.time.tolist(), workload.publications.publisher.tolist(), strict=True
    ):
        day = int(names[publisher]) % 3
        assert starts[day] <= origin + np.timedelta64(round(time * 1e6), "us") < starts[day + 1]
    assert len(set(workload.publications.time.tolist())) > 290
    assert workload.topics.event_rate.tolist() == [300 / (4 * 24), 0.0]


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    return gzip.open(path, "rt", encoding=encoding, newline="\n").read().removesuffix("\n").split("\n")


def test_lastfm_of_hetrec(spark: SparkSession, tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "lastfm-hetrec2011"
    trace = preset_trace("lastfm-hetrec", folder)
    workload = prepare_follows(spark, trace, tmp_path / "w", FollowOptions(period=30 * 86400, seed=7))
    assert workload.rows == {"read": 92_834 + 25_434 + 186_479, "kept": 304_742, "quarantined": {"bad_time": 5}}
    found = pq.read_table(tmp_path / "w" / "quarantine").to_pylist()
    assert sorted(row["raw"].split("\t")[-1] for row in found) == ["1956", "1956", "1956", "1957", "1979"]

    called = dict(line.split("\t")[:2] for line in lines(folder / "artists.dat.gz")[1:])
    plays, friends, tags = (
        [line.removesuffix("\r") for line in lines(folder / f"user_{name}.dat.gz")[1:]]
        for name in ("artists", "friends", "taggedartists")
    )
    follows = [
        Follow(user, f"artist {called.get(artist, artist)}") for user, artist, _ in (row.split("\t") for row in plays)
    ]
    follows += [Follow(user, f"friend {friend}") for user, friend in (row.split("\t") for row in friends)]
    events, key = [], Streams(7).key("workload.moments")
    for row in tags:
        user, artist, _, _, month, year = row.split("\t")
        if int(year) > 2000:
            first = dt.date(int(year), int(month), 1)
            micros = oracle.moment(key, row, first, calendar.monthrange(int(year), int(month))[1])
            events += [
                Event(micros, f"artist {called.get(artist, artist)}", user),
                Event(micros, f"friend {user}", user),
            ]
    assert_tells(load_workload(tmp_path / "w"), oracle.tell(follows, events))
    assert workload.counts["publications"] == 2 * (186_479 - 5)
    assert sum(kind == "artist" for kind in workload.topics.kinds.to_pylist()) == 17_632 + 390


def test_ciaodvd(spark: SparkSession, tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "ciaodvd"
    workload = prepare_follows(spark, preset_trace("ciaodvd", folder), tmp_path / "w")
    assert workload.rows == {"read": 40_133 + 72_665, "kept": 40_133 + 72_665, "quarantined": {}}
    follows = [
        Follow(user, f"friend {friend}")
        for user, friend, _ in (row.split(",") for row in lines(folder / "trusts.txt.gz"))
    ]
    events, key = [], Streams(1).key("workload.moments")
    for row in lines(folder / "movie-ratings.txt.gz"):
        user, film, _, _, _, day = row.split(",")
        micros = oracle.moment(key, row, dt.date.fromisoformat(day), 1)
        events += [Event(micros, f"friend {user}", user), Event(micros, f"film {film}", user)]
        follows.append(Follow(user, f"film {film}", micros))
    assert_tells(workload, oracle.tell(follows, events))
    # 320 reviews are of films that their authors have reviewed before
    assert workload.counts["subscription_events"] == 72_665 - 320
    assert (workload.counts["interests"], workload.counts["publications"]) == (40_133, 2 * 72_665)


def test_lastfm_1k(spark: SparkSession, tmp_path: Path, shared_data: Path) -> None:
    folder = shared_data / "lastfm-1k-sample"
    workload = prepare_follows(spark, preset_trace("lastfm-1k", folder), tmp_path / "w")
    assert workload.rows == {"read": 5_000, "kept": 5_000, "quarantined": {}}
    follows, events, nameless = [], [], 0
    for row in lines(next(folder.iterdir())):
        user, time, artist, name, _, _ = row.split("\t")
        micros = int(dt.datetime.fromisoformat(time).timestamp()) * 10**6
        follows.append(Follow(user, name, micros))
        events.append(Event(micros, name, user))
        nameless += not artist
    assert nameless == 353
    story = oracle.tell(follows, events)
    names = workload.topics.names.to_pylist()
    assert sorted(names) == sorted(story.topics)
    on = dict(zip(names, workload.published().tolist(), strict=True))
    assert on == Counter(event.topic for event in events)
    changes = workload.subscription_events
    rows = zip(changes.time.tolist(), changes.user.tolist(), changes.topic.tolist(), strict=True)
    users = workload.users.names.to_pylist()
    assert {(time, users[user], names[topic], 1) for time, user, topic in rows} == set(story.changes)


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ("user,topic,since", ["ann,a,now"], "f.csv: line 1: column 3 (since) looks wrong: expected a time such as 1287532527.5"),
        ("user,topic", ["a,"], "f.csv: line 1: column 2 (topic) looks wrong: expected a topic, which is not empty, found ''"),
        ("user,topic,until", ["ann,a,1"], "f.csv: 2 rows have no publication, or no follow (outside_window 1)"),
    ],
)  # fmt: skip
def test_follows_that_tell_nothing_are_refused(
    spark: SparkSession, tmp_path: Path, columns: str, rows: list[str], message: str
) -> None:
    (tmp_path / "f.csv").write_text("\n".join(rows))
    (tmp_path / "e.csv").write_text(f"{START},a,\n")
    layout = lay_over(FOLLOWS, columns=columns)
    with pytest.raises(WorkloadError) as caught:
        prepare_follows(
            spark, free_trace((layout, [tmp_path / "f.csv"]), (EVENTS, [tmp_path / "e.csv"])), tmp_path / "w"
        )
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "f.csv"]


def test_what_a_folder_or_a_layout_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "trust.txt").touch()
    for name, folder, message in (
        (
            "ciaodvd",
            tmp_path,
            "no trusts.txt in it, plain or compressed (.gz, .bz2, .xz, .zst), did you mean 'trust.txt'? (--format ciaodvd needs it)",
        ),
        ("ciaodvd", tmp_path / "x", "no such folder; --format ciaodvd needs the folder of its files"),
        ("ciaodvd", tmp_path / "trust.txt", "not a folder; --format ciaodvd needs the folder of its files"),
    ):
        with pytest.raises(WorkloadError) as caught:
            preset_trace(name, folder)
        assert str(caught.value).startswith(f"{folder}: {message}")
    for follows, events, message in (
        (("user", "topics"), EVENTS.columns, "--follows-columns user,topics: no topic, did 'topics' mean it? (follows ne"),
        (FOLLOWS.columns, ("when", "topic"), "--events-columns when,topic: no time (events need time, topic)"),
    ):  # fmt: skip
        with pytest.raises(WorkloadError) as caught:
            free_trace((Layout("x", follows), []), (Layout("x", events), []))
        assert str(caught.value).startswith(message)
