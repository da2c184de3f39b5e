"""The pipelines' use of a session: its time zone and its partitions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sim.base.errors import InputError, WorkloadError
from sim.workloads.traces.session import how_far, partitioned
from sim.workloads.traces.spark_conf import read_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_zone_that_java_does_not_know_is_told(spark: SparkSession) -> None:
    with pytest.raises(WorkloadError, match="--time-zone 'Factory': Spark knows no such zone"):
        partitioned(spark, None, "Factory")


def test_there_may_be_more_parts_than_bytes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("7\n8\n")
    lines = partitioned(spark, 6, "UTC").read.text(str(tmp_path / "f"))
    assert lines.count() == 2
    assert lines.rdd.getNumPartitions() == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spark.executor.memroy=2g", "spark.executor.memroy: Spark has no such setting, did you mean 'spark.executor.memory'"),
        ("spark.driver.memory=2g", "spark.driver.memory: --driver-memory sets this"),
        ("spark.sql.ansi.enabled=false", "spark.sql.ansi.enabled: is always true, as the values of rows depend on it"),
        ("spark.ui.enabled", "'spark.ui.enabled': expected KEY=VALUE"),
    ],
)  # fmt: skip
def test_settings_that_spark_does_not_have_or_that_are_ours_are_told_before_it_starts(text: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        read_conf([text])
    assert str(raised.value).startswith(f"--conf {told}")


def test_settings_of_spark_and_names_of_a_users_own_pass() -> None:
    texts = ["spark.ui.enabled=true", "spark.hadoop.fs.s3a.endpoint=http://127.0.0.1:9=", "spark.ui.enabled=false"]
    wanted = {"spark.ui.enabled": "false", "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9="}
    assert read_conf(texts) == wanted


def test_progress_tells_rows_and_the_time_left() -> None:
    assert how_far(0, 8, 0, 3.0) == "0 of 8 parts, 0 rows"
    assert how_far(2, 8, 1_500_000, 10.0) == "2 of 8 parts, 1,500,000 rows, 30 s left"
    assert how_far(8, 8, 6_000_000, 40.0) == "8 of 8 parts, 6,000,000 rows"
