"""Which publication a full queue drops: the rule of all engines."""

from __future__ import annotations

from sim.base.compiled import kernel

OVERFLOWS = ("drop-newest", "drop-oldest")
"""The names of the policies, by number."""
ARRIVING = -1
"""The publication that arrives."""


@kernel
def dropped(overflow: int, waiting: int) -> int:
    """Which of the publications that wait is dropped for one that arrives, counted from the one that has waited longest; or ARRIVING.

    One waits at least. Whether a policy drops ARRIVING does not depend on how many do.
    """
    return ARRIVING if overflow == 0 else 0
