"""Faults with their times, and the interface of fault models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from sim.base.errors import ScenarioError, unknown, unknown_of_many


@dataclass(frozen=True)
class Fault:
    """A failure from `start` (s) to its repair at `end` (s), infinite if it is permanent."""

    start: float
    end: float


@dataclass(frozen=True)
class Outage(Fault):
    """A broker crashes and restarts. `listed` outages of one broker, given by hand, must not overlap."""

    broker: int
    listed: bool = False


@dataclass(frozen=True)
class BrokenLink(Fault):
    """The link between two brokers is cut in both directions, and restored."""

    one: int
    other: int


@dataclass(frozen=True)
class Partition(Fault):
    """All links between the brokers of one `side` and all other brokers are cut, and restored."""

    side: frozenset[int]


@dataclass(frozen=True)
class Losses(Fault):
    """Links lose messages with this probability."""

    probability: float


@dataclass(frozen=True)
class Slowdown(Fault):
    """A broker's service times are multiplied by this factor."""

    broker: int
    factor: float


@dataclass(frozen=True)
class Drain(Fault):
    """Brokers are drained one after the other from `start` on, however long it takes: `end` is infinite.

    Their users are moved elsewhere, `rate` per second, None for all at once. A drained broker stays up for `grace` seconds, and is
    then down for `down` seconds, infinite if it does not return. One that `leaves` is routed around then, stays up as long again,
    and is no part of the network any more.
    """

    brokers: tuple[int, ...]
    rate: float | None
    grace: float
    down: float
    leaves: bool = False


@dataclass(frozen=True)
class Join(Fault):
    """A broker joins at `start`; until then it is no part of the network. `end` is infinite.

    Users move to it, `rate` per second, None for all at once: none, those whom the selection `policy` sends there, or one by one
    those of the broker with the most users `among` these, until it has as many as they have (`share`).
    """

    broker: int
    rate: float | None = None
    users: Literal["none", "policy", "share"] = "none"
    among: frozenset[int] = frozenset()


@dataclass(frozen=True)
class DeadManager(Fault):
    """The reconfiguration manager is dead."""


@dataclass(frozen=True)
class FaultSetting:
    """The setting of fault models: brokers by number, with their names and, if any, regions; the horizon (s); a key for draws."""

    names: tuple[str, ...]
    regions: tuple[str, ...] | None
    horizon: float
    key: int

    @property
    def brokers(self) -> int:
        """The number of brokers."""
        return len(self.names)

    def generator(self, *parts: int) -> np.random.Generator:
        """A new generator at the start of the stream of these parts, such as one broker's, whose draws others never shift."""
        return np.random.default_rng([self.key, *parts])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def broker(self, reference: int | str) -> int:
        """The number of the broker with a name or number. Raises ScenarioError where there is none."""
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
    """A fault model, which determines what fails, and when. Plug-in group `brokersim.faults`.

    The class has a nested `Parameters(sim.plugins.Parameters)`, and is created by `FaultModel(parameters)`.
    """

    def faults(self, setting: FaultSetting) -> Sequence[Fault]:
        """The faults: a pure function that draws only from the setting's generators. Raises ScenarioError for bad parameters."""


FOR_GOOD = math.inf
"""The end of a permanent fault."""
