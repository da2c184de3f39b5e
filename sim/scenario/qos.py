"""The [network.qos] table: messages between clients and brokers by MQTT's quality of service."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from sim.base.randomness import Streams
from sim.base.units import Duration, PositiveDuration
from sim.base.validation import show
from sim.scenario.fixed_table import FixedTable
from sim.workloads.format.workload import Workload
from sim.workloads.models.exchange_kernels import Path
from sim.workloads.models.publishing import PublishingCounts, through_publishers

_Share = Annotated[float, Field(ge=0, le=1)]
_Shares = tuple[_Share, _Share, _Share]


def _shares(value: object) -> object:
    """The shares of the three qualities; a single one has all."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2:
        return tuple(float(quality == value) for quality in range(3))
    parts = value if isinstance(value, list | tuple) else ()
    numbers = [part for part in parts if isinstance(part, int | float) and not isinstance(part, bool)]
    if len(numbers) == len(parts) == 3 and min(numbers) >= 0 and math.isclose(sum(numbers), 1):
        return tuple(float(number) for number in numbers)
    raise ValueError(f"expected 0, 1 or 2, or the shares of the three, which add up to 1, found {show(value)}")


_NUMBER = {"enum": [0, 1, 2]}
_PARTS = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 3, "maxItems": 3}
_ByQuality = Annotated[_Shares, BeforeValidator(_shares), WithJsonSchema({"anyOf": [_NUMBER, _PARTS]})]


class PublishersTable(FixedTable):
    """The way from publishing users to their brokers; without a latency it takes no time and loses nothing."""

    latency: Duration = 0.0
    """The time from a publisher to its broker, and of an acknowledgement back."""
    window: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """How many unacknowledged messages a publisher may have on their way; unlimited by default."""

    @model_validator(mode="after")
    def _makes_sense(self) -> PublishersTable:
        if self.window and not self.latency:
            raise ValueError("window without a latency, so that it has no effect (allowed with: latency)")
        return self


class QosTable(FixedTable):
    """Quality of service between clients and brokers as in MQTT: a message goes by the lower of its own and its subscription's."""

    publications: _ByQuality = Field(default=(0.0, 1.0, 0.0), json_schema_extra={"default": 1})
    """The quality of publications for which the workload gives none: 0, 1 or 2, or the shares of the three."""
    subscriptions: _ByQuality = Field(default=(0.0, 0.0, 1.0), json_schema_extra={"default": 2})
    """The quality of subscriptions for which the workload gives none, likewise."""
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The probability that the way between a client and its broker loses a message, or an acknowledgement."""
    timeout: PositiveDuration | None = Field(default=None, json_schema_extra={"default": "never"})
    """How long a sender waits for an acknowledgement before it sends again; by default until the client connects again."""
    publishers: PublishersTable = PublishersTable()
    """The way from publishing users to their brokers."""


def with_qos(
    table: QosTable | None, workload: Workload, streams: Streams, horizon: float
) -> tuple[Workload, PublishingCounts | None]:
    """The workload up to a horizon (s) in which every publication has a quality of service, drawn where it is not known.

    If the way from publishers to brokers takes time, publications arrive after it, and the counts of that way are returned too; else
    None. Without a table, the workload is unchanged.
    """
    if table is None:
        return workload, None
    published = workload.publications
    bounds = np.cumsum(table.publications[:2])
    drawn = np.searchsorted(bounds, streams.generator("qos of publications").random(len(published)), "right")
    qos: NDArray[np.int8] = np.where(published.qos < 0, drawn, published.qos).astype(np.int8)
    workload = replace(workload, publications=replace(published, qos=qos))
    if not table.publishers.latency:
        return workload, None
    timeout = math.inf if table.timeout is None else table.timeout
    path = Path(table.publishers.latency, 0.0, 0, table.loss, streams.key("publisher loss"), timeout)
    return through_publishers(workload, path, table.publishers.window, horizon)
