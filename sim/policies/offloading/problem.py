"""The offloading problem and decision: which topics the back end keeps (ODS II, IV)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import Integers
from sim.base.csr import transpose
from sim.base.errors import InputError
from sim.policies.offloading import kernels

UNITS = 1000
"""The unit (1 / this of an event) where event rates are not whole numbers."""
_MOST = 1 << 62

Objective = Literal["satisfied", "satisfaction"]
"""What is maximised: the satisfied subscribers (B3M, eq. 1, 2), or the sum of all subscribers' satisfaction (F-B3M, eq. 3, 4)."""

By = Literal["ratio", "gain"]
"""The criterion of a greedy choice: a topic's gain per cost (type R), or its gain (type G)."""


@dataclass(frozen=True, eq=False)
class OffloadingProblem:
    """The problem: n subscribers and l topics, of which the back end may serve some, up to a total cost of its capacity.

    `indptr` (n + 1), `indices`: the interests as CSR, ascending for each subscriber. `event_rate` (l): events per period, in units of
    1 / `scale`, so that they are whole. `threshold`: tau of all subscribers, or of each (n), in the same unit, not yet limited to
    the total rate of the subscriber's topics. `cost` (l): of serving a topic, in the unit of `capacity`; normalised (1 per
    notification), it is event rate times number of subscribers. `key`: for random draws.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    event_rate: NDArray[np.int64]
    cost: NDArray[np.float64]
    capacity: float
    threshold: int | NDArray[np.int64]
    scale: int = 1
    key: int = 0

    @classmethod
    def of(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        event_rate: ArrayLike,
        capacity: float,
        tau: ArrayLike,
        cost: NDArray[np.float64] | None = None,
        key: int = 0,
    ) -> OffloadingProblem:
        """Create a problem from event rates (l) and thresholds tau (one, or n) in events per period, which need not be whole.

        If some are not, all are rounded to 1 / 1000, those above 0 to at least that. `cost` None is the normalised cost.
        Raises InputError where rates are not finite numbers of 0 or more, or too large to count what a subscriber receives.
        """
        rates, thresholds = np.asarray(event_rate), np.asarray(tau, np.float64)
        wrong = np.flatnonzero(~((rates >= 0) & np.isfinite(rates)))
        if wrong.size:
            raise InputError(
                f"event rates: expected finite numbers of 0 or more, found {rates[wrong[0]]} for topic {wrong[0]}"
            )
        if np.isnan(thresholds).any():
            raise InputError("tau: expected numbers, found nan")
        scale = 1 if _whole(rates) and _whole(thresholds) else UNITS
        most = int(np.diff(indptr).max(initial=0))
        if most * float(rates.max(initial=0)) * scale >= _MOST:
            raise InputError(
                f"event rates: {rates.max():g} is too large for a subscriber to {most:,} topics "
                f"(the product must be below {_MOST / scale:.2g})"
            )
        units = _in_units(rates, scale)
        if cost is None:
            cost = units * kernels.degrees(indices, len(units)) / scale
        threshold = _in_units(thresholds, scale)
        return cls(indptr, indices, units, cost, capacity, threshold if threshold.ndim else int(threshold), scale, key)

    @property
    def subscribers(self) -> int:
        return len(self.indptr) - 1

    @property
    def topics(self) -> int:
        return len(self.event_rate)

    def received(self, topics: Integers) -> NDArray[np.int64]:
        """The events that each subscriber (n) receives of these topics."""
        rate = np.zeros_like(self.event_rate)
        rate[topics] = self.event_rate[topics]
        return kernels.received(self.indptr, self.indices, rate)

    def with_capacity(self, capacity: float) -> OffloadingProblem:
        """The same problem at another capacity; cached values are shared."""
        other = copy(self)
        object.__setattr__(other, "capacity", capacity)
        return other

    @cached_property
    def need(self) -> NDArray[np.int64]:
        """What satisfies each subscriber (n), tau_v = min(tau, total rate of its topics); 0: satisfied for free."""
        need = kernels.received(self.indptr, self.indices, self.event_rate)
        np.minimum(need, np.maximum(self.threshold, 0), out=need)
        return need

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The number of subscribers of each topic (l)."""
        return kernels.degrees(self.indices, self.topics)

    @cached_property
    def by_topic(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The subscribers of each topic as CSR: `indptr` (l + 1) and `indices`, ascending for each topic."""
        return transpose(self.indptr, self.indices, self.topics)

    @cached_property
    def normalised(self) -> bool:
        """Whether serving a topic costs 1 per notification."""
        return bool(np.array_equal(self.cost, self.event_rate * self.degrees / self.scale))


def _whole(values: Integers | NDArray[np.float64]) -> bool:
    return values.dtype.kind in "iu" or bool(np.all(values == np.floor(values)))


def _in_units(values: Integers | NDArray[np.float64], scale: int) -> NDArray[np.int64]:
    """In units of 1 / scale; values above 0 stay so, and those beyond what a subscriber can receive are capped."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64) * scale
    rounded: NDArray[np.float64] = np.rint(np.clip(values, -1.0, _MOST / scale) * scale)
    return np.maximum(rounded, values > 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Decision:
    """The topics that the back end keeps, in the order in which they were picked; `by`: the criterion of a greedy choice.

    `event_rate`, `cost` (l): the data decided on, so that a later decision can start from this one; None: it cannot.
    """

    topics: NDArray[np.int32]
    by: By = "ratio"
    event_rate: NDArray[np.int64] | None = None
    cost: NDArray[np.float64] | None = None

    @classmethod
    def on(cls, problem: OffloadingProblem, topics: NDArray[np.int32], by: By = "ratio") -> Decision:
        """The decision on a problem."""
        return cls(topics, by, problem.event_rate, problem.cost)


class OffloadingPolicy(Protocol):
    """Which topics the back end keeps: a pure function of the problem. Plug-in group `brokersim.offloading`.

    The class has a nested `Parameters` that extends `sim.policies.offloading.process.OffloadingParameters`, and is created by
    `Policy(parameters)`.
    """

    objective: Objective

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """Decide once; `previous` is the decision before rates or interests changed, as a starting point."""
