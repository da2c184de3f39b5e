"""The code that a Spark executor runs. It is pickled by value, as it installs brokersim on an executor.

So it imports only what comes with Python and Spark, and `sim.base.private`, which is pickled with it and does the same.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkFiles
from pyspark.cloudpickle import register_pickle_by_value

from sim.base import private
from sim.base.private import temporary_home

for _module in (sys.modules[__name__], private):
    register_pickle_by_value(_module)  # type: ignore[no-untyped-call]


def perform_shipped(spec: bytes, wheels: Sequence[str], workload: str | None) -> bytes | str:
    """Perform a run with the code in the wheels; returns the pickled Record or Failure, or a message about what this machine lacks.

    `spec` is the pickled RunSpec; the wheels and the mapped file of a prepared workload are given by their names as shipped by Spark.
    """
    for wheel in wheels:
        if not any(Path(place).name == Path(wheel).stem for place in sys.path):
            sys.path.insert(0, str(unpack(Path(SparkFiles.get(wheel)))))
    try:
        from sim.experiments.perform import simulated

        run = pickle.loads(spec)  # noqa: S301 - from our own driver
    except ImportError as error:
        return f"{platform.node()}: {sys.executable} cannot run brokersim ({error})"
    found = simulated(run, None if workload is None else Path(SparkFiles.get(workload)), lambda _part: None)
    return pickle.dumps(found, protocol=5)


def unpack(wheel: Path) -> Path:
    """The folder with a wheel's unpacked content, one for all processes and jobs of a machine: compiled kernels stay beside their code.

    Files appear atomically, so that several processes may do this at once; files removed by a clean-up of temporary folders are
    restored.
    """
    folder = temporary_home() / wheel.stem
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = folder / member.filename
            if not (path.is_file() and path.stat().st_size == member.file_size):
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(f"{path.name}.{os.getpid()}")
                partial.write_bytes(archive.read(member))
                partial.replace(path)
    return folder
