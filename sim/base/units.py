"""Quantities with units, as people write them: durations are seconds in float64 once read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, PlainSerializer, WithJsonSchema

from sim.base.errors import cut

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([a-zA-Z/]*)")


def parse_duration(value: object) -> float:
    """Parse a duration such as "90s", "1.5 h" or "7d" to seconds; a plain number is in seconds.

    Raises ValueError where the text is no duration or is not finite.
    """
    return _in_units(value, SECONDS, "s", "duration", "'90s', '10h' or '7d'")


def _in_units(value: object, units: Mapping[str, float], plain: str, what: str, examples: str) -> float:
    """A number in the unit `plain`, or a text with one of the `units` or none."""
    found = cut(repr(value))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a {what} such as {examples}, found {found}")
    if isinstance(value, str):
        match = _WITH_UNIT.fullmatch(value.strip())
        unit = (match[2] or plain) if match else ""
        if match is None or unit not in units:
            raise ValueError(f"expected a {what} such as {examples} (units: {', '.join(units)}), found {found}")
        value = float(match[1]) * units[unit]
    number = float(value) if abs(value) < 1 << 1023 else math.inf
    if not math.isfinite(number):
        raise ValueError(f"expected a finite {what}, found {found}")
    return number


def parse_fraction(value: object) -> Fraction:
    """Parse a number to its exact value as written: 1.1 is 11/10; "3/2" is allowed too.

    Raises ValueError where it is no number or is not finite.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a number such as 1.5 or '3/2', found {cut(repr(value))}")
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"expected a number such as 1.5 or '3/2', found {cut(repr(value))}") from None


def format_duration(seconds: float, digits: int = 3) -> str:
    """A duration in the largest unit that keeps the number at 1 or above, with three significant digits: `36 ms`, `1.5 h`."""
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:g} s"
    unit = max((u for u in SECONDS if u != "w" and SECONDS[u] <= abs(seconds)), key=SECONDS.__getitem__, default="us")
    return f"{seconds / SECONDS[unit]:.{digits}g} {unit}"


def write_duration(seconds: float) -> str:
    """A duration in the largest unit in which six digits are exact, `1.5 h` but `3601 s`; rounded to six digits where there is none."""
    units = [unit for unit in reversed(SECONDS) if unit != "w" and SECONDS[unit] <= abs(seconds)]
    texts = [f"{seconds / SECONDS[unit]:.6g} {unit}" for unit in units if math.isfinite(seconds)]
    exact = (text for text in texts if math.isclose(parse_duration(text), seconds, rel_tol=1e-12))
    return next(exact, format_duration(seconds, 6))


def unit(name: str) -> dict[str, JsonValue]:
    """The unit of a parameter that is a plain number, for display: `Field(20.0, json_schema_extra=unit("km"))`."""
    return {"x-unit": name}


_LONGEST = 9e9
"""The longest duration, 285 years in seconds: up to here float64 resolves microseconds."""
_PATTERN = rf"^{_NUMBER}\s*({'|'.join(SECONDS)})?$"
_SCHEMA = WithJsonSchema(
    {
        "anyOf": [{"type": "number", "minimum": 0, "maximum": _LONGEST}, {"type": "string", "pattern": _PATTERN}],
        "x-unit": "s",
    }
)
Duration = Annotated[float, BeforeValidator(parse_duration), Field(ge=0, le=_LONGEST), _SCHEMA]
PositiveDuration = Annotated[float, BeforeValidator(parse_duration), Field(gt=0, le=_LONGEST), _SCHEMA]


_BITS = {"b/s": 1.0, "B/s": 8.0}
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_BIT_RATES = {f"{prefix}{unit}": factor * bits for prefix, factor in _PREFIXES.items() for unit, bits in _BITS.items()}


def parse_bit_rate(value: object) -> float:
    """Parse a rate such as "0.3Gb/s" or "10 MB/s" to bits per second; a plain number is in bits per second.

    Raises ValueError where the text is no rate or is not finite.
    """
    return _in_units(value, _BIT_RATES, "b/s", "rate", "'0.3Gb/s' or '10MB/s'")


BitRate = Annotated[
    float,
    BeforeValidator(parse_bit_rate),
    Field(gt=0),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": rf"^{_NUMBER}\s*({'|'.join(_BIT_RATES)})?$"},
            ],
            "x-unit": "b/s",
        }
    ),
]
"""A rate of transmission in bits per second."""


@dataclass(frozen=True)
class Repeats:
    """Marks a parameter as the period of steps that repeat until the horizon; `what` names the steps.

    How many of them there may be is limited (`sim.scenario.model.MOST_STEPS`).
    """

    what: str = "periods"


Period = Annotated[PositiveDuration, Repeats()]
"""A period, repeated until the horizon."""

Quantity = Annotated[float, Field(ge=0, le=2**53)]
"""The largest weight, rate or count: exact as a float64, and results computed from such numbers stay finite."""
Sigma = Annotated[float, Field(ge=0, le=5)]
"""The largest σ of a lognormal factor; at 5 its mean is 268,000 times its median."""


def parse_utc(text: str) -> str:
    """Parse a time such as 2010-08-01T00:00:00Z to UTC; without an offset it is UTC. Raises ValueError where it is not a time."""
    time = datetime.fromisoformat(text)
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"expected a time in the years 1 to 9999, UTC, found {text}") from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


Utc = Annotated[str, AfterValidator(parse_utc)]

_FRACTION = rf"^{_NUMBER}$|^[+-]?\d+/\d+$"
FactorAboveOne = Annotated[
    Fraction,
    BeforeValidator(parse_fraction),
    Field(ge=1),
    PlainSerializer(str),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 1}, {"type": "string", "pattern": _FRACTION}]}),
]
"""An exact factor of at least 1."""
