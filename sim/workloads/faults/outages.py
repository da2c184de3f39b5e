"""Outages of brokers, which crash and restart: at times that are listed."""

from __future__ import annotations

from sim.workloads.faults.fault import FaultSetting, Outage
from sim.workloads.faults.timed import BrokerReferences, TimedParameters


class CrashFaults:
    """Brokers crash at given times, and restart."""

    class Parameters(TimedParameters):
        brokers: BrokerReferences
        """A broker, by its number or its name, or a list of them, which crash at once."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Outage]:
        spans = self._parameters.spans(setting.horizon)
        brokers = map(setting.broker, self._parameters.brokers)
        return [Outage(start, end, broker, listed=True) for broker in brokers for start, end in spans]
