"""The [network.reconnect] table: how users whose broker has crashed reconnect."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim.base.units import Duration, PositiveDuration, format_duration
from sim.scenario.fixed_table import FixedTable


class ReconnectTable(FixedTable):
    """How a user whose broker has crashed reconnects."""

    detection: Duration = 0.0
    """How long after the crash a user notices it, and makes its first attempt to connect."""
    to: Literal["same", "policy"] = "same"
    """The broker that a user tries: the same again, or the one that the selection policy selects, or the live one closest to it."""
    backoff: Literal["fixed", "exponential"] = "exponential"
    """How the wait after a failed attempt changes: constant, or doubled after each."""
    wait: PositiveDuration = 1.0
    """The wait after the first failed attempt."""
    longest: PositiveDuration = 60.0
    """The longest wait; only for exponential back-off."""
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Each wait is shortened by a share drawn between 0 and this."""

    @model_validator(mode="after")
    def _waits_no_longer_than_the_longest(self) -> ReconnectTable:
        if self.backoff == "exponential" and self.wait > self.longest:
            wait, longest = format_duration(self.wait), format_duration(self.longest)
            raise ValueError(f"wait: expected at most the longest wait ({longest}), found {wait}")
        return self
