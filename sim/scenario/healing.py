"""The [network.healing] table: how the overlay heals when brokers crash."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sim.base.units import Duration, PositiveDuration, Repeats
from sim.scenario.fixed_table import FixedTable


class HealingTable(FixedTable):
    """How the overlay heals when brokers crash."""

    period: Annotated[PositiveDuration | None, Repeats("rounds of checks")] = Field(
        default=None, json_schema_extra={"default": "never"}
    )
    """How often brokers check their neighbours; what is down or cut is routed around from the next check on. By default never."""
    convergence: Duration = 0.0
    """The time from that check until all routes and trees have changed."""

    @model_validator(mode="after")
    def _converges_after_checks(self) -> HealingTable:
        if self.convergence and self.period is None:
            raise ValueError("convergence without period (allowed with: period)")
        return self
