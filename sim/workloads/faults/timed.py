"""Parameters of faults that are listed by hand: their brokers, times and durations."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, WithJsonSchema, model_validator

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.naming import RawValue
from sim.base.units import Duration, PositiveDuration, format_duration
from sim.base.validation import show
from sim.workloads.faults.fault import FOR_GOOD

MOST_FAULTS = 1_000_000
"""The most faults of a kind in a run; that many take seconds and a gigabyte."""


def one_or_more(one: RawValue) -> WithJsonSchema:
    """The JSON Schema of one item or a list of them."""
    return WithJsonSchema({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


def as_tuple(value: object) -> tuple[object, ...]:
    """One item as a list of itself. Raises ValueError where a list is empty."""
    if value in ([], ()):
        raise ValueError("expected one or more, found none")
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _reference(value: object) -> int | str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(f"expected a broker, by number or name, found {show(value)}")


_REFERENCE = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
BrokerReference = Annotated[int | str, PlainValidator(_reference), WithJsonSchema(_REFERENCE)]
"""A broker by number or name."""
BrokerReferences = Annotated[tuple[BrokerReference, ...], BeforeValidator(as_tuple), one_or_more(_REFERENCE)]
"""A broker, or a list of brokers."""
Times = Annotated[
    tuple[Duration, ...],
    BeforeValidator(as_tuple),
    one_or_more(TypeAdapter[float](Duration).json_schema()),
]
"""A time, or a list of times, from the start of the run."""


class BeginningParameters(plugins.Parameters):
    """Parameters of what begins at given times."""

    at: Times
    """When it begins: a time, or a list of times."""

    def wrong(self, horizon: float) -> str | None:
        """The mistake in the times for a run up to a horizon (s), if any."""
        late = [format_duration(first) for first in self.at if first >= horizon]
        return f"at: expected times before the horizon ({format_duration(horizon)}), found {late[0]}" if late else None

    def starts(self, horizon: float) -> list[float]:
        """The times (s) at which it begins. Raises ScenarioError where they are `wrong` for a run up to a horizon."""
        if wrong := self.wrong(horizon):
            raise ScenarioError(wrong)
        return list(self.at)


class TimedParameters(BeginningParameters):
    """Parameters of a fault that begins at given times."""

    model_config = ConfigDict(serialize_by_alias=True)

    lasts: PositiveDuration | None = Field(default=None, alias="for")
    """How long it lasts; permanently by default."""
    every: PositiveDuration | None = None
    """The period after which it repeats, up to the horizon; never by default."""

    @model_validator(mode="after")
    def _ends_before_it_begins_again(self) -> TimedParameters:
        if self.every is not None and (self.lasts is None or self.every < self.lasts):
            lasts = "permanently" if self.lasts is None else f"for {format_duration(self.lasts)}"
            raise ValueError(f"every: it lasts {lasts} (allowed: as long as it lasts, or longer; or no every)")
        return self

    def wrong(self, horizon: float) -> str | None:
        """The mistake in the times for a run up to a horizon (s), if any."""
        if wrong := super().wrong(horizon):
            return wrong
        for first in self.at:
            if self.every is not None and (horizon - first) / self.every > MOST_FAULTS:
                least = format_duration((horizon - first) / MOST_FAULTS)
                return f"every: expected {least} or more, so {MOST_FAULTS:,} times at most, found {format_duration(self.every)}"
        return None

    def spans(self, horizon: float) -> list[tuple[float, float]]:
        """The spans (s) in which it lasts, up to a horizon. Raises ScenarioError where the times are `wrong`."""
        starts = self.starts(horizon)
        if self.every is not None:
            starts = [
                first + number * self.every
                for first in self.at
                for number in range(math.ceil((horizon - first) / self.every))
            ]
        lasts = FOR_GOOD if self.lasts is None else self.lasts
        return [(start, start + lasts) for start in starts if start < horizon]
