"""The command `brokersim` (also `python -m brokersim`): makes the path safe, then starts.

It stands beside the packages, not in one of them: which `sim` is imported is what it settles.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("sim", "analysis", "scenarios")


def make_safe(path: list[str], home: str) -> None:
    """Have `home` searched before folders that hold something named as one of our packages; plug-ins there are still found."""
    rivals = [
        place for place in path if place != home and any(PathFinder.find_spec(name, [place]) for name in PACKAGES)
    ]
    others = [place for place in path if place not in rivals]
    path[:] = [*others, *([] if home in others else [home]), *rivals]


def main() -> None:
    """Run the command line, whatever is named as our packages are, on PYTHONPATH or in the current folder."""
    make_safe(sys.path, str(Path(__file__).parent))
    os.environ["PYTHONSAFEPATH"] = "1"  # the processes that it starts don't search the current folder

    from sim.cli.app import main

    main()


if __name__ == "__main__":
    main()
