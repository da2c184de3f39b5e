"""The offloading problem and decision: which topics the back end keeps (ODS II, IV)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.csr import transpose
from sim.base.errors import InputError
from sim.policies.offloading import kernels

UNITS = 1000
"""Of an event, where event rates are no whole numbers."""
_MOST = 1 << 62

Objective = Literal["satisfied", "satisfaction"]
"""What is maximised: subscribers that are satisfied (B3M, eq. 1, 2), or the sum of how far each one is (F-B3M, eq. 3, 4)."""

By = Literal["ratio", "gain"]
"""What a greedy choice goes by: what a topic gains for its cost (type R), or what it gains (type G)."""


@dataclass(frozen=True, eq=False)
class OffloadingProblem:
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
        """The problem of event rates (l) and thresholds tau (one, or n) in events per period, that need not be whole.

        Where some are not, all are rounded to 1 / 1000, those above 0 to no less than that. `cost` None is the normalised cost.
        Raises InputError where rates are no finite numbers of 0 or more, or too large for what a subscriber receives to be counted.
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
                f"event rates: {rates.max():g} is too much to be counted for a subscriber to {most:,} topics "
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

    def received(self, topics: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The events that each subscriber (n) receives of these topics."""
        rate = np.zeros_like(self.event_rate)
        rate[topics] = self.event_rate[topics]
        return kernels.received(self.indptr, self.indices, rate)

    def with_capacity(self, capacity: float) -> OffloadingProblem:
        """The same problem at another capacity; what is derived already serves both."""
        other = copy(self)
        object.__setattr__(other, "capacity", capacity)
        return other

    @cached_property
    def need(self) -> NDArray[np.int64]:
        """What satisfies each subscriber (n), tau_v = min(tau, what its topics have in all); 0: satisfied for free."""
        need = kernels.received(self.indptr, self.indices, self.event_rate)
        np.minimum(need, np.maximum(self.threshold, 0), out=need)
        return need

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The subscribers of each topic (l)."""
        return kernels.degrees(self.indices, self.topics)

    @cached_property
    def by_topic(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The subscribers of each topic as CSR: `indptr` (l + 1) and `indices`, ascending for each topic."""
        return transpose(self.indptr, self.indices, self.topics)

    @cached_property
    def normalised(self) -> bool:
        """Whether serving a topic costs one for each notification."""
        return bool(np.array_equal(self.cost, self.event_rate * self.degrees / self.scale))


def _whole(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" or bool(np.all(values == np.floor(values)))


def _in_units(values: NDArray[Any], scale: int) -> NDArray[np.int64]:
    """In units of 1 / scale; what is above 0 stays so, and what no subscriber can receive is cut to what still is a number."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64) * scale
    rounded: NDArray[np.float64] = np.rint(np.clip(values, -1.0, _MOST / scale) * scale)
    return np.maximum(rounded, values > 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Decision:
    """The topics that the back end keeps, in the order in which they were picked; `by`: what by, where that was greedy.

    `event_rate`, `cost` (l): what was decided on, so that another decision can start from this one; None: it cannot.
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

    The class has a nested `Parameters` that extends `sim.policies.offloading.process.OffloadingParameters`, and is made by
    `Policy(parameters)`.
    """

    objective: Objective

    def decide(self, problem: OffloadingProblem, previous: Decision | None = None) -> Decision:
        """Decide once; `previous` is what was decided before rates or interests changed, to start from."""
