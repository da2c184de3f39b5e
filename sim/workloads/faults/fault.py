"""What can fail and from when to when, and the plug-ins that say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sim.base.errors import ScenarioError, unknown, unknown_of_many


@dataclass(frozen=True)
class Fault:
    """Something that fails at `start` (s) and is well again at `end` (s), which is infinite for good."""

    start: float
    end: float


@dataclass(frozen=True)
class Outage(Fault):
    """A broker crashes, and restarts. Those of one broker that are `listed` by hand must not overlap."""

    broker: int
    listed: bool = False


@dataclass(frozen=True)
class BrokenLink(Fault):
    """The link between two brokers is cut, in both directions, and mended."""

    one: int
    other: int


@dataclass(frozen=True)
class Partition(Fault):
    """All links between the brokers of one `side` and all other brokers are cut, and mended."""

    side: frozenset[int]


@dataclass(frozen=True)
class Losses(Fault):
    """Links lose messages with this probability."""

    probability: float


@dataclass(frozen=True)
class Slowdown(Fault):
    """A broker takes this factor of its service times."""

    broker: int
    factor: float


@dataclass(frozen=True)
class FaultSetting:
    """What faults are drawn for: brokers by number, with their names, and regions where they have any; the horizon (s); a key."""

    names: tuple[str, ...]
    regions: tuple[str, ...] | None
    horizon: float
    key: int

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.names)

    def generator(self, *parts: int) -> np.random.Generator:
        """A new generator at the start of the stream of these parts, such as one broker's, so that others never shift its draws."""
        return np.random.default_rng([self.key, *parts])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def broker(self, reference: int | str) -> int:
        """The number of the broker of a name or, where none has it, a number. Raises ScenarioError where there is none."""
        number = self._numbers.get(str(reference)) if isinstance(reference, str) else reference
        if number is None and str(reference).isdecimal():
            number = int(reference)
        if number is None:
            listed = unknown if self.brokers <= 20 else unknown_of_many
            raise ScenarioError(listed("broker", str(reference), self.names))
        if not 0 <= number < self.brokers:
            raise ScenarioError(f"no such broker {number} (allowed: 0 to {self.brokers - 1}, or a name)")
        return number


class FaultModel(Protocol):
    """Says what fails, and when. Plug-in group `brokersim.faults`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is made by `FaultModel(parameters)`.
    """

    def faults(self, setting: FaultSetting) -> Sequence[Fault]:
        """What fails: a pure function, which draws from generators of the setting alone. Raises ScenarioError for bad parameters."""


FOR_GOOD = math.inf
"""The end of a fault that nobody repairs."""
