"""A standalone cluster of Spark on this machine, of a master and workers of one core each, from the PySpark that pip installed."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import pyspark

from sim.spark import spark_environment

DEPLOY = "org.apache.spark.deploy"


class Cluster:
    """While its context lasts, `url` is the address of a master with so many workers."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.workers = folder, workers
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self._start("master", f"{DEPLOY}.master.Master", "--port", "0")
            self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
            for number in range(self.workers):
                self._start(
                    f"worker-{number}",
                    f"{DEPLOY}.worker.Worker",
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / f"work-{number}"), self.url),
                )
            for number in range(self.workers):
                self._said(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()

    def kill(self, name: str) -> None:
        """Kill a process, "master" or "worker-0" say, at once."""
        self.processes[name].kill()

    def executors(self) -> list[int]:
        """The process ids of the executors that run now, by workers."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                place = (process / "cwd").resolve()
                if (
                    self.folder in place.parents
                    and b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
                ):
                    found[place] = int(process.name)
        return [found[place] for place in sorted(found)]

    def _start(self, name: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__path__[0])
        environment = {
            **os.environ,
            **spark_environment(local=True),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        del environment["SPARK_CONF_DIR"]  # so that they log
        command = [str(home / "bin" / "spark-class"), main, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def _said(self, name: str, pattern: str) -> str:
        for _ in range(600):
            if said := re.search(pattern, (self.folder / f"{name}.log").read_text()):
                return said[said.lastindex or 0]
            assert self.processes[name].poll() is None, (self.folder / f"{name}.log").read_text()
            time.sleep(0.2)
        raise AssertionError((self.folder / f"{name}.log").read_text())
