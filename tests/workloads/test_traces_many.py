"""Traces too large for one process: divided among tasks by user and by time, they make the tables of one process, in parts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base.errors import WorkloadError
from sim.workloads.format.folder import load_workload
from sim.workloads.traces import (
    by_time,
    event_pipeline,
    exchange,
    follow_pipeline,
    log_rows,
    many_checkins,
    many_events,
    many_follows,
    numbered,
    pipeline,
    quarantine,
    workshop,
)
from sim.workloads.traces.broker_logs import BROKER_LOGS
from sim.workloads.traces.checkin_options import CheckinOptions
from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
from sim.workloads.traces.follow_pipeline import FollowOptions, prepare_follows
from sim.workloads.traces.follow_tables import Trace, free_trace
from sim.workloads.traces.judging import RangeJudge
from sim.workloads.traces.layouts import CSV, GOWALLA, lay_over
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
    for module in (pipeline, event_pipeline, follow_pipeline):
        monkeypatch.setattr(module, "MANY_ROWS", 100)
    for module in (many_checkins, many_events, many_follows, exchange, numbered):
        monkeypatch.setattr(module, "PART_ROWS", 700)
    for module in (workshop, quarantine):
        monkeypatch.setattr(module, "PART_LINES", 1500)
    for module in (exchange, many_events):
        monkeypatch.setattr(module, "BATCH_ROWS", 50)
    monkeypatch.setattr(exchange, "_SAMPLE_BITS", 4)
    for module in (many_checkins, many_events, many_follows):
        monkeypatch.setattr(module, "BLOCK_ROWS", 600)
    monkeypatch.setattr(by_time, "_CHANGING", 200)


def tables(folder: Path) -> dict[str, pa.Table]:
    """All tables of a workload, each in one piece."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        found.setdefault(path.relative_to(folder).parts[0].removesuffix(".parquet"), []).append(path)
    return {name: pa.concat_tables(map(pq.read_table, paths)) for name, paths in found.items()}


def assert_same_tables(one: Path, many: Path, least: int = 4) -> None:
    assert tables(many) == tables(one)
    assert len(list((many / "subscription_events").iterdir())) >= least
    assert len(list((many / "quarantine").iterdir())) >= least
    first, second = (load_workload(folder).about for folder in (one, many))
    assert second == first


@pytest.mark.parametrize("options", [CheckinOptions(), PICKY])
def test_tasks_write_the_tables_of_one_process(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: CheckinOptions
) -> None:
    if options is PICKY:  # nothing is there twice, so that the first of the reasons for dropping rows applies to none
        rows.write_text("".join(dict.fromkeys(rows.read_text().splitlines(keepends=True))))
    prepare_checkins(None, [rows], tmp_path / "one", GOWALLA, options)
    divided(monkeypatch)
    workload = prepare_checkins(None, [rows], tmp_path / "many", GOWALLA, options, partitions=3)
    assert_same_tables(tmp_path / "one", tmp_path / "many")
    assert workload.about == load_workload(tmp_path / "many").about  # its tables are read when they are asked for
    assert workload.movements.user.tolist() == load_workload(tmp_path / "one").movements.user.tolist()


FREE = {"follows": "user,topic,kind,since,until", "events": "time,topic,publisher"}


