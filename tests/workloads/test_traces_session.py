"""What pipelines do with a session: its time zone and how it cuts tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sim.base.errors import WorkloadError
from sim.workloads.traces.session import partitioned, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_zone_that_java_does_not_know_is_told(spark: SparkSession) -> None:
    with pytest.raises(WorkloadError, match="--time-zone 'Factory': Spark knows no such zone"):
        partitioned(spark, None, "Factory")


def test_there_may_be_more_parts_than_bytes_and_what_a_stage_leaves_is_not_cut_by_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("7\n8\n")
    lines = partitioned(spark, 6, "UTC").read.text(str(tmp_path / "f"))
    stored = store(lines, tmp_path / "stored")  # hundreds of bytes for each line
    assert [frame.count() for frame in (lines, stored)] == [2, 2]
    assert lines.rdd.getNumPartitions() == 4
    assert stored.rdd.getNumPartitions() <= 2 * 6  # about as many as were asked for
