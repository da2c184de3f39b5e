"""Settings of Spark by key, as `--conf` gives them: which ones exist, and which ones the pipelines set themselves."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from sim.base.errors import InputError, suggestion

ROW_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # else a time that Spark 2 could read raises
    "spark.sql.caseSensitive": "true",
    "spark.sql.autoBroadcastJoinThreshold": "1m",  # millions of rows are not gathered in the driver
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
"""Settings on which the values of rows depend."""
_OPTIONS = {
    "spark.master": "--master",
    "spark.driver.memory": "--driver-memory",
    "spark.executor.memory": "--executor-memory",
    "spark.sql.session.timeZone": "--time-zone",
    "spark.sql.shuffle.partitions": "--partitions",
    "spark.sql.files.minPartitionNum": "--partitions",
    "spark.sql.files.maxPartitionNum": "--partitions",
    "spark.sql.files.openCostInBytes": "--partitions",
}
# Beginnings of keys whose ends are names of a user's own.
_OPEN = re.compile(
    r"spark\.(hadoop|hive|executorEnv|kubernetes|yarn|metrics|(driver|executor|task)\.resource|sql\.catalog)\..+"
)
_CONSTANT = re.compile(rb"\x01(..)(spark(?:\.[A-Za-z0-9_]+)+)", re.DOTALL)  # of a Java class: its length and its text


def read_conf(texts: Iterable[str]) -> dict[str, str]:
    """The settings of `KEY=VALUE` texts; of several for a key, the last.

    Raises InputError where a text has another form, or a key is not one of Spark's, or is for the pipelines or an option to set.
    """
    settings = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals):
            raise InputError(f"--conf '{text}': expected KEY=VALUE, such as spark.executor.cores=2")
        if key in _OPTIONS:
            raise InputError(f"--conf {key}: {_OPTIONS[key]} sets this")
        if key in ROW_SETTINGS:
            raise InputError(f"--conf {key}: is always {ROW_SETTINGS[key]}, as the values of rows depend on it")
        settings[key] = value
    odd = [key for key in settings if not _OPEN.fullmatch(key)]
    known = _known() if odd else set()
    for key in odd:
        if key not in known:
            raise InputError(f"--conf {key}: Spark has no such setting{suggestion(key, known)}")
    return settings


def _known() -> set[str]:
    """The keys that stand in Spark's own classes; to read them takes a second or two, and no Java."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    keys = set()
    for jar in (Path(found.origin).parent / "jars").glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                content = classes.read(name) if name.endswith(".class") else b""
                if b"spark." in content:
                    for length, text in _CONSTANT.findall(content):
                        keys.add(text[: int.from_bytes(length)].decode())
    return keys
