"""The pipelines' use of a Spark session: partitioning, and watching jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sim.base.errors import WorkloadError
from sim.spark import sql


def partitioned(spark: sql.SparkSession, partitions: int | None, time_zone: str) -> sql.SparkSession:
    """A session of the same application that cuts whatever it reads, and shuffles, into this many parts.

    None leaves files to Spark and shuffles into a part per core. Times without a zone are in `time_zone`. Casts follow ANSI
    rules, datetime patterns the current ones. Raises WorkloadError where Java knows no such zone.
    """
    from pyspark.errors import IllegalArgumentException

    session = spark.newSession()
    try:
        session.conf.set("spark.sql.session.timeZone", time_zone)
    except IllegalArgumentException:  # a name that Python alone knows
        raise WorkloadError(
            f"--time-zone '{time_zone}': Spark knows no such zone (expected such as Europe/Paris or +02:00)"
        ) from None
    settings = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # else a time that Spark 2 could read raises
        "spark.sql.caseSensitive": "true",
        "spark.sql.autoBroadcastJoinThreshold": "1m",  # millions of rows are not gathered in the driver
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.shuffle.partitions": partitions or max(4, spark.sparkContext.defaultParallelism),
    }
    if partitions is not None:
        settings |= {
            "spark.sql.files.minPartitionNum": partitions,
            "spark.sql.files.maxPartitionNum": partitions,
            "spark.sql.files.openCostInBytes": 1,  # as little as there is, else small files are not cut
        }
    for key, value in settings.items():
        session.conf.set(key, str(value))
    return session


@contextmanager
def watched(spark: sql.SparkSession, report: Callable[[str], None], every: float = 0.5) -> Iterator[None]:
    """While the body runs Spark jobs, report how many tasks of the running stages are done; "" at the start.

    Where the body is left by an exception, an interrupt for one, its jobs are cancelled.
    """
    from py4j.protocol import Py4JError

    context = spark.sparkContext
    tracker, tag = context.statusTracker(), f"brokersim-{id(spark)}"
    ended = threading.Event()

    def watch() -> None:
        with suppress(Py4JError, OSError):  # the body reports a dead JVM
            while not ended.wait(every):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                total = sum(stage.numTasks for stage in stages if stage)
                if total:
                    report(f"{sum(stage.numCompletedTasks for stage in stages if stage)} of {total} tasks")

    report("")
    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    context.addJobTag(tag)  # of this thread's jobs
    try:
        yield
    except BaseException:
        with suppress(Py4JError, OSError):
            context.cancelJobsWithTag(tag)
        raise
    finally:
        ended.set()
        watcher.join()
        with suppress(Py4JError, OSError):
            context.removeJobTag(tag)
