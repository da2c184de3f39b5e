"""Faults of links at given times: cut links, partitions of the network, and losses."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from sim.base.errors import ScenarioError, unknown
from sim.base.validation import show
from sim.workloads.faults.fault import BrokenLink, FaultSetting, Losses, Partition
from sim.workloads.faults.timed import BrokerReference, BrokerReferences, TimedParameters, as_tuple, one_or_more

RegionNames = Annotated[tuple[str, ...], BeforeValidator(as_tuple), one_or_more({"type": "string"})]
"""A region, or a list of regions."""


def _two_brokers(value: object) -> tuple[object, ...]:
    if isinstance(value, list | tuple) and len(value) == 2 and value[0] != value[1]:
        return tuple(value)
    raise ValueError(f"expected two brokers, such as [0, 1], found {show(value)}")


Link = Annotated[tuple[BrokerReference, BrokerReference], BeforeValidator(_two_brokers)]
"""A link by the brokers at its ends."""


class CutFaults:
    """Links between brokers are cut at given times, in both directions, and restored."""

    class Parameters(TimedParameters):
        links: Annotated[tuple[Link, ...], BeforeValidator(as_tuple)]
        """The two brokers of each link, by number or name, such as `[[0, 1], ["paris", "oslo"]]`."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[BrokenLink]:
        spans = self._parameters.spans(setting.horizon)
        links = [link_of(setting, *link) for link in self._parameters.links]
        return [BrokenLink(start, end, *link) for link in links for start, end in spans]


def link_of(setting: FaultSetting, one: int | str, other: int | str) -> tuple[int, int]:
    """The numbers of the two brokers of a link. Raises ScenarioError where they are the same."""
    link = setting.broker(one), setting.broker(other)
    if link[0] == link[1]:
        raise ScenarioError(f"no broker has a link to itself (found {one!r} and {other!r}, allowed: two brokers)")
    return link


class PartitionFaults:
    """The network is partitioned at given times: all links between some brokers and all others are cut, and restored."""

    class Parameters(TimedParameters):
        regions: RegionNames | None = None
        """A region, or a list of regions, whose brokers are cut off from all others."""
        brokers: BrokerReferences | None = None
        """The brokers that are cut off from all others, by number or name; only without regions."""

        @model_validator(mode="after")
        def _cuts_somebody_off(self) -> PartitionFaults.Parameters:
            if (self.regions is None) == (self.brokers is None):
                found = "neither" if self.regions is None else "both"
                raise ValueError(f"expected either regions or brokers that are cut off, found {found}")
            return self

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Partition]:
        side = frozenset(map(setting.broker, self._parameters.brokers or ())) or self._in_regions(setting)
        if len(side) == setting.brokers:
            raise ScenarioError("all brokers would be cut off, from none (allowed: some of them)")
        return [Partition(start, end, side) for start, end in self._parameters.spans(setting.horizon)]

    def _in_regions(self, setting: FaultSetting) -> frozenset[int]:
        """The brokers of the regions."""
        wanted = self._parameters.regions or ()
        if setting.regions is None:
            raise ScenarioError(
                "regions: these brokers have none "
                "(allowed: brokers, or network.brokers = a CSV file with the columns broker and region)"
            )
        for region in wanted:
            if region not in setting.regions:
                raise ScenarioError(f"regions: {unknown('region', region, set(setting.regions))}")
        return frozenset(broker for broker, region in enumerate(setting.regions) if region in wanted)


class LossFaults:
    """Links lose messages at given times, with a probability that may exceed their usual one."""

    class Parameters(TimedParameters):
        probability: Annotated[float, Field(ge=0, le=1)]
        """The probability that a link loses a message; of simultaneous ones, including `network.links.loss`, the largest applies."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Losses]:
        return [
            Losses(start, end, self._parameters.probability) for start, end in self._parameters.spans(setting.horizon)
        ]
