"""How much tests try: all cases where CI is set, as `.ci/run` sets it, and a third of the generated ones in everyday runs."""

from __future__ import annotations

import os

DEEP = bool(os.environ.get("CI"))


def tried(cases: int) -> int:
    """How many of so many cases to generate."""
    return cases if DEEP else -(-cases // 3)


def least(times: int) -> int:
    """How often what is hard has to occur in generated cases, if so often in all of them."""
    return times if DEEP else times // 5
