"""Faults of brokers and their manager at given times: crashes, slowdowns, a dead manager."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.workloads.faults.fault import DeadManager, FaultSetting, Outage, Slowdown
from sim.workloads.faults.timed import BrokerReferences, TimedParameters


class CrashFaults:
    """Brokers crash at given times, and restart."""

    class Parameters(TimedParameters):
        brokers: BrokerReferences
        """A broker, by number or name, or a list of them, which crash simultaneously."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Outage]:
        spans = self._parameters.spans(setting.horizon)
        brokers = map(setting.broker, self._parameters.brokers)
        return [Outage(start, end, broker, listed=True) for broker in brokers for start, end in spans]


class SlowFaults:
    """Brokers are slow at given times: the times of services that begin then are multiplied by a factor."""

    class Parameters(TimedParameters):
        brokers: BrokerReferences
        """A broker, by its number or its name, or a list of them."""
        factor: Annotated[float, Field(ge=1, le=1e6)]
        """The factor of service times; simultaneous ones are multiplied."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Slowdown]:
        spans, factor = self._parameters.spans(setting.horizon), self._parameters.factor
        brokers = sorted({*map(setting.broker, self._parameters.brokers)})
        return [Slowdown(start, end, broker, factor) for broker in brokers for start, end in spans]


class ManagerFaults:
    """The reconfiguration manager is dead at given times; the brokers stay up."""

    class Parameters(TimedParameters):
        pass

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[DeadManager]:
        return [DeadManager(start, end) for start, end in self._parameters.spans(setting.horizon)]
