"""The ends of a run's windows, at which it is kept what stations and links did in them."""

from __future__ import annotations

import math
from collections.abc import Sequence


class WindowEnds:
    """Windows that end one after the other; they begin at all but the last of `edges` (s), and count where they are `measured`."""

    def __init__(self, edges: Sequence[float], measured: Sequence[bool]) -> None:
        self.edges, self._measured = edges, measured
        first = measured.index(True) if True in measured else len(measured)  # a run may end with its warm-up
        self._window = max(first - 1, 0)  # the one that ends next

    @property
    def next(self) -> float:
        """When the next one ends (s), before anything else happens; infinite: at the end of the run alone."""
        following = self._window + 1
        return self.edges[following] if following + 1 < len(self.edges) else math.inf

    @property
    def measured_seconds(self) -> float:
        """How long those that count are together."""
        return self.edges[-1] - self.edges[self._measured.index(True)] if True in self._measured else 0.0

    def end(self) -> int | None:
        """The next one ends; its number where it counts."""
        self._window += 1
        return self._window - 1 if self._measured[self._window - 1] else None
