"""When a broker is saturated: more work arrives than it can do, so that what is delivered in time are the exceptions."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_SHARE = 0.01
"""Of the measured time: a backlog that takes less to work off is not worth mentioning."""
LARGE_SHARE = 0.5
"""Of the measured time: a backlog that takes longer to work off is a saturation, however few messages it came with."""
STANDARD_ERRORS = 3.0


def saturated(backlog: float, squares: float, seconds: float) -> bool:
    """Whether a server cannot keep up, by its backlog (s of work) at the end of a run of which so many seconds are measured.

    It is the backlog that there would be if the queue had no bound. `squares` is the sum of the squared service times (s²) that have
    arrived since it was last 0. The server cannot keep up where the backlog would take it half of the measured time; or 1 % of it, and
    is larger than chance explains: in a compound Poisson process the work that arrives in a time in which the server could do as much
    has the standard deviation √Σs², and the backlog must exceed three of those.
    """
    chance = STANDARD_ERRORS * math.sqrt(squares)
    return backlog > min(LARGE_SHARE * seconds, max(LEAST_SHARE * seconds, chance))


def overloaded(messages: Sequence[int], sizes: Sequence[int], rate: float | None, seconds: float) -> list[bool]:
    """Which links, or interfaces, of a rate (bytes per second) cannot carry what is sent over them in so many seconds.

    Each has so many messages, with so many bytes in all. As for servers, with the least chance that there may be: messages of one size.
    """
    if rate is None:
        return [False] * len(messages)
    works = [(count, size / rate) for count, size in zip(messages, sizes, strict=True)]
    return [count > 0 and saturated(work - seconds, work * work / count, seconds) for count, work in works]
