"""When a broker is saturated: more work arrives than it can do, so that only few messages are delivered in time."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def overloaded(messages: Sequence[int], sizes: Sequence[int], rate: float | None, seconds: float) -> list[bool]:
    """Which links, or interfaces, of a rate (bytes per second) cannot carry what is sent over them in the measured time (s).

    Each has a number of messages and their total bytes. As for servers, with the least possible variance: messages of equal size.
    """
    if rate is None:
        return [False] * len(messages)
    works = [(count, size / rate) for count, size in zip(messages, sizes, strict=True)]
    return [count > 0 and saturated(work - seconds, work * work / count, seconds) for count, work in works]
