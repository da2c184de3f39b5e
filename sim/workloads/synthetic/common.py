"""Functions shared by several generators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from sim.base.units import SECONDS, format_duration
from sim.plugins import Parameters
from sim.workloads.format.traits import Traits
from sim.workloads.format.workload import Publications, Shares

MOST_EVENTS = 1e9
"""The most events of a synthetic workload; that many fill the memory of most machines."""
MOST_UNUSED = 3e7
"""The most events that may be drawn for a run that ends before them; that many take a gigabyte."""


class Generated(Parameters, ABC):
    """Parameters of a generator, which draws all events up to its own `horizon` (s) even if a run ends earlier."""

    has_places: ClassVar[bool] = False
    """Whether topics are cells."""

    def traits(self, kind: str) -> Traits:
        own = vars(self)
        shares = own.get("group_size") is not None
        return Traits(kind, places=self.has_places, bytes=own["size"] > 0, shares=shares)

    @property
    @abstractmethod
    def events(self) -> float:
        """The expected number of events, or an upper bound."""

    def wrong(self, horizon: float) -> str | None:
        """Why a run that ends at `horizon` (s) wastes most of the events drawn; None where it does not."""
        own: float = vars(self)["horizon"]
        if horizon * 10 >= own or self.events * (1 - horizon / own) < MOST_UNUSED:
            return None
        run, drawn = format_duration(horizon), format_duration(own)
        return (
            f"a run ends after {run}, but all {self.events:.3g} events of the workload's {drawn} are drawn first: "
            "set workload.horizon to the same"
        )


def check_events(what: str, events: float, kind: str = "events", hint: str = "") -> None:
    """Raise ValueError where parameters give more events than a workload may have."""
    if events >= MOST_EVENTS:
        raise ValueError(f"{what} give {events:.3g} {kind}, allowed: fewer than {MOST_EVENTS:.3g}{hint}")


def poisson_publications(
    topics: int, users: int, rate: float, horizon: float, size: int, generator: np.random.Generator
) -> Publications:
    """Publications of `size` bytes on each topic as a Poisson process of a `rate` (1/h) up to the horizon (s), by random users."""
    count = int(generator.poisson(topics * rate * horizon / SECONDS["h"]))
    return Publications(
        np.sort(generator.uniform(0, horizon, count)),
        generator.integers(0, topics, count, dtype=np.int32),
        generator.integers(0, users, count, dtype=np.int32),
        np.full(count, size, np.int32),
    )


def everybody_shares(users: int, topics: int, size: int) -> Shares:
    """All subscriptions to all topics as shared ones: users 0, 1, … are in groups of a `size`, each with a number for each topic."""
    groups = -(-users // size)
    topic, user = np.divmod(np.arange(topics * users), users)
    return Shares(topic.astype(np.int32), user.astype(np.int32), (topic * groups + user // size).astype(np.int32))
