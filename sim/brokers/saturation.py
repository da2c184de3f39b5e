"""When a broker is saturated: more work arrives than it can do, so that its delays are those of the lucky ones."""

from __future__ import annotations

import math

LEAST_SHARE = 0.01
"""Of the measured time: a backlog that takes less to work off is not worth mentioning."""
LARGE_SHARE = 0.5
"""Of the measured time: a backlog that takes longer to work off is a saturation, however few messages it came with."""
STANDARD_ERRORS = 3.0


class Workload:
    """The seconds of work that would wait at a server if its queue had no bound: Lindley's recursion over all that arrives.

    It counts what a full queue refuses too, so that it grows without end wherever more work arrives than the server can do, and
    equals what really waits where nothing is refused. `since` is when it was last 0 (s), and `squares` the sum of the squared service
    times that have arrived since (s²).
    """

    __slots__ = ("_at", "backlog", "since", "squares")

    def __init__(self) -> None:
        self.backlog = self.since = self.squares = self._at = 0.0

    def arrive(self, now: float, service: float) -> None:
        """A message arrives that takes so many seconds to serve, whether there is room for it or not."""
        self.advance(now)
        if self.backlog == 0.0:
            self.since, self.squares = now, 0.0
        self.backlog += service
        self.squares += service * service

    def advance(self, now: float) -> None:
        """Work goes on up to `now`."""
        self.backlog = max(self.backlog - (now - self._at), 0.0)
        self._at = now

    def saturated(self, seconds: float) -> bool:
        """Whether the server cannot keep up, by its backlog at the end of a run of which so many seconds are measured.

        It cannot where the backlog would take it half of the measured time; or 1 % of it, and is larger than chance explains: in a
        compound Poisson process the work that arrives in a time in which the server could do as much has the standard deviation
        √Σs², and the backlog must exceed three of those.
        """
        chance = STANDARD_ERRORS * math.sqrt(self.squares)
        return self.backlog > min(LARGE_SHARE * seconds, max(LEAST_SHARE * seconds, chance))
