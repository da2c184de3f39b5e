"""Times far from all others are reported before the work, with their place and value, and the option that excludes them."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sim.workloads.traces.event_pipeline import EventOptions, prepare_events
from sim.workloads.traces.follow_pipeline import prepare_follows
from sim.workloads.traces.follow_tables import free_trace
from sim.workloads.traces.layouts import CSV, GOWALLA, JSONL, lay_over
from sim.workloads.traces.pipeline import prepare_checkins
from sim.workloads.traces.strays import PlausibleSpan, TraceWarning, find_span, rows_per_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000_000


def span(*days: float) -> PlausibleSpan:
    shuffled = random.Random(1).sample(days, len(days))
    times = [np.array([round(day * DAY) for day in some], np.int64) for some in (shuffled[1:], [], shuffled[:1])]
    return find_span(*rows_per_day(times))


def test_a_log_of_an_hour_and_a_clock_that_was_not_set() -> None:
    hour = [20_000 + minute / 1440 for minute in range(60)]
    assert span(*hour) == PlausibleSpan(20_000, 20_001, 20_000, 20_000, 0, 0)
    assert span(0.1, 0.2, *hour, 40_000) == PlausibleSpan(20_000, 20_001, 0, 40_000, 2, 1)
    assert span(-9.5, *hour, 20_020) == PlausibleSpan(20_000, 20_021, -10, 20_020, 1, 0)


def test_a_log_grows_as_far_as_the_gaps_in_it_are_no_longer_than_itself() -> None:
    assert span(0, 30, 90, 200) == PlausibleSpan(0, 201, 0, 200, 0, 0)
    assert span(0, *[31.5] * 200) == PlausibleSpan(31, 32, 0, 31, 1, 0)
    assert span(*[0.5] * 200, 1, 33) == PlausibleSpan(0, 2, 0, 33, 0, 1)
    assert span(*range(0, 5000, 29)) == PlausibleSpan(0, 4989, 0, 4988, 0, 0)
    assert span(7) == PlausibleSpan(7, 8, 7, 7, 0, 0)


def test_what_one_row_in_a_hundred_does_is_no_stray_unless_it_is_a_year_away() -> None:
    assert span(0, 1, 33) == PlausibleSpan(0, 34, 0, 33, 0, 0)
    assert span(0, 367, *[367.5] * 98) == PlausibleSpan(367, 368, 0, 367, 1, 0)
    assert span(0, 366, *[366.5] * 98) == PlausibleSpan(0, 367, 0, 366, 0, 0)
    assert span(0, 31, *[31.5] * 99) == PlausibleSpan(31, 32, 0, 31, 1, 0)


def told(record: pytest.WarningsRecorder, folder: Path) -> list[str]:
    assert {warning.category for warning in record} == {TraceWarning}
    return [str(warning.message).replace(f"{folder}/", "") for warning in record]


def test_seconds_among_milliseconds_are_reported_and_can_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    times = [1_770_000_000_000 + 1000 * n for n in range(9)]
    times[4] //= 1000
    rows = [{"at": time, "what": "publish", "who": "s", "topic": "t"} for time in times]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    layout = lay_over(JSONL, columns="time=at,action=what,client=who,topic", time_formats=["epoch-ms"])
    with pytest.warns(TraceWarning) as record:
        workload = prepare_events(spark, [tmp_path / "log.jsonl"], tmp_path / "w", layout)
    assert told(record, tmp_path) == [
        "log.jsonl: line 5: the time is 1970-01-21T11:40:00Z, far before most others: 1 of 9 events lie up to 20,466 days before "
        "the rest, and the trace takes 20,467 days instead of 1; --from 2026-02-02T00:00:00Z leaves them out"
    ]
    assert workload.horizon > 20_000 * 86_400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = 20_486 * DAY  # 2026-02-02
        workload = prepare_events(spark, [tmp_path / "log.jsonl"], tmp_path / "w", layout, EventOptions((first, None)))
    assert workload.horizon < 60
    assert workload.rows == {"read": 9, "kept": 8, "quarantined": {"outside_window": 1}}


def test_checkins_and_follows_are_looked_at_too(spark: SparkSession, tmp_path: Path) -> None:
    days = ["2010-10-19", "2010-10-20", "2010-10-20", "2093-10-20", "2093-10-21"]
    (tmp_path / "c.tsv").write_text("".join(f"{n}\t{day}T12:00:00Z\t30.5\t-97.5\tx\n" for n, day in enumerate(days)))
    with pytest.warns(TraceWarning) as record:
        prepare_checkins(spark, [tmp_path / "c.tsv"], tmp_path / "w", GOWALLA)
    assert told(record, tmp_path) == [
        "c.tsv: line 4: the time is 2093-10-20T12:00:00Z, far after most others: 2 of 5 check-ins lie up to 30,317 days after the "
        "rest, and the trace takes 30,319 days instead of 2; --to 2010-10-21T00:00:00Z leaves them out"
    ]
    (tmp_path / "f.csv").write_text("a,x,9999-12-31\n")
    (tmp_path / "e.csv").write_text("".join(f"{year}-01-01,x\n" for year in range(1980, 2013)))
    follows = lay_over(CSV, columns="user,topic,until")
    trace = free_trace((follows, [tmp_path / "f.csv"]), (lay_over(CSV, columns="time,topic"), [tmp_path / "e.csv"]))
    with pytest.warns(TraceWarning) as record:
        workload = prepare_follows(spark, trace, tmp_path / "v")
    assert len(workload.interests.indices) == 1  # until the year 9999: for ever
    assert "the trace takes 32 years" in told(record, tmp_path)[0]
    (tmp_path / "e.csv").write_text(
        "".join(f"{year}-{month:02}-01,x\n" for year in range(1980, 2013) for month in range(1, 13))
    )
    with pytest.warns(TraceWarning) as record:
        prepare_follows(spark, trace, tmp_path / "v")
    assert told(record, tmp_path) == [
        "e.csv: line 1: the time is 1980-01-01T00:00:00Z, and e.csv: line 396: the time is 2012-12-01T00:00:00Z: the trace takes "
        "33 years; --from and --to choose a part of it"
    ]