@pytest.fixture
def follows(tmp_path: Path) -> Trace:
    """Follows of 200 users, with kinds and times, and publications, in three files, with rows of no use in both tables."""
    rng = random.Random(4)

    def day() -> str:
        return f"2010-03-{rng.randrange(1, 29):02}" if rng.random() < 0.6 else ""

    who = [
        f"{rng.choice([*range(200), 'x 07', ''])},{rng.randrange(60)},{rng.choice(['', 'b', 'a'])}" for _ in range(3000)
    ]
    said = [
        f"{day() or 'once'}T{rng.randrange(24):02}:00:00,{rng.randrange(80)},{rng.choice(['', 3, 'y'])}"
        for _ in range(2500)
    ]
    for name, lines in (("who", [f"{one},{day()},{day()}" for one in who]), ("said", said[:900]), ("more", said[900:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    layouts = {name: lay_over(CSV, columns=columns) for name, columns in FREE.items()}
    events = [tmp_path / "said.csv", tmp_path / "more.csv"]
    return free_trace((layouts["follows"], [tmp_path / "who.csv"]), (layouts["events"], events))


@pytest.mark.parametrize(
    "options", [FollowOptions(), FollowOptions(sample=0.5, window=(1_268_000_000_000_000, None), period=3600)]
)
def test_follows_are_divided_like_check_ins(
    follows: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: FollowOptions
) -> None:
    one = prepare_follows(None, follows, tmp_path / "one", options)
    divided(monkeypatch)
    many = prepare_follows(None, follows, tmp_path / "many", options, partitions=3)
    assert_same_tables(tmp_path / "one", tmp_path / "many", least=2)
    assert (many.about, many.unmatched) == (one.about, one.unmatched)
    made_of = one.lineage["tables"]
    assert made_of["interests"] == made_of["subscription_events"] == ["who.csv"]
    assert made_of["publications"] == ["said.csv", "more.csv"]
    assert made_of["users"] == made_of["topics"] == ["who.csv", "said.csv", "more.csv"]
    assert many.interests.indptr.tolist() == one.interests.indptr.tolist()


SHARED = ["$share/g/home/3", "$share/h/lost"]


def rows_of_log(apart: bool = False) -> str:
    """A log of 30 clients in a day, with filters of MQTT, sessions, retained messages, many rows at one time, and rows of no use.

    Odd clients share their subscriptions; one that is `apart` has others of its own.
    """
    rng, lines = random.Random(5), []
    for _ in range(5000):
        action = rng.choice(["connect", "disconnect", "subscribe", "unsubscribe", *["publish", "deliver"] * 4, "dance"])
        client, who = (rng.choice(["", *range(30)]) for _ in range(2))
        topic = f"home/{rng.randrange(9)}" if rng.random() < 0.9 else f"{action}/only"
        if "scribe" in action:
            shares = client != "" and int(client) % 2 == 1
            topic = rng.choice(SHARED if shares else ["home/#", "home/+", "home/3", "x", "y/+"])
        time = f"2010-03-01T{rng.randrange(24):02}:{rng.randrange(3):02}:00"
        said = f"{rng.choice(['', 0, 7])},{who if action == 'deliver' else ''},{rng.choice(['', 0, 1])},{rng.choice(['', '20'])}"
        retain = rng.choice([0, 1]) if action in ("publish", "deliver") else ""
        lines.append(f"{time},{action},{client},{topic},{said},{retain}\n")
    return "".join([*lines, *["2010-03-01T00:00:00,subscribe,1,home/3,,,,,\n"] * apart])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(rows_of_log())
    return tmp_path / "log.csv"


LOG = lay_over(CSV, columns="time,action,client,topic,size,publisher,qos,expiry,retain")


@pytest.mark.parametrize(
    "options",
    [
        EventOptions(),
        EventOptions(persistent=True, filters="mqtt"),
        EventOptions(persistent=True, filters="mqtt", live=True),
    ],
)
def test_a_log_is_divided_by_time_and_by_client(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: EventOptions
) -> None:
    one = prepare_events(None, [log], tmp_path / "one", LOG, options)
    divided(monkeypatch)
    many = prepare_events(None, [log], tmp_path / "many", LOG, options, partitions=3)
    assert tables(tmp_path / "many") == tables(tmp_path / "one")
    for name in ("publications", "deliveries", "subscription_events"):
        assert len(list((tmp_path / "many" / name).iterdir())) > 1
    assert (many.about, many.unmatched) == (one.about, one.unmatched)
    assert many.about == load_workload(tmp_path / "many").about


def test_members_apart_get_the_deliveries_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text(rows_of_log(apart=True))
    options = EventOptions(filters="mqtt")
    prepare_events(None, [tmp_path / "log.csv"], tmp_path / "one", LOG, options)
    divided(monkeypatch)
    prepare_events(None, [tmp_path / "log.csv"], tmp_path / "many", LOG, options, partitions=3)
    assert tables(tmp_path / "many") == tables(tmp_path / "one")
    assert "1 in $share/g/home/3" in tables(tmp_path / "many")["users"]["name"].to_pylist()


def test_the_log_of_a_broker_is_divided_and_spread_over_its_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, second, lines = random.Random(6), 1772352000, list[str]()
    for _ in range(2500):
        second += rng.random() < 0.05
        who, topic = f"c{rng.randrange(9)}", f"home/{rng.randrange(4)}"
        said = [
            f"New client connected from 127.0.0.1:1 as {who} (p2, c0, k60).",
            f"Received PUBLISH from {who} (d0, q1, r{rng.randrange(2)}, m1, '{topic}', ... (2 bytes))",
            f"Sending PUBLISH to {who} (d0, q0, r{rng.randrange(2)}, m0, '{topic}', ... (2 bytes))",
            f"Received SUBSCRIBE from {who}\n{second}: \thome/# (QoS 0)\n{second}: Sending SUBACK to {who}",
            f"Received PINGREQ from {who}",
            f"Client {who} disconnected.",
        ]
        lines.append(f"{second}: {rng.choices(said, [1, 8, 8, 2, 1, 1])[0]}\n")
    files = [tmp_path / "a.log", tmp_path / "b.log"]
    for file, some in zip(files, (lines[:1000], lines[1000:]), strict=True):
        file.write_text("".join(some))
    layout, options = BROKER_LOGS["mosquitto"].layout, EventOptions(filters="mqtt")
    prepare_events(None, files, tmp_path / "one", layout, options)
    divided(monkeypatch)
    for name, size in (("_BATCH", 40), ("PIECE_ROWS", 100)):
        monkeypatch.setattr(log_rows, name, size)
    many = prepare_events(None, files, tmp_path / "many", layout, options)
    assert tables(tmp_path / "many") == tables(tmp_path / "one")
    assert len(list((tmp_path / "many" / "publications").iterdir())) > 1
    assert many.about == load_workload(tmp_path / "one").about


def test_so_do_tasks_of_spark_however_files_are_cut(
    spark: SparkSession, rows: Path, follows: Trace, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided(monkeypatch)
    for session, name, partitions in ((None, "one", None), (spark, "many", 4)):
        prepare_checkins(session, [rows], tmp_path / name / "checkins", GOWALLA, partitions=partitions)
        prepare_follows(session, follows, tmp_path / name / "follows", partitions=partitions)
        prepare_events(session, [log], tmp_path / name / "events", LOG, partitions=partitions)
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
