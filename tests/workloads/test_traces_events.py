"""Logs of brokers become event workloads: every row is an event or is kept in quarantine with its place and reason."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles import events as oracle
from test_event_log import assert_tells

from analysis.deliveries import check_deliveries
from sim.api.runs import run
from sim.base.errors import WorkloadError
from sim.scenario.reader import load_scenario
from sim.workloads.format.folder import load_workload
from sim.workloads.format.workload import SESSION_RESUMED
from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
from sim.workloads.traces.events import ACTIONS, DECODED_MQTT, action_words
from sim.workloads.traces.layouts import CSV, JSONL, PARQUET, Layout, encoded, lay_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "time,action,client,topic,size,publisher"

DIRT = [
    ("1600000000.25,connect,c,,,", None),
    ("1600000001,subscribe,c,a/+,,", None),
    ("1600000001,Subscribe , c,a/+,,", None),  # another client: names are taken as they stand
    ("1600000001,subscribe,c,a/+,,", "no_effect"),
    ("1600000001.0000005,PUBLISH,,a/b,17,", None),
    ("1.600000002e9,publish,d,a/b, 20.0 ,", None),
    ("1600000002,publish,d,a/c,,", None),
    ("1600000002.5,deliver,c,a/b,x,d", None),
    ("1600000002.5,deliver,c,a/b,,", None),
    ("1600000003,unsubscribe,c,b,,", "no_effect"),
    ("1600000003,disconnect,e,b,,", "no_effect"),
    ("1600000004,disconnect,c,whatever,-1,nobody", None),
    ("1600000004,disconnect,c,,,", "no_effect"),
    ("1600000005,subscribe,e,a/b,,", None),
    ("1600000005.123456,connect,e,,,\r", None),
    ("", "unparsable"),
    ("1600000001,publish,c,a/b,1", "unparsable"),
    ("1600000001,publish,c,a/b,1,d,", "unparsable"),
    ("1600000001,pub,c,a/b,1,", "unparsable"),
    ("1600000001,,c,a/b,1,", "unparsable"),
    ("1600000001,publish,c,,1,", "unparsable"),
    ("1600000001,publish,c,  ,1,", "unparsable"),
    ("1600000001,publish,c,a/b,-1,", "unparsable"),
    ("1600000001,publish,c,a/b,1.5,", "unparsable"),
    ("1600000001,publish,c,a/b,2147483648,", "unparsable"),
    ("1600000001,subscribe,,a/b,,", "unparsable"),
    ("1600000001,connect, ,,,", "unparsable"),
    ("1600000001,deliver,c,,,d", "unparsable"),
    ("1600000001,publish,caf\udce9,a/b,1,", "unparsable"),
    ("now,publish,c,a/b,1,", "bad_time"),
    (",publish,c,a/b,1,", "bad_time"),
    ("2020-09-13,publish,c,a/b,1,", "bad_time"),
    ("1599999999.999999,publish,c,a/b,1,", "outside_window"),
    ("1600000100,publish,c,a/b,1,", "outside_window"),
]
WINDOW = (1_600_000_000_000_000, 1_600_000_100_000_000)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def quarantined(folder: Path) -> list[tuple[str, int, str, str]]:
    rows = pq.read_table(folder / "quarantine").to_pylist()
    return [(row["source"], row["line"], row["raw"], row["reason"]) for row in rows]


def test_the_mqtt_trace_is_read_as_a_plain_reader_does(spark: SparkSession, tmp_path: Path, shared_data: Path) -> None:
    path = shared_data / "mqtt-iot" / "mqtt_events.tsv.gz"
    workload = prepare_events(spark, [path], tmp_path / "w", DECODED_MQTT)
    columns = ["time", "action", "client", "topic", "size", "qos", "retain"]
    assert_tells(workload, oracle.read([path], columns, "\t", header=True).told())
    assert workload.counts == {
        "users": 10, "topics": 9, "interests": 0, "subscription_events": 7, "publications": 13_985, "movements": 0,
        "sessions": 10, "deliveries": 19_361,
    }  # fmt: skip
    assert load_workload(tmp_path / "w").counts == workload.counts

    # the capture ends in the middle of a round of publications: four deliveries of it are not in the trace
    experiment = load_scenario({
        "workload": {"kind": "prepared", "path": str(tmp_path / "w")},
        "network": {"brokers": 4, "latency": {"kind": "unit", "rtt": "20ms"}},
        "subscribers": True,
        "variant": [{"name": "all"}, {"name": "before the last round", "horizon": "2761s"}],
    })  # fmt: skip
    whole, before = check_deliveries(run(experiment, tmp_path / "r"), experiment)
    assert whole.differing.to_numpy().tolist() == [
        ["CO-GAS", "c05", 2760, 2761, 1],
        ["Door Lock", "c04", 2760, 2761, 1],
        ["Fan Speed", "c07", 23, 24, 1],
        ["Movement", "c08", 5520, 5521, 1],
    ]
    assert before.sentence() == (
        "19,359 deliveries in the trace, 19,359 simulated: equal for each of 7 pairs of topic and subscriber."
    )


def test_rows_of_any_order_and_dirt_end_as_events_or_in_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    """Later rows stand first, in two files; the partitions change nothing."""
    lines = [line for line, _ in DIRT]
    for name, part in {"late.csv": lines[14:], "early.csv": lines[:14]}.items():
        text = "".join(f"{line}\n" for line in part)
        (tmp_path / name).write_text(text, "utf-8", "surrogateescape", newline="")
    paths = [tmp_path / "late.csv", tmp_path / "early.csv"]
    layout = lay_over(CSV, columns=COLUMNS, time_formats=["epoch"])
    for partitions in (1, 3):
        out = tmp_path / f"w{partitions}"
        options = EventOptions(WINDOW, 5, persistent=True, filters="mqtt")
        workload = prepare_events(spark, paths, out, layout, options, partitions=partitions)
    assert contents(tmp_path / "w1") == contents(tmp_path / "w3")
    reading = oracle.read(paths, COLUMNS.split(","), window=WINDOW, size=5)
    assert_tells(workload, reading.told(persistent=True, filters="mqtt"))
    assert quarantined(out) == reading.quarantine
    reasons = [reason for _, reason in DIRT if reason]
    assert sorted(reason for *_, reason in reading.quarantine) == sorted(reasons)
    assert workload.rows == {
        "read": len(DIRT),
        "kept": len(DIRT) - len(reasons),
        "quarantined": {reason: reasons.count(reason) for reason in dict.fromkeys(sorted(reasons, key=_place))},
    }
    assert load_workload(out).hash


def _place(reason: str) -> int:
    return ("unparsable", "bad_time", "outside_window", "no_effect").index(reason)


def test_json_lines_and_parquet_tell_the_same_with_words_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        ("2020-09-13T12:26:40", "SUB", "7", "a", None),
        ("2020-09-13T12:26:41.5", "PUB", "8", "a", 3),
        ("2020-09-13T12:26:42", "PUB", None, "b", None),
        ("2020-09-13T12:26:43", "SUB", "7", "a", None),
        ("2020-09-13T12:26:44", "end", "7", None, None),
    ]
    names = ["at", "what", "who", "topic", "bytes"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["at"] = pa.array([dt.datetime.fromisoformat(time) for time in columns["at"]], pa.timestamp("us"))
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    words = action_words("subscribe=SUB,publish=PUB,disconnect=quit,disconnect=end")
    made = {}
    for layout in (JSONL, PARQUET):
        layout = lay_over(layout, columns="time=at,action=what,client=who,topic,size=bytes")
        made[layout.name] = prepare_events(
            spark, [tmp_path / f"in.{layout.name}"], tmp_path / layout.name, layout, EventOptions(words=words)
        )
    micros = [1_600_000_000_000_000 + 500_000 * half for half in (0, 3, 4, 6, 8)]
    actions = ["subscribe", "publish", "publish", "subscribe", "disconnect"]
    story = oracle.tell([
        oracle.Row(time, action, who, topic, 100 if size is None else size)
        for time, action, (_, _, who, topic, size) in zip(micros, actions, rows, strict=True)
    ])  # fmt: skip
    for workload in made.values():
        assert_tells(workload, story)
        assert workload.rows == {"read": 5, "kept": 4, "quarantined": {"no_effect": 1}}
    assert [row[:2] for row in quarantined(tmp_path / "parquet")] == [("in.parquet", 4)]


FLAGGED = """\
{"t": 0, "a": "connect", "c": "w", "clean": false, "expiry": 5}
{"t": 1, "a": "subscribe", "c": "w", "topic": "jobs", "g": "crew", "q": 1}
{"t": 2, "a": "publish", "c": "p", "topic": "jobs", "q": 1, "retain": true}
{"t": 3, "a": "deliver", "c": "w", "topic": "jobs", "q": "1", "retain": "0"}
{"t": 1.5, "a": "deliver", "c": "w", "topic": "jobs", "q": 0, "retain": 1}
{"t": 4, "a": "disconnect", "c": "w"}
{"t": 8, "a": "connect", "c": "w", "clean": "False"}
{"t": 9, "a": "publish", "c": "p", "topic": "jobs", "q": 3}
{"t": 9, "a": "publish", "c": "p", "topic": "jobs", "retain": "yes"}
{"t": 9, "a": "connect", "c": "p", "expiry": -1}
{"t": 9, "a": "disconnect", "c": "w"}
"""


def test_what_a_log_says_of_sessions_groups_and_messages(spark: SparkSession, tmp_path: Path) -> None:
    """Flags are counted, connects decide what is kept, and what is retained has been published before; text says the same."""
    (tmp_path / "in.jsonl").write_text(FLAGGED)
    names = "time=t,action=a,client=c,topic,group=g,qos=q,retain,clean,expiry"
    json_lines = lay_over(JSONL, columns=names, time_formats=["epoch"])
    rows = [json.loads(line) for line in FLAGGED.splitlines()]
    keys = ["t", "a", "c", "topic", "g", "q", "retain", "clean", "expiry"]
    text = [",".join(str(row.get(key, "")) for key in keys) for row in rows]
    (tmp_path / "in.csv").write_text("\n".join([",".join(keys), *text]))
    for source, layout in (
        ("in.jsonl", json_lines),
        ("in.csv", lay_over(CSV, columns=names, header=True, time_formats=["epoch"])),
    ):
        workload = prepare_events(spark, [tmp_path / source], tmp_path / "w", layout)
        assert workload.rows == {"read": 11, "kept": 7, "quarantined": {"unparsable": 3, "retained": 1}}
        users = workload.users.names.to_pylist()
        assert users == ["p", "w"]
        assert {name: column.tolist() for name, column in vars(workload.shares).items()} == {
            "topic": [0],
            "user": [1],
            "group": [0],
        }
        events = workload.subscription_events
        changes = zip(events.time.tolist(), events.user.tolist(), events.action.tolist(), strict=True)
        assert list(changes) == [(1, 1, 1)]
        absences = zip(*(column.tolist() for column in vars(workload.absences).values()), strict=True)
        assert list(absences) == [(1, 4, 8, SESSION_RESUMED), (1, 9, 10, SESSION_RESUMED)]
        assert (workload.publications.retain.tolist(), workload.publications.qos.tolist()) == ([1], [1])
        assert workload.deliveries.subscriber.tolist() == [1]
        assert workload.generator["seen"] == {
            "connect": {"clean": {"0": 2}},
            "subscribe": {"qos": {"1": 1}},
            "publish": {"qos": {"1": 1}, "retain": {"1": 1}},
            "deliver": {"qos": {"0": 1, "1": 1}, "retain": {"0": 1, "1": 1}},
        }


def test_keys_with_dots_lead_into_objects(tmp_path: Path) -> None:
    """A key of its own comes first; what is no object, or has an object where a name should be, is nothing, or no row."""
    rows = [
        {"t": 0, "a": "subscribe", "client": {"id": "c"}, "meta": {"topic": "x"}},
        {"t": 1, "a": "publish", "meta": {"topic": "y"}, "meta.topic": "x"},
        {"t": 2, "a": "publish", "client": "p", "meta": {"topic": {"name": "x"}}},
        {"t": 3, "a": "publish", "client": "p", "meta": {"topic": "x"}},
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = "time=t,action=a,client=client.id,topic=meta.topic"
    layout = lay_over(JSONL, columns=columns, time_formats=["epoch"])
    workload = prepare_events(None, [tmp_path / "in.jsonl"], tmp_path / "w", layout)
    assert workload.rows == {"read": 4, "kept": 3, "quarantined": {"unparsable": 1}}
    assert workload.topics.names.to_pylist() == ["x"]
    assert workload.users.names.to_pylist() == ["c"]
    strange = lay_over(layout, time_formats=["yyyy-MM-dd GG"])
    with pytest.raises(WorkloadError, match="are not read by Arrow kernels, which alone read keys with dots"):
        prepare_events(None, [tmp_path / "in.jsonl"], tmp_path / "w", strange)


@pytest.mark.parametrize("name", ["latin-1", "cp1252", "shift_jis", "UTF8"])
def test_lines_of_another_encoding(tmp_path: Path, name: str) -> None:
    """Names are the same as in UTF-8, in the header too; a line that is not in the encoding is no row."""
    word = "テスト" if name == "shift_jis" else "Küche"
    text = f"t,a,{word},topic\n0,subscribe,{word},x\n1,publish,p,{word}\n2,publish,p,x\n"
    broken = {"latin-1": b"", "cp1252": b"3,publish,\xc3\x81,x\n"}.get(name, b"3,publish,\xff\xff,x\n")
    (tmp_path / "in.csv").write_bytes(text.encode(name) + broken)
    layout = lay_over(CSV, columns=f"time=t,action=a,client={word},topic", header=True, time_formats=["epoch"])
    workload = prepare_events(None, [tmp_path / "in.csv"], tmp_path / "w", encoded(layout, name))
    assert workload.rows is not None
    assert workload.rows["quarantined"] == ({"unparsable": 1} if broken else {})
    assert workload.users.names.to_pylist() == sorted([word, "p"])
    assert workload.topics.names.to_pylist() == sorted(["x", word])


@pytest.mark.parametrize(
    ("layout", "name", "message"),
    [
        (
            CSV,
            "utf-16",
            "--encoding 'utf-16': no encoding in which ASCII characters are as they are (expected such as latin-1",
        ),
        (CSV, "latin-one", "--encoding 'latin-one': no such encoding"),
        (PARQUET, "latin-1", "--encoding: has no effect with --format parquet"),
    ],
)
def test_encodings_that_cannot_be(layout: Layout, name: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        encoded(layout, name)


def test_words_for_actions() -> None:
    assert action_words() == ACTIONS
    assert action_words("connect=CONN, PUBLISH = Pub,publish=P") == {
        **{name: code for name, code in ACTIONS.items() if name not in ("connect", "publish")},
        "conn": ACTIONS["connect"],
        "pub": ACTIONS["publish"],
        "p": ACTIONS["publish"],
    }
    assert action_words("publish=deliver,deliver=publish")["publish"] == ACTIONS["deliver"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publish", "--actions 'publish': expected ACTION=WORD, such as publish=PUBLISH"),
        ("publish=", "--actions 'publish=': expected ACTION=WORD"),
        ("pubish=P", "--actions: unknown action 'pubish', did you mean 'publish'?"),
        ("publish=x,deliver=X", "--actions: 'X' stands for two actions"),
        ("publish=deliver", "--actions: 'deliver' stands for another action, so name deliver too"),
    ],
)
def test_words_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        action_words(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["1600000000,CONN,c,,,", "1600000000,PUB,c,t,,"],
            "in.csv: line 1: column 2 (action) looks wrong: expected an action (connect, subscribe, unsubscribe, disconnect, publish, "
            "deliver; --actions says what a file calls them), found 'CONN' (2 of 2 rows cannot be read as --format csv)",
        ),
        (["1600000000,disconnect,c,,,"], "in.csv: none of 1 rows is usable (no_effect 1)"),
    ],
)
def test_a_log_that_tells_nothing_is_refused(
    spark: SparkSession, tmp_path: Path, lines: list[str], message: str
) -> None:
    (tmp_path / "in.csv").write_text("\n".join(lines))
    layout = lay_over(CSV, columns=COLUMNS, time_formats=["epoch"])
    with pytest.raises(WorkloadError) as caught:
        prepare_events(spark, [tmp_path / "in.csv"], tmp_path / "w", layout)
    assert str(caught.value).replace(f"{tmp_path}/", "") == message
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
