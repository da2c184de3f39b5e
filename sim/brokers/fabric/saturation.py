"""When a broker is saturated: more work arrives than it can do, so that only few messages are delivered in time."""

from __future__ import annotations

import math
from typing import NamedTuple

LEAST_SHARE = 0.01
"""A share of the measured time: a backlog that takes less to work off is ignored."""
LARGE_SHARE = 0.5
"""A share of the measured time: a backlog that takes longer to work off is a saturation, however few messages caused it."""
STANDARD_ERRORS = 3.0


def saturated(backlog: float, squares: float, seconds: float) -> bool:
    """Whether a server cannot keep up, given its backlog (s of work) at the end of a run and the measured time (s).

    The backlog is that of an unbounded queue. `squares` is the sum of the squared service times (s²) that have
    arrived since it was last 0. The server cannot keep up where the backlog would take it half of the measured time; or 1 % of it,
    if it is larger than chance explains: in a compound Poisson process the work that arrives while the server can do as much has
    the standard deviation √Σs², and the backlog must exceed three of those.
    """
    chance = STANDARD_ERRORS * math.sqrt(squares)
    return backlog > min(LARGE_SHARE * seconds, max(LEAST_SHARE * seconds, chance))


class Backlog:
    """The work (s) of a link or an interface that would be left if nothing had been refused.

    It is all done at `clear` (s). `since` is when there was last none, `squares` the sum of the squared times of what has come since.
    """

    __slots__ = ("clear", "since", "squares")

    def __init__(self, clear: float = 0.0, since: float = 0.0, squares: float = 0.0) -> None:
        self.clear, self.since, self.squares = clear, since, squares

    def add(self, now: float, work: float) -> None:
        """Add work (s) that comes now."""
        if self.clear <= now:
            self.clear = self.since = now
            self.squares = 0.0
        self.clear += work
        self.squares += work * work

    def left(self, horizon: float) -> float:
        """The work left at the end (s)."""
        return max(self.clear - horizon, 0.0)


class Saturation(NamedTuple):
    """Since when (s) a server cannot keep up, and which share it can do of the work that has come since."""

    since: float
    capacity_share: float


def saturation(backlog: float, squares: float, since: float, seconds: float, horizon: float) -> Saturation | None:
    """The saturation of a server at the end (see `saturated`); None where it keeps up.

    It has had work from `since` on (s), and so has done as much as time has passed, of that and the backlog.
    """
    if not saturated(backlog, squares, seconds):
        return None
    time = horizon - since
    return Saturation(since, time / (time + backlog))
