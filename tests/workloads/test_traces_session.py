"""The pipelines' use of a session: its time zone and its partitions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sim.base.errors import WorkloadError
from sim.workloads.traces.session import partitioned

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
