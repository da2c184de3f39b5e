"""The runner: `python -m benchmarks [NAME…] [--check]` measures and prints a table; with --check a missed bar exits with 1."""

from __future__ import annotations

import importlib
import platform
import sys
from importlib.metadata import version

from sim.base.errors import unknown

NAMES = (
    "relay",
    "engine",
    "faults",
    "million",
    "folded",
    "checkins",
    "dynatops",
    "backlog",
    "memory",
    "sharing",
    "startup",
    "planning",
    "experiments",
    "overlays",
    "chord",
    "geometries",
    "content",
    "matching",
    "filters",
    "reconfiguration",
    "snapshot",
    "offloading",
    "offloading_full",
    "offloading_quality",
    "pipelines",
    "spotify",
    "calibration",
    "report",
)
ASKED = {"calibration", "chord", "million", "offloading_full", "offloading_quality", "pipelines", "report", "spotify"}
"""Benchmarks that take minutes, or need additional libraries: measured only if named."""


def main() -> None:
    """Run the named benchmarks, or all except those that must be named."""
    arguments = sys.argv[1:]
    check = "--check" in arguments
    wanted = [name for name in arguments if name != "--check"] or [name for name in NAMES if name not in ASKED]
    for name in wanted:
        if name not in NAMES:
            sys.exit(unknown("benchmark", name, NAMES))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("brokersim", "simpy", "numpy", "numba"))
    print(f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}; {libraries}\n")
    print("| what | measured | bar | met |\n| --- | --- | --- | --- |")
    met = True
    for name in wanted:
        for figure in importlib.import_module(f"benchmarks.{name}").figures():
            said = {True: "yes", False: "no", None: "–"}[figure.holds]
            print(f"| {figure.name} | {figure.value} | {figure.bar} | {said} |", flush=True)
            met &= said != "no"
    sys.exit(1 if check and not met else 0)


if __name__ == "__main__":
    main()
