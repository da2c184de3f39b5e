"""What an offloading policy may see, and what it may decide: which topics the back end keeps (ODS II, IV)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Objective = Literal["satisfied", "satisfaction"]
"""What is maximised: subscribers that are satisfied (B3M, eq. 1, 2), or the sum of how far each one is (F-B3M, eq. 3, 4)."""


@dataclass(frozen=True, eq=False)
class Problem:
    """n subscribers and l topics; the back end may serve topics of a total cost up to its capacity.

    `indptr` (n + 1), `indices`: the interests as CSR, ascending for each subscriber. `event_rate` (l): events per period, in units of
    1 / `scale`, so that they are whole. `threshold`: tau of all subscribers, or of each (n), in the same unit, before the minimum
    with what the subscriber's topics have in all. `cost` (l): of serving a topic, in the unit of `capacity`; normalised, that is one
    for each notification, it is event rate times number of subscribers. `key`: for draws.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    event_rate: NDArray[np.int64]
    cost: NDArray[np.float64]
    capacity: float
    threshold: int | NDArray[np.int64]
    scale: int = 1
    key: int = 0

    @property
    def subscribers(self) -> int:
        return len(self.indptr) - 1

    @property
    def topics(self) -> int:
        return len(self.event_rate)


@dataclass(frozen=True, eq=False)
class Decision:
    """The topics that the back end keeps, in the order in which they were picked."""

    topics: NDArray[np.int32]


class OffloadingPolicy(Protocol):
    """Which topics the back end keeps: a pure function of the problem. Plug-in group `brokersim.offloading`.

    The class has a nested `Parameters` that extends `sim.policies.offloading.process.OffloadingParameters`, and is made by
    `Policy(parameters)`.
    """

    objective: Objective

    def decide(self, problem: Problem, previous: Decision | None = None) -> Decision:
        """Decide once; `previous` is what was decided before rates or interests changed, to start from."""
