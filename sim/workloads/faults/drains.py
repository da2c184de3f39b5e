"""Drains: brokers that are emptied of users before they go down."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.base.errors import ScenarioError
from sim.base.units import Duration, PositiveDuration, unit
from sim.workloads.faults.fault import FOR_GOOD, Drain, FaultSetting
from sim.workloads.faults.timed import BrokerReferences, TimedParameters


class DrainFaults:
    """Brokers are drained, one after the other: their users are moved to other brokers, and then they are down."""

    class Parameters(TimedParameters):
        brokers: BrokerReferences
        """A broker, by number or name, or a list of them, of which each is drained when the one before is up again."""
        rate: Annotated[float, Field(gt=0, le=2**53)] | None = Field(default=None, json_schema_extra=unit("1/s"))
        """How many users are moved per second; all at once by default."""
        grace: Duration = 30.0
        """How long a drained broker stays up to serve what is on its way to it."""
        lasts: PositiveDuration | None = Field(default=None, alias="for")
        """How long each drained broker is then down; permanently by default."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Drain]:
        given = self._parameters
        if setting.brokers == 1:
            raise ScenarioError("a single broker has nowhere to move its users to (allowed: two brokers or more)")
        brokers = tuple(dict.fromkeys(map(setting.broker, given.brokers)))
        down = FOR_GOOD if given.lasts is None else given.lasts
        spans = given.spans(setting.horizon)
        return [Drain(start, FOR_GOOD, brokers, given.rate, given.grace, down) for start, _ in spans]
