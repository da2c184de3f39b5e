"""The pipelines' use of a Spark session: partitioning, and watching jobs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sim.base.errors import WorkloadError
from sim.base.units import format_duration
from sim.files.compression import Damaged
from sim.spark import cause, sql
from sim.workloads.traces.sources import Source, original
from sim.workloads.traces.spark_conf import ROW_SETTINGS

if TYPE_CHECKING:
    from pyspark import Accumulator


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
    shuffled = partitions or max(4, spark.sparkContext.defaultParallelism)
    settings: dict[str, object] = {**ROW_SETTINGS, "spark.sql.shuffle.partitions": shuffled}
    if partitions is not None:
        settings |= {
            "spark.sql.files.minPartitionNum": partitions,
            "spark.sql.files.maxPartitionNum": partitions,
            "spark.sql.files.openCostInBytes": 1,  # as little as there is, else small files are not cut
        }
    for key, value in settings.items():
        session.conf.set(key, str(value))
    return session


def how_far(done: int, total: int, rows: int, seconds: float) -> str:
    """How far a step is after these seconds: its parts, its rows, and the time left if parts take equally long."""
    said = f"{done} of {total} parts, {rows:,} rows"
    return (
        f"{said}, {format_duration(max(1, round(seconds * (total - done) / done)))} left" if 0 < done < total else said
    )


@contextmanager
def watched(spark: sql.SparkSession, report: Callable[[str], None], every: float = 0.5) -> Iterator[Accumulator[int]]:
    """While the body runs Spark jobs, report how far the running stages are; their tasks add their rows to what it gets.

    Where the body is left by an exception, an interrupt for one, its jobs are cancelled.
    """
    began = time.monotonic()
    from py4j.protocol import Py4JError

    context = spark.sparkContext
    rows = context.accumulator(0)
    tracker, tag = context.statusTracker(), f"brokersim-{id(spark)}"
    ended = threading.Event()

    def watch() -> None:
        with suppress(Py4JError, OSError):  # the body reports a dead JVM
            while not ended.wait(every):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                total = sum(stage.numTasks for stage in stages if stage)
                if total:
                    done = sum(stage.numCompletedTasks for stage in stages if stage)
                    report(how_far(done, total, rows.value, time.monotonic() - began))

    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    context.addJobTag(tag)  # of this thread's jobs
    try:
        yield rows
    except BaseException:
        with suppress(Py4JError, OSError):
            context.cancelJobsWithTag(tag)
        raise
    finally:
        ended.set()
        watcher.join()
        with suppress(Py4JError, OSError):
            context.removeJobTag(tag)


@contextmanager
def blaming(spark: sql.SparkSession | None, sources: Sequence[Source]) -> Iterator[None]:
    """Where reading fails because of a file, say which and why: one that does not unpack, or a value that no type of Spark holds."""
    errors: tuple[type[Exception], ...] = (Damaged,)
    if spark is not None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        errors = (Damaged, PySparkException, Py4JError)
    try:
        yield
    except errors as error:
        for source in sources:
            if (damage := source.damage()) is not None:
                raise WorkloadError(f"{source.path}: {damage}") from None
        if read := re.search(r"reading file (?:file:)?(/\S+)", str(error)):
            file = original(Path(unquote(read[1].rstrip("."))))
            raise WorkloadError(f"{file}: cannot be read ({cause(error)})") from None
        raise
