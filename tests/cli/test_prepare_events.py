"""`brokersim prepare events`: a log in, a workload and one line of counts out, and mistakes reported before Spark starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sim.workloads.format.folder import load_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Brokersim = Callable[..., tuple[int, str, str]]

LOG = """\
at;who;what;where
01/03/2026 08:00;lamp;SUB;home/+/motion
01/03/2026 08:01;lamp;SUB;home/+/motion
01/03/2026 08:02;sensor;PUB;home/hall/motion
01/03/2026 08:03;lamp;DELIVER;home/hall/motion
01/03/2026 08:04;lamp;SUB;a+
"""
OPTIONS = (
    *("--columns", "time=at,client=who,action=what,topic=where", "--header", "--delimiter", ";"),
    *("--time-format", "dd/MM/yyyy HH:mm", "--time-zone", "+01:00", "--actions", "subscribe=sub,publish=Pub"),
)


@pytest.fixture(autouse=True)
def log(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)


def test_a_log_with_words_and_times_of_its_own(brokersim: Brokersim, tmp_path: Path, spark: SparkSession) -> None:
    status, out, err = brokersim("prepare", "events", "log.csv", "--out", "w", *OPTIONS, "--to", "2026-03-01T08:04")
    assert (status, out) == (
        0,
        "w: 5 rows read, 3 kept, 2 quarantined (outside_window 1, no_effect 1); 2 clients, 2 topics, 1 sessions, 1 subscriptions, "
        "1 publications, 1 deliveries; 1 subscriptions look like MQTT filters (--filters mqtt expands them)\n",
    )
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        "brokersim: starting Spark",
        "brokersim: reading events",
        "brokersim: following sessions",
        f"brokersim: writing {tmp_path / 'w'}",
    ]
    workload = load_workload(tmp_path / "w")
    assert workload.origin == "2026-03-01T07:00:00Z"
    assert workload.publications.size.tolist() == [100]
    status, out, _ = brokersim("describe", "w")
    assert status == 0
    assert re.search("deliveries +1 +1 per publication", out)


def test_subscriptions_that_match_nothing_and_a_stray_time_are_told(
    brokersim: Brokersim, tmp_path: Path, spark: SparkSession
) -> None:
    asked = ["$share/g/home/+", "$share/g/home/+", "$queue/office/hall", "home.*", "quiet", "orders.#", "home/+"]
    lines = [f"2026-03-01T08:00,subscribe,c{n},{topic}" for n, topic in enumerate(asked)]
    lines += [f"2026-03-01T08:0{n},publish,s,home/hall" for n in range(9)] + ["2000-01-01T00:00,publish,s,home/hall"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    options = ("--columns", "time,action,client,topic", "--filters", "mqtt", "--quiet")
    status, out, err = brokersim("prepare", "events", "log.csv", "--out", "w", *options)
    assert status == 0
    assert "; 8 clients, 5 topics, 7 sessions, 7 subscriptions (2 groups share some), 10 publications" in out
    assert out.endswith(
        "; 1 subscriptions look like NATS filters (--filters nats expands them); 3 subscriptions match no topic that is published on, "
        "such as 'orders.#' (1 look like wildcards of AMQP (#): not supported)\n"
    )
    assert err.startswith(
        f"brokersim: warning: {tmp_path / 'log.csv'}: line 17: the time is 2000-01-01T00:00:00Z, far before"
    )
    assert err.endswith("the trace takes 9,557 days instead of 1; --from 2026-03-01T00:00:00Z leaves them out\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--format (mqtt, mosquitto, emqx, nats, tshark) or --columns is needed to know the fields of the files"),
        (("--format", "mqt"), "--format: unknown layout 'mqt', did you mean 'mqtt'? (allowed: csv, emqx, jsonl, mosquitto,"),
        (("--columns", "time,action,topic"), "--columns time,action,topic: no client (events need time, action, client, topic)"),
        ((*OPTIONS, "--actions", "pub=x"), "--actions: unknown action 'pub', did you mean 'publish'?"),
        ((*OPTIONS, "--from", "monday"), "--from 'monday': expected an ISO date or time"),
        (
            (*OPTIONS, "--time-zone", "Europe/Paris", "--to", "2010-03-28T02:30"),
            "--to '2010-03-28T02:30': clocks in Europe/Paris skipped this time",
        ),
        ((*OPTIONS, "--sessions", "cleen"), "--sessions"),
        ((*OPTIONS, "--size", "-1"), "--size"),
    ],
)  # fmt: skip
def test_what_was_typed_wrong_is_told_before_spark_starts(
    brokersim: Brokersim, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("sim.spark.spark_session", lambda *_: pytest.fail("Spark was started"))
    status, out, err = brokersim("prepare", "events", "log.csv", "--out", "w", *arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())
