"""The functions from one DataFrame to another, by which Spark's expressions judge rows: a few rows each, with what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.testing import assertDataFrameEqual

from sim.base.randomness import Streams
from sim.workloads.models.follow_log import EVER, UNENDING
from sim.workloads.traces.checkins import BOXES, judge_checkins
from sim.workloads.traces.events import ACTIONS, action_words, judge_events
from sim.workloads.traces.follow_tables import FollowedTopics, FollowTable
from sim.workloads.traces.follows import judge_follows
from sim.workloads.traces.layouts import CSV, GOWALLA, lay_over
from sim.workloads.traces.session import partitioned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "source int, block bigint, row bigint, raw string, parsed boolean"
NOON = 1_267_444_800_000_000  # µs, 2010-03-01T12:00:00Z


def test_checkins_are_typed_or_get_a_reason(spark: SparkSession) -> None:
    session = partitioned(spark, 2, "UTC")
    said = [
        (True, "ann", "2010-03-01T12:00:00Z", "40.5", "-74.25"),
        (True, "", "2010-03-01T12:00:00Z", "40.5", "-74.25"),
        (True, "bob", "noon", "40.5", "-74.25"),
        (True, "bob", "2010-03-01T12:00:00Z", "91", "-74.25"),
        (True, "bob", "2010-03-01T12:00:00Z", "51.5", "0.1"),
        (False, None, None, None, None),
    ]
    rows = session.createDataFrame(
        [(0, 0, number, f"row {number}", *row) for number, row in enumerate(said)],
        f"{HEAD}, user string, time string, latitude string, longitude string",
    )
    wanted = [
        ("ann", NOON, 40.5, -74.25, None, None, None),
        (None, NOON, 40.5, -74.25, "unparsable", "user", ""),
        ("bob", None, 40.5, -74.25, "bad_time", "time", "noon"),
        ("bob", NOON, None, -74.25, "bad_position", "latitude", "91"),
        ("bob", NOON, 51.5, 0.1, "outside_box", None, None),
        (None, None, None, None, "unparsable", None, None),
    ]
    expected = session.createDataFrame(
        [(0, 0, number, f"row {number}", *row) for number, row in enumerate(wanted)],
        "source int, block bigint, row bigint, raw string, user string, micros bigint, latitude double, longitude double, "
        "reason string, column string, found string",
    )
    judged = judge_checkins(rows, GOWALLA, BOXES["us-paper"], (None, None))
    assertDataFrameEqual(judged, expected, ignoreNullable=True, checkRowOrder=True)


def test_events_are_typed_or_get_a_reason(spark: SparkSession) -> None:
    session = partitioned(spark, 2, "UTC")
    layout = lay_over(CSV, columns="time,action,client,topic,size")
    said = [
        (True, "2010-03-01T12:00:00Z", "Publish", "ann", "news", "7"),
        (True, "2010-03-01T12:00:00Z", "connect", "ann", "", ""),
        (True, "2010-03-01T12:00:00Z", "ping", "ann", "", ""),
        (True, "2010-03-01T12:00:00Z", "publish", "", "news", "big"),
    ]
    rows = session.createDataFrame(
        [(0, 0, number, f"row {number}", *row) for number, row in enumerate(said)],
        f"{HEAD}, time string, action string, client string, topic string, size string",
    )
    judged = judge_events(rows, layout, action_words(), (None, None), 100)
    names = ("action", "client", "topic", "size", "micros", "reason", "column", "found", "raw")
    wanted = [
        (ACTIONS["publish"], "ann", "news", 7, NOON, None, None, None, None),
        (ACTIONS["connect"], "ann", None, 100, NOON, None, None, None, "row 1"),
        (None, "ann", None, 100, NOON, "unparsable", "action", "ping", "row 2"),
        (ACTIONS["publish"], None, "news", None, NOON, "unparsable", "size", "big", "row 3"),
    ]
    expected = session.createDataFrame(
        wanted,
        "action tinyint, client string, topic string, size int, micros bigint, reason string, column string, found string, raw string",
    )
    assertDataFrameEqual(judged.select(*names), expected, ignoreNullable=True, checkRowOrder=True)


def test_follows_are_typed_or_get_a_reason(spark: SparkSession) -> None:
    session = partitioned(spark, 2, "UTC")
    layout = lay_over(CSV, columns="user,topic,kind,since,until")
    said = [
        (True, "ann", "news", "", "2010-03-01T12:00:00Z", ""),
        (True, "ann", "", "blog", "", ""),
        (True, "bob", "news", "blog", "noon", ""),
        (True, "bob", "news", "blog", "2010-03-01T12:00:00Z", "2010-03-01T12:00:00Z"),
    ]
    rows = session.createDataFrame(
        [(0, 0, number, f"row {number}", *row) for number, row in enumerate(said)],
        f"{HEAD}, user string, topic string, kind string, since string, until string",
    )
    wanted = [
        ("ann", "news", None, NOON, UNENDING, None, None, None),
        ("ann", None, "blog", EVER, UNENDING, "unparsable", "topic", ""),
        ("bob", "news", "blog", None, UNENDING, "bad_time", "since", "noon"),
        ("bob", "news", "blog", NOON, NOON, "bad_time", "until", "2010-03-01T12:00:00Z"),
    ]
    expected = session.createDataFrame(
        [(0, 0, number, f"row {number}", *row) for number, row in enumerate(wanted)],
        "source int, block bigint, row bigint, raw string, user string, topic_0 string, kind string, since bigint, until bigint, "
        "reason string, column string, found string",
    )
    table = FollowTable(layout, follows=(FollowedTopics("topic", ("topic",)),))
    judged = judge_follows(rows, table, (None, None), Streams(1))
    assertDataFrameEqual(judged, expected, ignoreNullable=True, checkRowOrder=True)
