"""How much tests try: all cases where CI is set, as `.ci/run` sets it, and a third of the generated ones in everyday runs."""

from __future__ import annotations

import os

DEEP = bool(os.environ.get("CI"))


def tried(cases: int) -> int:
    """The number of cases to generate, out of this many: all of them in CI, a third otherwise."""
    return cases if DEEP else -(-cases // 3)


def least(times: int) -> int:
    """How often a hard situation must occur at least, if it must occur `times` times in all cases: a fifth outside CI."""
    return times if DEEP else times // 5
