"""Parameters that all offloading policies share: the capacity, when decisions are made, and the best-effort channel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from sim import plugins
from sim.base.errors import cut
from sim.base.naming import RawValue
from sim.base.randomness import Streams
from sim.base.units import Duration, Period, Quantity
from sim.policies.offloading import kernels
from sim.policies.offloading.problem import OffloadingProblem


@dataclass(frozen=True)
class Capacity:
    """A capacity: a number of notifications per period, or a share of the cost of all topics."""

    amount: float
    relative: bool = False

    def of(self, total: float) -> float:
        """In notifications per period, where all topics cost `total`; a share is rounded once, so that 29 % of 100 are 29."""
        return float(Fraction(repr(self.amount)) * Fraction(total)) if self.relative else self.amount

    def __str__(self) -> str:
        return f"{(100 * Decimal(repr(self.amount))).normalize():f}%" if self.relative else f"{self.amount:.15g}"


def parse_capacity(value: RawValue) -> Capacity:
    """Parse a number of 0 or more, or a text such as "10%". Raises ValueError."""
    if isinstance(value, Capacity):
        return value
    text = str(value).strip()
    number = text.removesuffix("%")
    try:
        amount = float(number)
    except ValueError:
        amount = -1.0
    if isinstance(value, bool) or not (0 <= amount <= 1e18):
        raise ValueError(
            f"expected a number of notifications per period (0 to 1e18) or a share such as '10%', found {cut(repr(value))}"
        )
    return Capacity(float(Decimal(number) / 100), True) if number != text else Capacity(amount)


class OffloadingParameters(plugins.Parameters):
    """Parameters of the offloading service: the capacity, the periods, and the channel for offloaded topics."""

    capacity: Annotated[
        Capacity,
        PlainValidator(parse_capacity),
        PlainSerializer(lambda capacity: str(capacity) if capacity.relative else capacity.amount),
        WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "%$"}]}),
    ] = Field(default=Capacity(0.1, relative=True), json_schema_extra={"default": "10%"})
    """The back end's capacity: notifications per period, or a share of all ("10%")."""
    scope: Literal["network", "broker"] = "network"
    """Whether the capacity is that of all brokers together, or of each, which decides alone (a share of what its users want)."""
    tau: Quantity = 27
    """The notifications per period that satisfy a user; a user who is due fewer needs all of them."""
    period: Period = 86400.0
    """Decisions are made at the start of each period; satisfaction is measured over each period."""
    smoothing: float = Field(0.3, gt=0, le=1)
    """Weight of the last period in the expected event rates."""
    warm_start: bool = True
    """Whether greedy policies and the portfolio start from the previous decision if few rates have changed: faster, with less churn."""
    delivery_probability: float = Field(0.9, ge=0, le=1)
    """Probability that the best-effort channel delivers."""
    extra_delay: Duration = 1.0
    """Additional delay of the best-effort channel over a direct hop from the root to the broker."""


class OffloadingWithoutParameters:
    """Base of policies without parameters beyond those of the service."""

    class Parameters(OffloadingParameters):
        pass

    def __init__(self, parameters: Parameters) -> None:
        self._warm_start = parameters.warm_start


def make_problem(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    event_rate: NDArray[np.float64],
    capacity: Capacity,
    tau: float | NDArray[np.float64],
    cost: NDArray[np.float64] | None = None,
    seed: int = 1,
) -> OffloadingProblem:
    """As `OffloadingProblem.of`, with a capacity that may be a share of the cost of all topics with subscribers."""
    found = OffloadingProblem.of(indptr, indices, event_rate, 0.0, tau, cost, Streams(seed).key("offloading"))
    return found.with_capacity(capacity.of(_total_cost(found)))


def _total_cost(problem: OffloadingProblem) -> float:
    """The cost of all topics with subscribers."""
    return math.fsum(problem.cost[kernels.degrees(problem.indices, problem.topics) > 0].tolist())
