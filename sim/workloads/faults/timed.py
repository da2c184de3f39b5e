"""Parameters of faults that are listed by hand: when they begin and how long they last, and which brokers they are of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, WithJsonSchema

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.naming import RawValue
from sim.base.units import Duration, PositiveDuration, format_duration
from sim.base.validation import show
from sim.workloads.faults.fault import FOR_GOOD

MOST_FAULTS = 1_000_000
"""Most faults of a kind in a run: as many take seconds and a gigabyte."""


def _several(one: RawValue) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})


def _as_tuple(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _reference(value: object) -> int | str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(f"expected a broker, by its number or its name, found {show(value)}")


_REFERENCE = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
BrokerReference = Annotated[int | str, PlainValidator(_reference), WithJsonSchema(_REFERENCE)]
"""A broker by its number or its name."""
BrokerReferences = Annotated[
    tuple[BrokerReference, ...], BeforeValidator(_as_tuple), Field(min_length=1), _several(_REFERENCE)
]
"""A broker, or a list of brokers."""
Times = Annotated[
    tuple[Duration, ...],
    BeforeValidator(_as_tuple),
    Field(min_length=1),
    _several(TypeAdapter[Any](Duration).json_schema()),
]
"""A time, or a list of times, from the start of the run."""


class TimedParameters(plugins.Parameters):
    """Parameters of a fault that begins at times that are listed."""

    model_config = ConfigDict(serialize_by_alias=True)

    at: Times
    """When it begins: a time, or a list of times."""
    lasts: PositiveDuration | None = Field(default=None, alias="for")
    """How long it lasts; by default for good."""
    every: PositiveDuration | None = None
    """After how long it begins again, and again, up to the horizon; by default never."""

    def spans(self, horizon: float) -> list[tuple[float, float]]:
        """From when to when (s) it lasts. Raises ScenarioError where it would not begin before the horizon (s), or too often."""
        starts: list[float] = []
        for first in self.at:
            if first >= horizon:
                raise ScenarioError(
                    f"at: expected times before the horizon ({format_duration(horizon)}), found {format_duration(first)}"
                )
            again = 0 if self.every is None else int((horizon - first) / self.every)
            if again > MOST_FAULTS:
                least = format_duration((horizon - first) / MOST_FAULTS)
                raise ScenarioError(f"every: expected {least} or more, found {format_duration(self.every or 0)}")
            starts += [first + number * (self.every or 0) for number in range(again + 1)]
        lasts = FOR_GOOD if self.lasts is None else self.lasts
        return [(start, start + lasts) for start in starts if start < horizon]
