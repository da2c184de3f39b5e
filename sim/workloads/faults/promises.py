"""The contract of fault models, and its checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sim.base.errors import cut
from sim.plugins import Found, Promises, promise
from sim.workloads.faults.fault import (
    BrokenLink,
    DeadManager,
    Drain,
    Fault,
    FaultModel,
    FaultSetting,
    Join,
    Losses,
    Outage,
    Partition,
    Slowdown,
)

_KINDS = (Outage, BrokenLink, Partition, Losses, Slowdown, DeadManager, Drain, Join)


class FaultPromises(Promises):
    """The contract of a fault model."""

    group, protocol = "faults", FaultModel

    @promise("faults")
    def typed(self, found: Found, _: FaultSetting) -> Iterator[str]:
        """`faults` returns a list or tuple of faults."""
        if not isinstance(found, list | tuple):
            yield f"faults returned {cut(repr(found))}, expected a list of faults"
        names = ", ".join(kind.__name__ for kind in _KINDS)
        yield from (
            f"faults returned a list with {cut(repr(fault))}, expected {names}"
            for fault in found
            if not isinstance(fault, _KINDS)
        )

    @promise("faults")
    def in_time(self, found: Sequence[Fault], setting: FaultSetting) -> Iterator[str]:
        """Each begins at time 0 or later and before the horizon, and ends later than it begins."""
        yield from (
            f"{fault} does not begin in [0, {setting.horizon:g}) and end later"
            for fault in found
            if not (0 <= fault.start < setting.horizon and fault.start < fault.end)
        )

    @promise("faults")
    def known(self, found: Sequence[Fault], setting: FaultSetting) -> Iterator[str]:
        """Each is of brokers that there are: a link is between two, and a partition has some on either side."""
        for fault in found:
            brokers = _brokers(fault)
            if not all(isinstance(broker, int | np.integer) and 0 <= broker < setting.brokers for broker in brokers):
                yield f"{cut(repr(fault), 120)} is not of brokers 0 to {setting.brokers - 1}"
            if isinstance(fault, BrokenLink) and fault.one == fault.other:
                yield f"{fault} is a link from a broker to itself"
            if isinstance(fault, Partition) and not 0 < len(fault.side) < setting.brokers:
                yield f"{cut(repr(fault), 120)} has all brokers on the same side"

    @promise("faults")
    def valued(self, found: Sequence[Fault], _: FaultSetting) -> Iterator[str]:
        """A probability is in [0, 1], a factor a finite number above 0, and so are the rate of a drain or join, and its times."""
        for fault in found:
            if isinstance(fault, Losses) and not 0 <= fault.probability <= 1:
                yield f"{fault} has no probability in [0, 1]"
            if isinstance(fault, Slowdown) and not (fault.factor > 0 and math.isfinite(fault.factor)):
                yield f"{fault} has no finite factor above 0"
            if isinstance(fault, Join) and not (fault.rate is None or 0 < fault.rate < math.inf):
                yield f"{cut(repr(fault), 120)} has no finite rate above 0"
            if isinstance(fault, Drain):
                rate = 1.0 if fault.rate is None else fault.rate
                if not (0 < rate < math.inf and 0 <= fault.grace < math.inf and fault.down > 0):
                    yield f"{fault} has no finite rate above 0, finite grace of 0 or more and time down above 0"


def _brokers(fault: Fault) -> list[int]:
    match fault:
        case Outage(broker=broker) | Slowdown(broker=broker) | Join(broker=broker):
            return [broker]
        case BrokenLink(one=one, other=other):
            return [one, other]
        case Partition(side=side):
            return list(side)
        case Drain(brokers=brokers):
            return list(brokers)
    return []
