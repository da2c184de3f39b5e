"""The command `brokersim` (also `python -m brokersim`): makes the import path safe, then starts.

It is beside the packages, not in one of them, because it decides which `sim` is imported.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("sim", "analysis", "scenarios")


def make_safe(path: list[str], home: str) -> None:
    """Search `home` before folders that contain something named like one of our packages; plug-ins there are still found."""
    rivals = [
        place for place in path if place != home and any(PathFinder.find_spec(name, [place]) for name in PACKAGES)
    ]
    others = [place for place in path if place not in rivals]
    path[:] = [*others, *([] if home in others else [home]), *rivals]


def main() -> None:
    """Run the command line, even if PYTHONPATH or the current folder contains something named like our packages."""
    make_safe(sys.path, str(Path(__file__).parent))
    os.environ["PYTHONSAFEPATH"] = "1"  # child processes don't search the current folder

    from sim.cli.app import main

    main()


if __name__ == "__main__":
    main()
