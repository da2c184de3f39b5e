"""Outages of brokers with random times up and down."""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sim import plugins
from sim.base.errors import ScenarioError
from sim.base.units import PositiveDuration, format_duration
from sim.workloads.faults.fault import FaultSetting, Outage
from sim.workloads.faults.timed import MOST_FAULTS, BrokerReferences

_AT_ONCE = 32
"""How many outages of a broker are drawn at once."""


class Lifetime(plugins.Parameters):
    """A random duration with this mean."""

    mean: PositiveDuration
    """The mean duration."""
    distribution: Literal["exponential", "weibull", "pareto"] = "exponential"
    """The distribution of durations: exponential, Weibull, or Pareto (type I)."""
    shape: Annotated[float, Field(gt=0, le=100)] | None = None
    """The shape of a Weibull distribution (below 1, failures become rarer with age) or of a Pareto distribution (above 1)."""

    @model_validator(mode="after")
    def _has_a_mean(self) -> Lifetime:
        if self.distribution == "exponential":
            if self.shape is not None:
                raise ValueError("distribution 'exponential' takes no shape (allowed with: 'weibull', 'pareto')")
            return self
        least = 0.1 if self.distribution == "weibull" else 1.0
        if self.shape is None:
            raise ValueError(f"distribution '{self.distribution}' needs a shape")
        if self.distribution == "weibull" and self.shape < least:
            raise ValueError(f"shape: expected {least:g} or more for a Weibull distribution, found {self.shape:g}")
        if self.distribution == "pareto" and self.shape <= least:
            raise ValueError(
                f"shape: expected more than 1, as a Pareto distribution has no mean otherwise, found {self.shape:g}"
            )
        return self

    def draw(self, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Draw `count` durations (s)."""
        if self.distribution == "exponential" or self.shape is None:
            return generator.exponential(self.mean, count)
        if self.distribution == "weibull":
            return self.mean / math.gamma(1.0 + 1.0 / self.shape) * generator.weibull(self.shape, count)
        return self.mean * (self.shape - 1.0) / self.shape * (1.0 + generator.pareto(self.shape, count))


class LifetimeFaults:
    """Brokers repeatedly crash after a random time up and restart after a random time down; all are up initially."""

    class Parameters(plugins.Parameters):
        up: Lifetime
        """The times from a start to the next crash, such as `{ mean = "30d", distribution = "weibull", shape = 0.7 }`."""
        down: Lifetime
        """The times from a crash to the restart, such as `{ mean = "10min" }`."""
        brokers: BrokerReferences | None = None
        """A broker, by number or name, or a list of them; all by default."""
        number: Annotated[int, Field(ge=1)] | None = None
        """The number of these brokers that fail, drawn at random; all by default."""
        repairers: Annotated[int, Field(ge=1)] | None = None
        """How many brokers are repaired at a time, in the order in which they crash, each in a time `down`; all by default."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def faults(self, setting: FaultSetting) -> list[Outage]:
        brokers = self.failing(setting)
        if (repairers := self._parameters.repairers) is not None:
            return self._repaired(setting, brokers, repairers)
        spans = (
            (broker, span) for broker in brokers for span in self._spans(setting.generator(1 + broker), setting.horizon)
        )
        return [Outage(start, end, broker) for broker, (start, end) in spans]

    def failing(self, setting: FaultSetting) -> list[int]:
        """The brokers that fail, ascending. Raises ScenarioError where the parameters do not fit the setting."""
        up, down, brokers = self._parameters.up, self._parameters.down, self._brokers(setting)
        if (expected := len(brokers) * setting.horizon / (up.mean + down.mean)) > MOST_FAULTS:
            times = f"a mean of {format_duration(up.mean + down.mean)} up and down"
            raise ScenarioError(
                f"{times} gives {expected:,.0f} outages of {len(brokers):,} brokers (allowed: {MOST_FAULTS:,})"
            )
        return brokers

    def _spans(self, generator: np.random.Generator, horizon: float) -> Iterator[tuple[float, float]]:
        """The outages (from, to) of a broker that is up initially, for crashes before the horizon."""
        now = 0.0
        while now < horizon:
            times = now + self._times(generator).cumsum().reshape(-1, 2)
            yield from ((start, end) for start, end in times.tolist() if start < min(end, horizon))
            now = float(times[-1, 1])

    def _times(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw times (s) up, and the times down after them: rows of two."""
        up, down = self._parameters.up.draw(generator, _AT_ONCE), self._parameters.down.draw(generator, _AT_ONCE)
        return np.stack((up, down), axis=1)

    def _repaired(self, setting: FaultSetting, brokers: list[int], repairers: int) -> list[Outage]:
        """The outages of brokers that wait for a repairer, in the order of their crashes; times down are those of repairs."""

        def draws(broker: int) -> Iterator[tuple[float, float]]:
            generator = setting.generator(1 + broker)
            while True:
                yield from map(tuple, self._times(generator).tolist())

        times = {broker: draws(broker) for broker in brokers}
        free, crashes, found = [0.0] * repairers, list[tuple[float, int, float]](), list[Outage]()
        for broker in brokers:
            up, down = next(times[broker])
            heappush(crashes, (up, broker, down))
        while crashes and crashes[0][0] < setting.horizon:
            start, broker, down = heappop(crashes)
            end = max(start, free[0]) + down
            heapreplace(free, end)
            if end > start:
                found.append(Outage(start, end, broker))
            up, down = next(times[broker])
            heappush(crashes, (end + up, broker, down))
        return found

    def _brokers(self, setting: FaultSetting) -> list[int]:
        """The brokers that fail, ascending."""
        listed, number = self._parameters.brokers, self._parameters.number
        brokers = sorted({*map(setting.broker, listed)}) if listed is not None else list(range(setting.brokers))
        if number is None:
            return brokers
        if number > len(brokers):
            raise ScenarioError(f"number: expected at most {len(brokers)}, the number of brokers, found {number}")
        return sorted(setting.generator(0).choice(brokers, number, replace=False).tolist())
